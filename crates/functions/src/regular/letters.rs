//! Which characters pass a part of a regular expression.
//!
//! Classes are those of PostgreSQL in a database of UTF-8: `\d` and `[[:digit:]]` are the ten digits of ASCII, `[[:alpha:]]` has the
//! letters of all scripts and their digits.

use std::sync::{Arc, LazyLock};

use messages::Result;
use regex::Regex;

use crate::regular::options::invalid;

/// The blanks of `[[:space:]]`.
macro_rules! blanks {
    () => {
        r"\t-\r\x{20}\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}"
    };
}

/// What `[[:print:]]` has not.
macro_rules! unseen {
    () => {
        r"\p{Cc}\p{Cn}\p{Zl}\p{Zp}"
    };
}

/// The characters of a class by its name, as the library `regex` writes them within brackets.
pub(super) fn named(name: &str) -> Option<&'static str> {
    Some(match name {
        "alpha" => r"\p{Alphabetic}[\p{Nd}--[0-9]]",
        "alnum" => r"\p{Alphabetic}\p{Nd}",
        "word" => r"\p{Alphabetic}\p{Nd}_",
        "lower" => r"\p{Lowercase}",
        "upper" => r"\p{Uppercase}\p{Lt}",
        "digit" => "0-9",
        "xdigit" => "0-9a-fA-F",
        "space" => blanks!(),
        "blank" => r"\x{20}\t",
        "cntrl" => r"\p{Cc}",
        "ascii" => r"\x{0}-\x{7f}",
        "print" => concat!("[^", unseen!(), "]"),
        "graph" => concat!("[^", unseen!(), blanks!(), "]"),
        "punct" => concat!("[^", unseen!(), blanks!(), r"\p{Alphabetic}\p{Nd}]"),
        _ => return None,
    })
}

/// Which characters pass.
#[derive(Debug)]
pub(super) enum Test {
    Any,
    /// Any but the end of a line.
    InLine,
    /// One of these.
    Letters(Vec<char>),
    Class(Class),
}

/// Characters in the syntax of the library `regex`, which tells those that are not of ASCII.
#[derive(Debug)]
pub(super) struct Class {
    text: String,
    /// A bit for each character of ASCII.
    ascii: u128,
    regex: Regex,
}

impl Class {
    /// The class that is written so.
    ///
    /// # Errors
    /// If it is none.
    pub(super) fn new(text: String) -> Result<Class> {
        let regex =
            Regex::new(&format!("^{text}$")).map_err(|_| invalid("invalid character range"))?;
        let ascii = (0..128u8).fold(0u128, |bits, code| {
            let mut bytes = [0; 4];
            let passes = regex.is_match(char::from(code).encode_utf8(&mut bytes));
            bits | u128::from(passes) << code
        });
        Ok(Class { text, ascii, regex })
    }

    pub(super) fn has(&self, letter: char) -> bool {
        if letter.is_ascii() {
            return self.ascii >> (letter as u32) & 1 == 1;
        }
        self.regex.is_match(letter.encode_utf8(&mut [0; 4]))
    }
}

impl Test {
    /// What takes a character that is written out.
    pub(super) fn letter(letter: char, alike: bool) -> Arc<Test> {
        let mut all = vec![letter];
        if alike {
            all.extend(variants(letter));
        }
        Arc::new(Test::Letters(all))
    }

    pub(super) fn passes(&self, letter: char) -> bool {
        match self {
            Test::Any => true,
            Test::InLine => letter != '\n',
            Test::Letters(all) => all.contains(&letter),
            Test::Class(class) => class.has(letter),
        }
    }

    /// It in the syntax of the library `regex`.
    pub(super) fn source(&self, out: &mut String) {
        match self {
            Test::Any => out.push_str("(?s:.)"),
            Test::InLine => out.push_str(r"[^\n]"),
            Test::Letters(all) => match &all[..] {
                [one] => escaped(*one, out),
                all => {
                    out.push('[');
                    all.iter().for_each(|letter| escaped(*letter, out));
                    out.push(']');
                }
            },
            Test::Class(class) => out.push_str(&class.text),
        }
    }
}

/// A character in the syntax of the library, whatever it means there.
pub(super) fn escaped(letter: char, out: &mut String) {
    if letter.is_ascii_alphanumeric() {
        out.push(letter);
    } else {
        out.push_str(&format!("\\x{{{:x}}}", letter as u32));
    }
}

/// The other cases of a letter, if it has some of one letter each.
pub(super) fn variants(letter: char) -> impl Iterator<Item = char> {
    let one = |mut all: Box<dyn Iterator<Item = char>>| {
        let first = all.next();
        first.filter(|first| all.next().is_none() && *first != letter)
    };
    let lower = one(Box::new(letter.to_lowercase()));
    let upper = one(Box::new(letter.to_uppercase()));
    lower.into_iter().chain(upper)
}

/// Whether two letters are one, but for their case.
pub(super) fn are_alike(left: char, right: char) -> bool {
    let lower = |letter: char| {
        let mut all = letter.to_lowercase();
        match (all.next(), all.next()) {
            (Some(one), None) => one,
            _ => letter,
        }
    };
    left == right || lower(left) == lower(right)
}

static WORD: LazyLock<Option<Class>> = LazyLock::new(|| {
    let name = named("word")?;
    Class::new(format!("[{name}]")).ok()
});

/// Whether a character is one of a word.
pub(super) fn is_word(letter: Option<char>) -> bool {
    letter.is_some_and(|letter| match &*WORD {
        Some(class) => class.has(letter),
        None => letter.is_alphanumeric() || letter == '_',
    })
}
