//! The patterns by which `to_char` writes numbers and `to_number` reads them, as PostgreSQL has them: `FM999G990D00MI`.

/// A parsed pattern.
#[derive(Debug, Default)]
pub(super) struct NumberPattern {
    pub(super) pieces: Vec<Piece>,
    /// Places before the point, and behind it.
    pub(super) before: usize,
    pub(super) behind: usize,
    /// Places behind `V`: by how many tens the number is multiplied.
    pub(super) shift: usize,
    /// At which place before the point the first `0` stands, and at which of all the last.
    pub(super) first_zero: Option<usize>,
    pub(super) last_zero: usize,
    pub(super) bare: bool,
    pub(super) point: bool,
    pub(super) sign: Anchor,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) brackets: bool,
    pub(super) roman: bool,
    pub(super) exponent: bool,
}

/// Where `S` stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Anchor {
    #[default]
    None,
    Before,
    Behind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Nine,
    Zero,
    Point,
    Comma,
    Currency,
    Minus,
    Plus,
    Sign,
    Roman(bool),
    Ordinal(bool),
    /// What changes others and writes nothing itself.
    Mark,
    Text(char),
}

/// The words of patterns; of those that begin alike the longest comes first.
const WORDS: [&str; 20] = [
    "EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH", ",", ".", "0", "9", "B", "C", "D", "G",
    "L", "S", "V",
];

/// Most digits of numbers: patterns have no more places.
const MOST: usize = 200;

impl NumberPattern {
    /// # Errors
    /// For patterns that contradict themselves, and for what is not supported.
    pub(super) fn parse(text: &str) -> Result<NumberPattern, String> {
        let mut own = NumberPattern::default();
        let mut shifted = false;
        let mut first_sign = None;
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if first == '"' {
                rest = own.quoted(&rest[1..]);
                continue;
            }
            let word = WORDS.iter().find(|word| {
                let lower = word.to_ascii_lowercase();
                rest.starts_with(**word) || rest.starts_with(&lower)
            });
            let Some(word) = word else {
                let escaped = first == '\\' && rest[1..].starts_with('"');
                let letter = if escaped { '"' } else { first };
                own.pieces.push(Piece::Text(letter));
                rest = &rest[first.len_utf8() + usize::from(escaped)..];
                continue;
            };
            let lower = rest.starts_with(|c: char| c.is_ascii_lowercase());
            rest = &rest[word.len()..];
            if own.exponent && !matches!(*word, "FM") {
                return Err("\"EEEE\" must be the last pattern used".into());
            }
            let piece = own.word(word, lower, &mut shifted, &mut first_sign)?;
            own.pieces.push(piece);
        }
        if own.before + own.behind + own.shift > MOST {
            return Err(format!("a pattern has up to {MOST} places"));
        }
        // A sign that stands behind all places before the point stands behind the number.
        if own.sign == Anchor::Before && first_sign == Some(own.before + own.shift) {
            own.sign = Anchor::Behind;
        }
        let others = own.sign != Anchor::None || own.minus || own.plus || own.brackets;
        if own.exponent && (others || own.bare || own.roman || shifted) {
            return Err("\"EEEE\" is incompatible with other formats".into());
        }
        Ok(own)
    }

    /// Takes the text up to the closing quote, and returns what is behind it.
    fn quoted<'a>(&mut self, text: &'a str) -> &'a str {
        let mut letters = text.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => return &text[at + 1..],
                '\\' => {
                    if let Some((_, next)) = letters.next() {
                        self.pieces.push(Piece::Text(next));
                    }
                }
                letter => self.pieces.push(Piece::Text(letter)),
            }
        }
        ""
    }

    fn word(
        &mut self,
        word: &str,
        lower: bool,
        shifted: &mut bool,
        first_sign: &mut Option<usize>,
    ) -> Result<Piece, String> {
        Ok(match word {
            "9" | "0" => return self.digit(word, *shifted),
            "." | "D" => {
                if self.point {
                    return Err("multiple decimal points".into());
                }
                if *shifted {
                    return Err("cannot use \"V\" and decimal point together".into());
                }
                self.point = true;
                Piece::Point
            }
            "," | "G" => Piece::Comma,
            "L" => Piece::Currency,
            "FM" => {
                self.bare = true;
                Piece::Mark
            }
            "S" | "MI" | "PL" | "SG" | "PR" => return self.sign_word(word, first_sign),
            "V" => {
                if self.point {
                    return Err("cannot use \"V\" and decimal point together".into());
                }
                *shifted = true;
                Piece::Mark
            }
            "RN" => {
                self.roman = true;
                Piece::Roman(lower)
            }
            "TH" => Piece::Ordinal(lower),
            "EEEE" => {
                self.exponent = true;
                Piece::Mark
            }
            other => return Err(format!("\"{other}\" in a pattern is not supported")),
        })
    }

    /// A place for a digit.
    fn digit(&mut self, word: &str, shifted: bool) -> Result<Piece, String> {
        if self.brackets {
            return Err(format!("\"{word}\" must be ahead of \"PR\""));
        }
        if word == "0" && self.first_zero.is_none() && !self.point {
            self.first_zero = Some(self.before);
        }
        let place = match (shifted, self.point) {
            (true, _) if word == "9" => &mut self.shift,
            (_, true) => &mut self.behind,
            _ => &mut self.before,
        };
        *place += 1;
        if word == "0" {
            self.last_zero = self.before + self.behind;
            return Ok(Piece::Zero);
        }
        Ok(Piece::Nine)
    }

    /// A word that says where and how a sign is written.
    fn sign_word(&mut self, word: &str, first_sign: &mut Option<usize>) -> Result<Piece, String> {
        Ok(match word {
            "S" => {
                if self.sign != Anchor::None {
                    return Err("cannot use \"S\" twice".into());
                }
                if self.plus || self.minus || self.brackets {
                    return Err("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together".into());
                }
                if self.point {
                    self.sign = Anchor::Behind;
                } else {
                    self.sign = Anchor::Before;
                    *first_sign = Some(self.before);
                }
                Piece::Mark
            }
            "MI" | "PL" | "SG" => {
                if self.sign != Anchor::None {
                    return Err(format!("cannot use \"S\" and \"{word}\" together"));
                }
                self.minus |= word != "PL";
                self.plus |= word != "MI";
                match word {
                    "MI" => Piece::Minus,
                    "PL" => Piece::Plus,
                    _ => Piece::Sign,
                }
            }
            _ => {
                if self.sign != Anchor::None || self.plus || self.minus {
                    return Err("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together".into());
                }
                self.brackets = true;
                Piece::Mark
            }
        })
    }

    /// How many places behind the point are written.
    pub(super) fn places(&self) -> usize {
        self.behind
    }

    /// By how many tens the number is multiplied before it is written, or was before it is read.
    pub(super) fn tens(&self) -> usize {
        self.shift
    }

    /// Whether the number is written with an exponent.
    pub(super) fn has_exponent(&self) -> bool {
        self.exponent
    }

    /// Whether it is written in Roman digits.
    pub(super) fn is_roman(&self) -> bool {
        self.roman
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_contradict_themselves_are_refused() {
        for pattern in [
            "9.9.9", "SS9", "9PR9", "S9MI", "9V9.9", "9EEEE9", "FM9EEEE", "9B",
        ] {
            assert!(NumberPattern::parse(pattern).is_err(), "{pattern}");
        }
    }
}
