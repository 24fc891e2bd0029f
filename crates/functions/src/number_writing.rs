//! Numbers by the patterns of `to_char`, place by place.

use crate::number_pattern::{Anchor, NumberPattern, Piece};

/// `number`, digits with a point and [places](NumberPattern::places) behind it, perhaps behind a `-`.
///
/// # Errors
/// If an ordinal's ending follows no digit.
pub(super) fn write(pattern: &NumberPattern, number: &str) -> Result<String, String> {
    let (negative, digits) = match number.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, number),
    };
    if pattern.roman {
        return Ok(written_roman(pattern, digits, negative));
    }
    let whole = digits.find('.').unwrap_or(digits.len());
    let before = pattern.before + pattern.shift;
    let mut shown: Vec<char> = digits.chars().collect();
    let spaces = before.saturating_sub(whole);
    if whole > before {
        shown = vec!['#'; before + pattern.behind + 1];
        shown[before] = '.';
    }
    Writing::new(pattern, shown, before, spaces, negative).run()
}

fn written_roman(pattern: &NumberPattern, digits: &str, negative: bool) -> String {
    let value = digits.split('.').next().and_then(|text| text.parse().ok());
    let text = match value {
        Some(value @ 1..=3999) if !negative => roman(value),
        _ => "#".repeat(15),
    };
    let mut out = String::new();
    for piece in &pattern.pieces {
        match piece {
            Piece::Roman(lower) => {
                let text = if *lower {
                    text.to_lowercase()
                } else {
                    text.clone()
                };
                out.push_str(&if pattern.bare {
                    text
                } else {
                    format!("{text:>15}")
                });
            }
            Piece::Text(letter) => out.push(*letter),
            _ => {}
        }
    }
    out
}

/// A number in Roman digits.
fn roman(mut value: u32) -> String {
    const DIGITS: [(u32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut out = String::new();
    for (worth, digit) in DIGITS {
        while value >= worth {
            out.push_str(digit);
            value -= worth;
        }
    }
    out
}

/// A number that is being written. The places of the pattern are counted from the left; the number begins `spaces` of them
/// further right.
#[derive(Debug)]
struct Writing<'p> {
    pattern: &'p NumberPattern,
    number: Vec<char>,
    /// Which character of the number comes next.
    next: usize,
    /// The place that comes next, and how many there are.
    place: usize,
    places: usize,
    spaces: usize,
    negative: bool,
    sign_is_written: bool,
    brackets: bool,
    /// The last character behind the point that is written, where trailing zeros are left out.
    last: Option<usize>,
    /// Whether a digit has been written: commas before are blanks.
    begun: bool,
    out: String,
    /// Where the text ends, if that is before the end of the pattern.
    end: Option<usize>,
}

impl<'p> Writing<'p> {
    fn new(
        pattern: &'p NumberPattern,
        number: Vec<char>,
        before: usize,
        spaces: usize,
        negative: bool,
    ) -> Writing<'p> {
        let sign_is_written = if pattern.plus || pattern.minus {
            pattern.minus
        } else {
            !negative && pattern.bare && pattern.sign == Anchor::None
        };
        let mut last = None;
        if pattern.bare && pattern.point {
            let point = number.iter().position(|c| *c == '.');
            last = point.map(|point| {
                let digit = number.iter().rposition(|c| *c != '0');
                digit.unwrap_or(point).max(point)
            });
            if let Some(own) = last
                && pattern.last_zero > spaces
            {
                let zero = (number.len() - 1).min(pattern.last_zero - spaces);
                last = Some(own.max(zero));
            }
        }
        let blank = usize::from(!sign_is_written && spaces == 0);
        Writing {
            pattern,
            next: 0,
            place: 0,
            places: (pattern.behind + before + blank).saturating_sub(1),
            number,
            spaces,
            negative,
            sign_is_written,
            brackets: pattern.brackets
                && (negative || !pattern.bare || pattern.plus || pattern.minus),
            last,
            begun: false,
            out: String::new(),
            end: None,
        }
    }

    fn run(mut self) -> Result<String, String> {
        let pattern = self.pattern;
        for piece in &pattern.pieces {
            match piece {
                Piece::Nine | Piece::Zero | Piece::Point => self.digit(piece),
                Piece::Comma if self.begun => self.out.push(','),
                Piece::Comma => self.blank(),
                Piece::Currency => self.out.push(' '),
                Piece::Minus if self.negative => self.out.push('-'),
                Piece::Plus if !self.negative => self.out.push('+'),
                Piece::Minus | Piece::Plus => self.blank(),
                Piece::Sign => self.out.push(if self.negative { '-' } else { '+' }),
                Piece::Ordinal(lower) => self.ordinal(*lower)?,
                Piece::Text(letter) => self.out.push(*letter),
                Piece::Roman(_) | Piece::Mark => {}
            }
        }
        if let Some(end) = self.end {
            self.out.truncate(end);
        }
        Ok(self.out)
    }

    fn blank(&mut self) {
        if !self.pattern.bare {
            self.out.push(' ');
        }
    }

    fn ordinal(&mut self, lower: bool) -> Result<(), String> {
        if self.negative || self.pattern.point || self.number.first() == Some(&'#') {
            return Ok(());
        }
        let digit = |back: usize| {
            self.number
                .len()
                .checked_sub(back)
                .map(|at| self.number[at])
        };
        let ending = match (digit(2), digit(1)) {
            (Some('1'), _) => "th",
            (_, Some('1')) => "st",
            (_, Some('2')) => "nd",
            (_, Some('3')) => "rd",
            (_, Some(c)) if c.is_ascii_digit() => "th",
            _ => return Err("an ordinal's ending follows a digit".into()),
        };
        self.out.push_str(&if lower {
            ending.to_string()
        } else {
            ending.to_uppercase()
        });
        Ok(())
    }

    /// Whether the zero before a point is left out, as no `0` asks for it.
    fn is_blank_zero(&self) -> bool {
        !self.asks_zero()
            && self.next == 0
            && self.number.first() == Some(&'0')
            && self.pattern.behind != 0
    }

    fn asks_zero(&self) -> bool {
        self.pattern.first_zero.is_some()
    }

    /// Whether the last character that is written is the point itself.
    fn ends_at_point(&self) -> bool {
        self.last.is_some_and(|last| self.number[last] == '.')
    }

    fn sign(&mut self) {
        let pattern = self.pattern;
        let (minus, plus) = match (pattern.sign, self.brackets) {
            (Anchor::Before, _) => ('-', Some('+')),
            (Anchor::Behind, _) => return,
            (Anchor::None, true) => ('<', Some(' ')),
            (Anchor::None, false) => ('-', (!pattern.bare).then_some(' ')),
        };
        self.out
            .extend(if self.negative { Some(minus) } else { plus });
        self.sign_is_written = true;
    }

    fn digit(&mut self, piece: &Piece) {
        let pattern = self.pattern;
        self.begun = false;
        let zero_here = pattern.first_zero.is_some_and(|first| first <= self.place);
        let starts = self.place >= self.spaces || pattern.first_zero == Some(self.place);
        if !self.sign_is_written && starts && (!self.is_blank_zero() || self.ends_at_point()) {
            self.sign();
        }
        if self.place < self.spaces && !zero_here {
            self.blank();
        } else if self.place < self.spaces {
            self.out.push('0');
            self.begun = true;
        } else {
            self.character(piece);
        }
        let places = self.places + usize::from(self.spaces > 0) + usize::from(pattern.point);
        let end = match self.last {
            Some(last) if last == self.next => self.place,
            _ => places,
        };
        if self.place + 1 == end {
            if self.sign_is_written && self.brackets {
                self.out.push(if self.negative { '>' } else { ' ' });
            } else if pattern.sign == Anchor::Behind {
                self.out.push(if self.negative { '-' } else { '+' });
            }
        }
        self.place += 1;
    }

    /// The next character of the number.
    fn character(&mut self, piece: &Piece) {
        let is_left_out = self.last.is_some_and(|last| self.next > last);
        let Some(&letter) = self.number.get(self.next) else {
            // PostgreSQL writes the end of the number here, and with it that of the text.
            if !is_left_out || *piece == Piece::Zero {
                self.end = self.end.or(Some(self.out.len()));
            }
            return;
        };
        if letter == '.' {
            self.out.push('.');
        } else if !is_left_out || *piece == Piece::Zero {
            if !self.is_blank_zero() {
                self.out.push(letter);
                self.begun = true;
            } else if !self.pattern.bare {
                self.out.push(' ');
            } else if self.ends_at_point() {
                self.out.push('0');
            }
        }
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_postgresql_writes_them() {
        for (number, pattern, wanted) in [
            ("-0.1", "99.99", "  -.10"),
            ("-0.1", "FM9.99", "-.1"),
            ("-0.1", "FM90.99", "-0.1"),
            ("0.1", "0.9", " 0.1"),
            ("12", "9990999.9", "    0012.0"),
            ("12", "FM9990999.9", "0012."),
            ("485", "999", " 485"),
            ("-485", "999", "-485"),
            ("485", "9 9 9", " 4 8 5"),
            ("1485", "9,999", " 1,485"),
            ("1485", "9G999", " 1,485"),
            ("148.5", "999.999", " 148.500"),
            ("148.5", "FM999.999", "148.5"),
            ("148.5", "FM999.990", "148.500"),
            ("3148.5", "9G999D999", " 3,148.500"),
            ("-485", "999S", "485-"),
            ("-485", "999MI", "485-"),
            ("485", "999MI", "485 "),
            ("485", "FM999MI", "485"),
            ("485", "PL999", "+ 485"),
            ("485", "SG999", "+485"),
            ("-485", "SG999", "-485"),
            ("-485", "9SG99", "4-85"),
            ("-485", "999PR", "<485>"),
            ("485", "L999", "  485"),
            ("485", "RN", "        CDLXXXV"),
            ("485", "FMRN", "CDLXXXV"),
            ("5.2", "FMRN", "V"),
            ("482", "999th", " 482nd"),
            ("485", "\"Good number:\"999", "Good number: 485"),
            ("485.8", "\"Pre:\"999\" Post:\" .999", "Pre: 485 Post: .800"),
            ("123456", "999", " ###"),
        ] {
            let parsed = NumberPattern::parse(pattern).unwrap();
            let digits = format!("{:.*}", parsed.places(), number.parse::<f64>().unwrap());
            assert_eq!(write(&parsed, &digits).unwrap(), wanted, "{pattern}");
        }
    }
}
