//! Numbers from texts by the patterns of `to_number`.

use crate::number_pattern::{Anchor, NumberPattern, Piece};

/// The number that `text` has in this pattern: digits with a point, perhaps behind a sign. It is not divided by its
/// [tens](NumberPattern::tens).
///
/// # Errors
/// For patterns that do not read.
pub(super) fn read(pattern: &NumberPattern, text: &str) -> Result<String, String> {
    if pattern.roman {
        return Err("\"RN\" not supported for input".into());
    }
    if pattern.exponent {
        return Err("\"EEEE\" not supported for input".into());
    }
    let mut reading = Reading {
        pattern,
        text: text.chars().collect(),
        at: 0,
        sign: None,
        number: String::new(),
        before: 0,
        behind: 0,
        point: false,
    };
    for piece in &pattern.pieces {
        if reading.at >= reading.text.len() {
            break;
        }
        reading.piece(piece);
    }
    let whole = reading.number.split('.').next().unwrap_or_default();
    if whole.trim_start_matches('0').len() > pattern.before + pattern.shift {
        return Err("numeric field overflow".into());
    }
    let sign = if reading.sign == Some('-') { "-" } else { "" };
    Ok(format!("{sign}{}", reading.number.trim_end_matches('.')))
}

/// A text in which a number is being read.
#[derive(Debug)]
struct Reading<'p> {
    pattern: &'p NumberPattern,
    text: Vec<char>,
    at: usize,
    sign: Option<char>,
    number: String,
    before: usize,
    behind: usize,
    point: bool,
}

impl Reading<'_> {
    fn letter(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn piece(&mut self, piece: &Piece) {
        match piece {
            Piece::Nine | Piece::Zero | Piece::Point => {
                self.digit(piece);
                self.at += 1;
            }
            Piece::Comma if !self.pattern.bare && self.letter() == Some(',') => self.at += 1,
            Piece::Comma | Piece::Mark | Piece::Roman(_) => {}
            Piece::Minus | Piece::Plus | Piece::Sign => match (self.letter(), piece) {
                (Some(c @ '-'), Piece::Minus | Piece::Sign)
                | (Some(c @ '+'), Piece::Plus | Piece::Sign) => {
                    self.sign = Some(c);
                    self.at += 1;
                }
                _ => self.skip(1),
            },
            Piece::Ordinal(_) => self.skip(2),
            Piece::Currency => self.skip(1),
            // A letter of the pattern stands for any.
            Piece::Text(_) => self.at += 1,
        }
    }

    /// Passes letters that are no part of a number.
    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            match self.letter() {
                Some(c) if !"0123456789.,+-".contains(c) => self.at += 1,
                _ => return,
            }
        }
    }

    fn digit(&mut self, piece: &Piece) {
        if self.letter() == Some(' ') {
            self.at += 1;
        }
        let pattern = self.pattern;
        if self.sign.is_none() && *piece != Piece::Point && self.before + self.behind == 0 {
            self.sign = match self.letter() {
                Some('<') if pattern.brackets => Some('-'),
                letter => letter.filter(|letter| matches!(letter, '-' | '+')),
            };
            if self.sign.is_some() {
                self.at += 1;
            }
        }
        let Some(letter) = self.letter() else {
            return;
        };
        let mut is_read = false;
        if letter.is_ascii_digit() {
            if self.point && self.behind == pattern.behind {
                return;
            }
            self.number.push(letter);
            if self.point {
                self.behind += 1;
            } else {
                self.before += 1;
            }
            is_read = true;
        } else if pattern.point && !self.point && letter == '.' {
            self.number.push('.');
            self.point = true;
            is_read = true;
        }
        if self.sign.is_some() || self.before + self.behind == 0 {
            return;
        }
        let next = self.text.get(self.at + 1).copied();
        if pattern.sign != Anchor::None && is_read {
            self.sign = next.filter(|next| matches!(next, '-' | '+'));
            self.at += usize::from(self.sign.is_some());
        } else if !is_read
            && pattern.sign == Anchor::None
            && (pattern.plus || pattern.minus)
            && matches!(letter, '-' | '+')
        {
            self.sign = Some(letter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_postgresql_reads_them() {
        for (text, pattern, wanted) in [
            ("-34,338,492", "99G999G999", "-34338492"),
            (
                "-34,338,492.654,878",
                "99G999G999D999G999",
                "-34338492.654878",
            ),
            ("<564646.654564>", "999999.999999PR", "-564646.654564"),
            ("0.00001-", "9.999999S", "-0.00001"),
            ("5.01-", "FM9.999999S", "-5.01"),
            ("5.01-", "FM9.999999MI", "-5.01"),
            ("5 4 4 4 4 8 . 7 8", "9 9 9 9 9 9 . 9 9", "544448.78"),
            (".01", "FM9.99", ".01"),
            ("0", "99.99", "0"),
            ("34,50", "999,99", "3450"),
            ("$1,234.56", "L9,999.99", "1234.56"),
        ] {
            let parsed = NumberPattern::parse(pattern).unwrap();
            assert_eq!(read(&parsed, text).unwrap(), wanted, "{text} {pattern}");
        }
    }
}
