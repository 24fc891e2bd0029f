//! The options of a regular expression: those that a function is given, and those that a pattern begins with.

use messages::{Error, Result};

/// What a pattern means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// `g`: all matches are wanted.
    pub all: bool,
    /// `i`: letters are alike in both cases.
    pub alike: bool,
    /// `p`: neither a point nor `[^...]` takes the end of a line.
    pub stops: bool,
    /// `w`: `^` and `$` are beginnings and ends of lines, too.
    pub lines: bool,
    /// `x`: white space and comments in the pattern mean nothing.
    pub expanded: bool,
    /// `q`: the pattern is a text.
    pub literal: bool,
}

impl Options {
    /// Those that letters ask for.
    ///
    /// # Errors
    /// For a letter that is none, and for those of the older kinds of expressions.
    pub(super) fn of(letters: &str) -> Result<Options> {
        let mut options = Options::default();
        for letter in letters.chars() {
            if letter == 'g' {
                options.all = true;
            } else if !options.put(letter)? {
                return Err(Error::coded(
                    "22023",
                    format!("invalid regular expression option: \"{letter}\""),
                ));
            }
        }
        Ok(options.settled())
    }

    /// Takes an option that may stand in a pattern, too; whether there is such a one.
    fn put(&mut self, letter: char) -> Result<bool> {
        match letter {
            'i' => self.alike = true,
            'c' => self.alike = false,
            'm' | 'n' => (self.stops, self.lines) = (true, true),
            'p' => (self.stops, self.lines) = (true, false),
            'w' => (self.stops, self.lines) = (false, true),
            's' => (self.stops, self.lines) = (false, false),
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'q' => self.literal = true,
            'b' | 'e' => {
                return Err(Error::unsupported(format!(
                    "the regular expression option \"{letter}\" is not supported: there are c, g, i, m, n, p, q, s, t, w and x"
                )));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What means nothing of a text is off.
    fn settled(self) -> Options {
        if self.literal {
            return Options {
                stops: false,
                lines: false,
                expanded: false,
                ..self
            };
        }
        self
    }

    /// The options with those that a pattern begins with (`***:`, `***=`, `(?i)`), and what follows them.
    ///
    /// # Errors
    /// For a beginning that means nothing.
    pub(super) fn within(mut self, pattern: &str) -> Result<(Options, &str)> {
        if self.literal {
            return Ok((self, pattern));
        }
        let mut rest = pattern;
        if let Some(own) = rest.strip_prefix("***") {
            if let Some(text) = own.strip_prefix('=') {
                self.literal = true;
                return Ok((self.settled(), text));
            }
            rest = own
                .strip_prefix(':')
                .ok_or_else(|| invalid("quantifier operand invalid"))?;
        }
        let own = rest.strip_prefix("(?");
        let Some(own) = own.filter(|own| own.starts_with(|c: char| c.is_ascii_alphabetic())) else {
            return Ok((self, rest));
        };
        let letters = own.split_once(')').filter(|(letters, _)| {
            let mut all = letters.chars();
            all.all(|c| c.is_ascii_alphabetic())
        });
        let (letters, rest) = letters.ok_or_else(|| invalid("invalid embedded option"))?;
        for letter in letters.chars() {
            if !self.put(letter)? {
                return Err(invalid("invalid embedded option"));
            }
        }
        Ok((self.settled(), rest))
    }
}

/// The error of a pattern that is no regular expression.
pub(super) fn invalid(reason: &str) -> Error {
    Error::coded("2201B", format!("invalid regular expression: {reason}"))
}
