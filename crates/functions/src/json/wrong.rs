//! Why a text is no JSON, in the words of PostgreSQL.

/// The deepest nesting that is looked into.
const DEEPEST: usize = 500;

/// The most bytes of a line that are shown.
const SHOWN: usize = 50;

/// What is wrong with a text, and the line of it up to the place: a sentence, and `JSON data, line 1: {"a"...` behind it. None if
/// nothing is wrong with it that PostgreSQL would find, or it is nested too deeply to be looked into.
pub fn told(text: &str) -> Option<String> {
    let mut reader = Reader {
        text,
        line: 1,
        line_start: 0,
        start: 0,
        end: 0,
        token: Token::End,
    };
    let detail = match reader.document() {
        Err(Stop::Wrong(detail)) => detail,
        Err(Stop::TooDeep) | Ok(()) => return None,
    };
    Some(format!("{detail} {}", reader.place()))
}

/// What stands next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// A string.
    Text,
    /// A number, true, false or null.
    Scalar,
    /// One of `{}[],:`.
    Mark(u8),
    End,
}

/// Why reading stops.
enum Stop {
    Wrong(String),
    TooDeep,
}

struct Reader<'t> {
    text: &'t str,
    line: usize,
    /// Where the line begins.
    line_start: usize,
    /// Where the token begins and ends that was read last.
    start: usize,
    end: usize,
    token: Token,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<(), Stop> {
        self.next()?;
        self.value(DEEPEST)?;
        match self.token {
            Token::End => Ok(()),
            _ => Err(self.unexpected("Expected end of input")),
        }
    }

    fn value(&mut self, depth: usize) -> Result<(), Stop> {
        let depth = depth.checked_sub(1).ok_or(Stop::TooDeep)?;
        match self.token {
            Token::Mark(b'{') => self.object(depth),
            Token::Mark(b'[') => self.array(depth),
            Token::Text | Token::Scalar => self.next(),
            _ => Err(self.unexpected("Expected JSON value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), Stop> {
        self.next()?;
        if self.token == Token::Mark(b'}') {
            return self.next();
        }
        let mut wanted = "Expected string or \"}\"";
        loop {
            if self.token != Token::Text {
                return Err(self.unexpected(wanted));
            }
            self.next()?;
            if self.token != Token::Mark(b':') {
                return Err(self.unexpected("Expected \":\""));
            }
            self.next()?;
            self.value(depth)?;
            match self.token {
                Token::Mark(b',') => self.next()?,
                Token::Mark(b'}') => return self.next(),
                _ => return Err(self.unexpected("Expected \",\" or \"}\"")),
            }
            wanted = "Expected string";
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), Stop> {
        self.next()?;
        if self.token == Token::Mark(b']') {
            return self.next();
        }
        loop {
            self.value(depth)?;
            match self.token {
                Token::Mark(b',') => self.next()?,
                Token::Mark(b']') => return self.next(),
                _ => return Err(self.unexpected("Expected \",\" or \"]\"")),
            }
        }
    }

    /// The error of a token that should be another one.
    fn unexpected(&self, wanted: &str) -> Stop {
        Stop::Wrong(match self.token {
            Token::End => "The input string ended unexpectedly.".to_owned(),
            _ => format!(
                "{wanted}, but found \"{}\".",
                &self.text[self.start..self.end]
            ),
        })
    }

    /// The error of the token that was read, which is none.
    fn invalid(&self) -> Stop {
        Stop::Wrong(format!(
            "Token \"{}\" is invalid.",
            &self.text[self.start..self.end]
        ))
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// Reads the next token.
    fn next(&mut self) -> Result<(), Stop> {
        let mut at = self.end;
        while let Some(blank @ (b' ' | b'\t' | b'\n' | b'\r')) = self.byte(at) {
            at += 1;
            if blank == b'\n' {
                (self.line, self.line_start) = (self.line + 1, at);
            }
        }
        (self.start, self.end) = (at, at);
        let Some(first) = self.byte(at) else {
            self.token = Token::End;
            return Ok(());
        };
        match first {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => {
                (self.token, self.end) = (Token::Mark(first), at + 1);
                Ok(())
            }
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            _ => self.word(),
        }
    }

    fn string(&mut self) -> Result<(), Stop> {
        let mut at = self.start + 1;
        loop {
            self.end = at;
            match self.byte(at) {
                None => return Err(self.invalid()),
                Some(b'"') => break,
                Some(control @ ..32) => {
                    return Err(Stop::Wrong(format!(
                        "Character with value 0x{control:02x} must be escaped."
                    )));
                }
                Some(b'\\') => at = self.escape(at + 1)?,
                Some(_) => at += 1,
            }
        }
        (self.token, self.end) = (Token::Text, at + 1);
        Ok(())
    }

    /// Reads what follows a backslash at `at`, and gives the place behind it.
    fn escape(&mut self, at: usize) -> Result<usize, Stop> {
        let Some(letter) = self.text[at..].chars().next() else {
            self.end = at;
            return Err(self.invalid());
        };
        match letter {
            'u' => {
                for digit in at + 1..at + 5 {
                    let Some(found) = self.text[digit..].chars().next() else {
                        self.end = digit;
                        return Err(self.invalid());
                    };
                    if !found.is_ascii_hexdigit() {
                        self.end = digit + found.len_utf8();
                        let must = "\"\\u\" must be followed by four hexadecimal digits.";
                        return Err(Stop::Wrong(must.to_owned()));
                    }
                }
                Ok(at + 5)
            }
            '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => Ok(at + 1),
            other => {
                self.end = at + other.len_utf8();
                Err(Stop::Wrong(format!(
                    "Escape sequence \"\\{other}\" is invalid."
                )))
            }
        }
    }

    fn number(&mut self) -> Result<(), Stop> {
        let digits = |from: usize| {
            from + self.text[from..]
                .bytes()
                .take_while(u8::is_ascii_digit)
                .count()
        };
        let mut wrong = false;
        let whole = self.start + usize::from(self.byte(self.start) == Some(b'-'));
        let mut at = match self.byte(whole) {
            Some(b'0') => whole + 1,
            _ => digits(whole),
        };
        wrong |= at == whole;
        if self.byte(at) == Some(b'.') {
            let end = digits(at + 1);
            wrong |= end == at + 1;
            at = end;
        }
        if matches!(self.byte(at), Some(b'e' | b'E')) {
            let from = at + 1 + usize::from(matches!(self.byte(at + 1), Some(b'+' | b'-')));
            let end = digits(from);
            wrong |= end == from;
            at = end;
        }
        self.end = at + self.letters(at);
        if wrong || self.end > at {
            return Err(self.invalid());
        }
        self.token = Token::Scalar;
        Ok(())
    }

    fn word(&mut self) -> Result<(), Stop> {
        self.end = self.start + self.letters(self.start);
        if self.end == self.start {
            self.end += 1;
            return Err(self.invalid());
        }
        match &self.text[self.start..self.end] {
            "true" | "false" | "null" => {
                self.token = Token::Scalar;
                Ok(())
            }
            _ => Err(self.invalid()),
        }
    }

    /// How many bytes of a word stand at `from`.
    fn letters(&self, from: usize) -> usize {
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 128;
        self.text[from..].bytes().take_while(word).count()
    }

    /// The line up to the end of the token, of which the beginning is left out where it is long.
    fn place(&self) -> String {
        let line = &self.text[self.line_start..self.end];
        let mut shown = line;
        while shown.len() >= SHOWN {
            shown = shown
                .get(shown.chars().next().map_or(1, char::len_utf8)..)
                .unwrap_or_default();
        }
        if line.len() - shown.len() <= 3 {
            shown = line;
        }
        let before = if shown.len() < line.len() { "..." } else { "" };
        let more = !matches!(self.byte(self.end), None | Some(b'\n' | b'\r'));
        let behind = if more { "..." } else { "" };
        format!("JSON data, line {}: {before}{shown}{behind}", self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the published output of PostgreSQL 15's own tests.
    #[test]
    fn texts_are_told_as_postgresql_tells_them() {
        for (text, wanted) in [
            ("''", "Token \"'\" is invalid. JSON data, line 1: '..."),
            (
                "\"abc",
                "Token \"\"abc\" is invalid. JSON data, line 1: \"abc",
            ),
            (
                "\"abc\ndef\"",
                "Character with value 0x0a must be escaped. JSON data, line 1: \"abc",
            ),
            (
                "\"\\v\"",
                "Escape sequence \"\\v\" is invalid. JSON data, line 1: \"\\v...",
            ),
            ("01", "Token \"01\" is invalid. JSON data, line 1: 01"),
            ("0.x1", "Token \"0.x1\" is invalid. JSON data, line 1: 0.x1"),
            (
                "1.3ex100",
                "Token \"1.3ex100\" is invalid. JSON data, line 1: 1.3ex100",
            ),
            (
                "[1,2,]",
                "Expected JSON value, but found \"]\". JSON data, line 1: [1,2,]",
            ),
            (
                "[1,[2]",
                "The input string ended unexpectedly. JSON data, line 1: [1,[2]",
            ),
        ] {
            assert_eq!(told(text).as_deref(), Some(wanted), "{text}");
        }
    }

    #[test]
    fn marks_are_told_as_postgresql_tells_them() {
        for (text, wanted) in [
            (
                "{\"abc\"}",
                "Expected \":\", but found \"}\". JSON data, line 1: {\"abc\"}",
            ),
            (
                "{1:\"abc\"}",
                "Expected string or \"}\", but found \"1\". JSON data, line 1: {1...",
            ),
            (
                "{\"abc\"=1}",
                "Token \"=\" is invalid. JSON data, line 1: {\"abc\"=...",
            ),
            (
                "{\"abc\":1:2}",
                "Expected \",\" or \"}\", but found \":\". JSON data, line 1: {\"abc\":1:...",
            ),
            (
                "{\"abc\":1,3}",
                "Expected string, but found \"3\". JSON data, line 1: {\"abc\":1,3...",
            ),
            (
                "true false",
                "Expected end of input, but found \"false\". JSON data, line 1: true false",
            ),
            (
                "trues",
                "Token \"trues\" is invalid. JSON data, line 1: trues",
            ),
            (
                "    ",
                "The input string ended unexpectedly. JSON data, line 1:     ",
            ),
            (
                "\"\\u00\"",
                "\"\\u\" must be followed by four hexadecimal digits. JSON data, line 1: \"\\u00\"",
            ),
            (
                "{\n\t\t\"averyveryveryveryveryveryveryveryveryverylongfieldname\":}",
                "Expected JSON value, but found \"}\". JSON data, line 2: ...yveryveryveryveryveryveryveryverylongfieldname\":}",
            ),
        ] {
            assert_eq!(told(text).as_deref(), Some(wanted), "{text}");
        }
    }

    #[test]
    fn nothing_is_told_of_json() {
        for right in ["{\"a\": [1, -2.5e+3, null]}", " \"\\ud834\" ", "[]", "{}"] {
            assert_eq!(told(right), None, "{right}");
        }
        assert_eq!(told(&"[".repeat(10_000)), None);
    }

    proptest::proptest! {
        /// What a library reads is read, and what it does not read is told.
        #[test]
        fn a_library_agrees(text in "[\\[\\]{}:,\"01.e truefalsn\\\\é-]{0,12}") {
            let wrong = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_err();
            proptest::prop_assert_eq!(told(&text).is_some(), wrong);
        }
    }
}
