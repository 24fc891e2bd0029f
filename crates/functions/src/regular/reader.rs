//! The text of a regular expression as it is read: letters, escapes, classes of letters.

use std::collections::HashSet;

use messages::Result;

use crate::regular::letters::named;
use crate::regular::options::{Options, invalid};

/// What is left of a pattern, and what was read of it.
pub(super) struct Parser<'a> {
    pub(super) rest: &'a str,
    pub(super) options: Options,
    pub(super) groups: usize,
    /// The groups that are complete.
    pub(super) closed: HashSet<usize>,
    /// Whether it reads a condition on what is around.
    pub(super) looks: bool,
    pub(super) depth: usize,
}

impl Parser<'_> {
    pub(super) fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let mut letters = self.rest.chars();
        let next = letters.next();
        self.rest = letters.as_str();
        next
    }

    /// The characters of `\d` and its kin, as the library writes them within brackets.
    pub(super) fn shorthand(&self, letter: char) -> Option<String> {
        let name = match letter.to_ascii_lowercase() {
            'd' => "digit",
            's' => "space",
            'w' => "word",
            _ => return None,
        };
        let own = named(name)?;
        Some(if letter.is_ascii_uppercase() {
            format!("[^{own}]")
        } else {
            own.to_string()
        })
    }

    /// The character that what follows a backslash stands for.
    pub(super) fn written(&mut self) -> Result<char> {
        let wrong = || invalid("invalid escape \\ sequence");
        let first = self.rest.chars().next().ok_or_else(wrong)?;
        if first.is_ascii_digit() {
            return self.octal().ok_or_else(wrong);
        }
        self.next();
        Ok(match first {
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            'f' => '\u{c}',
            'v' => '\u{b}',
            'a' => '\u{7}',
            'e' => '\u{1b}',
            'b' => '\u{8}',
            'B' => '\\',
            'c' => {
                let letter = self.next().ok_or_else(wrong)?;
                char::from_u32(letter as u32 & 0o37).ok_or_else(wrong)?
            }
            'x' => self.hexadecimal(1, usize::MAX).ok_or_else(wrong)?,
            'u' => self.hexadecimal(4, 4).ok_or_else(wrong)?,
            'U' => self.hexadecimal(8, 8).ok_or_else(wrong)?,
            letter if letter.is_alphanumeric() => return Err(wrong()),
            letter => letter,
        })
    }

    fn hexadecimal(&mut self, least: usize, most: usize) -> Option<char> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        let digits = digits.min(most);
        let (text, rest) = self.rest.split_at(digits);
        self.rest = rest;
        if digits < least {
            return None;
        }
        char::from_u32(u32::from_str_radix(text, 16).ok()?)
    }

    /// Up to three digits, which say no more than a byte.
    fn octal(&mut self) -> Option<char> {
        let digits = |c: &u8| matches!(c, b'0'..=b'7');
        let mut count = self.rest.bytes().take_while(digits).count().min(3);
        let mut code = u32::from_str_radix(self.rest.get(..count)?, 8).ok()?;
        if code > 0xff {
            (count, code) = (count - 1, code >> 3);
        }
        self.rest = &self.rest[count..];
        char::from_u32(code)
    }
}
