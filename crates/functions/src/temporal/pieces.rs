//! A text of a date, a time or an interval in pieces: numbers, words, and what marks hold together.

/// What a piece looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Digits, perhaps with one point.
    Number,
    /// Digits or letters held together by `-`, `/` or `.`.
    Date,
    /// Digits with colons.
    Time,
    /// A sign with digits.
    Signed,
    /// Letters.
    Word,
    /// A sign with letters.
    SignedWord,
}

/// A piece of a text, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub shape: Shape,
    pub text: String,
}

/// The most pieces of a text.
const MOST: usize = 25;

/// The most bytes of a text.
const LONGEST: usize = 160;

/// The letters of a text that is taken apart, and how far it is read.
struct Reader<'t> {
    letters: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.letters.get(self.at).copied()
    }

    /// Takes letters as long as they are `wanted`.
    fn run(&mut self, into: &mut String, wanted: impl Fn(u8) -> bool) {
        while let Some(letter) = self.peek().filter(|letter| wanted(*letter)) {
            into.push(char::from(letter.to_ascii_lowercase()));
            self.at += 1;
        }
    }

    fn spaces(&mut self) {
        while self
            .peek()
            .is_some_and(|letter| letter.is_ascii_whitespace())
        {
            self.at += 1;
        }
    }

    /// Takes the next letter, whatever it is.
    fn one(&mut self, into: &mut String) {
        if let Some(letter) = self.peek() {
            into.push(char::from(letter.to_ascii_lowercase()));
            self.at += 1;
        }
    }

    fn digits(&mut self, into: &mut String) {
        self.run(into, |letter| letter.is_ascii_digit());
    }

    /// A piece that begins with a digit.
    fn number(&mut self) -> Piece {
        let mut text = String::new();
        self.digits(&mut text);
        let shape = match self.peek() {
            Some(b':') => {
                self.run(&mut text, |letter| {
                    letter.is_ascii_digit() || matches!(letter, b':' | b'.')
                });
                Shape::Time
            }
            Some(mark @ (b'-' | b'/' | b'.')) => {
                self.one(&mut text);
                match self.peek() {
                    Some(next) if next.is_ascii_digit() => {
                        self.digits(&mut text);
                        if self.peek() == Some(mark) {
                            self.run(&mut text, |letter| {
                                letter.is_ascii_digit() || letter == mark
                            });
                            Shape::Date
                        } else if mark == b'.' {
                            Shape::Number
                        } else {
                            Shape::Date
                        }
                    }
                    _ => {
                        self.run(&mut text, |letter| {
                            letter.is_ascii_alphanumeric() || letter == mark
                        });
                        // A point at the end of a number belongs to it.
                        if mark == b'.' && text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
                            Shape::Number
                        } else {
                            Shape::Date
                        }
                    }
                }
            }
            _ => Shape::Number,
        };
        Piece { shape, text }
    }

    /// A piece that begins with a letter; `known` says which words stand for themselves before digits.
    fn word(&mut self, known: fn(&str) -> bool) -> Piece {
        let mut text = String::new();
        self.run(&mut text, |letter| letter.is_ascii_alphabetic());
        let joined = match self.peek() {
            Some(b'-' | b'/' | b'.') => true,
            Some(letter) if letter == b'+' || letter.is_ascii_digit() => !known(&text),
            _ => false,
        };
        if joined {
            self.run(&mut text, |letter| {
                letter.is_ascii_alphanumeric()
                    || matches!(letter, b'+' | b'-' | b'/' | b'_' | b'.' | b':')
            });
            return Piece {
                shape: Shape::Date,
                text,
            };
        }
        // Of the name of a zone.
        if self.peek() == Some(b'_') {
            self.run(&mut text, |letter| {
                letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'/' | b'-')
            });
        }
        Piece {
            shape: Shape::Word,
            text,
        }
    }

    /// A piece that begins with a sign; none if nothing follows that has one.
    fn signed(&mut self) -> Option<Piece> {
        let mut text = String::new();
        self.one(&mut text);
        self.spaces();
        let shape = match self.peek()? {
            letter if letter.is_ascii_digit() => {
                self.run(&mut text, |letter| {
                    letter.is_ascii_digit() || matches!(letter, b':' | b'.' | b'-')
                });
                Shape::Signed
            }
            letter if letter.is_ascii_alphabetic() => {
                self.run(&mut text, |letter| letter.is_ascii_alphabetic());
                Shape::SignedWord
            }
            _ => return None,
        };
        Some(Piece { shape, text })
    }
}

/// The pieces of a text; none if it is none of dates, times or intervals. `known` says which words stand for themselves
/// before digits, as the `J` of `J2451187`.
pub(crate) fn pieces(text: &str, known: fn(&str) -> bool) -> Option<Vec<Piece>> {
    if text.len() > LONGEST || !text.is_ascii() {
        return None;
    }
    let mut reader = Reader {
        letters: text.as_bytes(),
        at: 0,
    };
    let mut found = Vec::new();
    while let Some(letter) = reader.peek() {
        let piece = match letter {
            letter if letter.is_ascii_whitespace() => {
                reader.spaces();
                continue;
            }
            letter if letter.is_ascii_digit() => reader.number(),
            b'.' => {
                let mut text = String::new();
                reader.one(&mut text);
                reader.digits(&mut text);
                Piece {
                    shape: Shape::Number,
                    text,
                }
            }
            letter if letter.is_ascii_alphabetic() => reader.word(known),
            b'+' | b'-' => reader.signed()?,
            // Other marks stand between pieces.
            letter if letter.is_ascii_punctuation() => {
                reader.at += 1;
                continue;
            }
            _ => return None,
        };
        if found.len() == MOST {
            return None;
        }
        found.push(piece);
    }
    Some(found)
}

/// The runs of digits and of letters in a text.
pub(crate) fn runs(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let kind: fn(&u8) -> bool = match bytes[at] {
            b if b.is_ascii_digit() => u8::is_ascii_digit,
            b if b.is_ascii_alphabetic() => u8::is_ascii_alphabetic,
            _ => {
                at += 1;
                continue;
            }
        };
        let start = at;
        while at < bytes.len() && kind(&bytes[at]) {
            at += 1;
        }
        found.push(&text[start..at]);
    }
    found
}

/// The nanoseconds of the digits behind a point, rounded; none if they are no digits.
pub(crate) fn fraction(digits: &str) -> Option<i64> {
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut value = 0;
    for at in 0..9 {
        let digit = digits.as_bytes().get(at).map_or(0, |b| i64::from(b - b'0'));
        value = value * 10 + digit;
    }
    let up = digits.as_bytes().get(9).is_some_and(|b| *b >= b'5');
    Some(value + i64::from(up))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fall_into_pieces() {
        use Shape::{Date, Number, Signed, Time, Word};
        let known = |word: &str| matches!(word, "j" | "t");
        for (text, wanted) in [
            (
                "January 8, 1999",
                vec![(Word, "january"), (Number, "8"), (Number, "1999")],
            ),
            ("1999-01-08", vec![(Date, "1999-01-08")]),
            ("08-Jan-99", vec![(Date, "08-jan-99")]),
            ("Jan-08-1999", vec![(Date, "jan-08-1999")]),
            (
                "20011227T040506.789-08",
                vec![
                    (Number, "20011227"),
                    (Word, "t"),
                    (Number, "040506.789"),
                    (Signed, "-08"),
                ],
            ),
            (
                "04:05:06.5 PM -8:30",
                vec![(Time, "04:05:06.5"), (Word, "pm"), (Signed, "-8:30")],
            ),
            ("J2451187", vec![(Word, "j"), (Number, "2451187")]),
            (
                "12:00 America/New_York",
                vec![(Time, "12:00"), (Date, "america/new_york")],
            ),
            (
                "@ 1 day -2.5 h",
                vec![(Number, "1"), (Word, "day"), (Signed, "-2.5"), (Word, "h")],
            ),
            ("PST8PDT", vec![(Date, "pst8pdt")]),
        ] {
            let found = pieces(text, known).unwrap();
            let found: Vec<_> = found.iter().map(|p| (p.shape, p.text.as_str())).collect();
            assert_eq!(found, wanted, "{text}");
        }
        assert_eq!(pieces("1 - ", known), None);
        assert_eq!(pieces("\u{fc}", known), None);
    }

    #[test]
    fn fractions_are_rounded() {
        assert_eq!(fraction("5"), Some(500_000_000));
        assert_eq!(fraction(""), Some(0));
        assert_eq!(fraction("1234567895"), Some(123_456_790));
        assert_eq!(fraction("5x"), None);
    }
}
