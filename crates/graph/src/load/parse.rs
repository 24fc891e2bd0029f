//! From lines to edges. Digits are read eight at a time.

use crate::load::input::{BLOCK, Block};

/// An edge as it stands in the file. Ids are the bits of numbers with a sign: those below 0 come after all others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Edge {
    pub from: u64,
    pub to: u64,
    /// 0 where weights are not asked for.
    pub weight: f64,
}

/// What is wrong with which line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// From 1.
    pub line: u64,
    pub what: String,
}

/// Parses blocks one after the other.
#[derive(Debug)]
pub(crate) struct Parser {
    weighted: bool,
    /// Lines so far.
    pub lines: u64,
}

impl Parser {
    pub fn new(weighted: bool) -> Parser {
        Parser { weighted, lines: 0 }
    }

    /// Gives each edge of a block to `sink`.
    ///
    /// # Errors
    /// The first line that is no edge.
    pub fn parse(&mut self, block: &Block, mut sink: impl FnMut(Edge)) -> Result<(), Wrong> {
        let (text, len) = (block.padded(), block.len());
        let mut at = 0;
        if self.lines == 0 {
            at = self.head(&text[..len])?;
        }
        while at < len {
            match text[at] {
                b'\n' => at += 1,
                b' ' | b'\t' | b'\r' => {
                    at += 1;
                    continue;
                }
                b'#' | b'%' => at = self.line_end(text, at, len)?,
                _ => {
                    let (edge, end) = match plain(text, at, self.weighted) {
                        Some(found) => found,
                        None => self.slow(text, at, len)?,
                    };
                    sink(edge);
                    at = end;
                }
            }
            self.lines += 1;
        }
        Ok(())
    }

    /// What may stand before the first line.
    fn head(&self, text: &[u8]) -> Result<usize, Wrong> {
        if text.starts_with(b"%%MatrixMarket") {
            let what = "a Matrix Market file has a line of sizes, which is no edge: remove it and this line";
            return Err(self.wrong(what));
        }
        // A mark of UTF-8.
        Ok(if text.starts_with(b"\xef\xbb\xbf") {
            3
        } else {
            0
        })
    }

    /// Behind the line feed of the line that `at` is in.
    fn line_end(&self, text: &[u8], at: usize, len: usize) -> Result<usize, Wrong> {
        match memchr::memchr(b'\n', &text[at..len]) {
            Some(more) => Ok(at + more + 1),
            None => Err(self.wrong(format!("it is longer than {BLOCK} bytes"))),
        }
    }

    /// A line with weights, with more between its numbers, or one that is wrong.
    #[cold]
    #[inline(never)]
    fn wrong(&self, what: impl Into<String>) -> Wrong {
        Wrong {
            line: self.lines + 1,
            what: what.into(),
        }
    }

    /// A line that is not just two numbers. Its end is behind the line feed.
    fn slow(&self, text: &[u8], at: usize, len: usize) -> Result<(Edge, usize), Wrong> {
        let end = self.line_end(text, at, len)?;
        let mut fields = text[at..end]
            .split(|byte| matches!(byte, b' ' | b'\t' | b',' | b'\r' | b'\n'))
            .filter(|field| !field.is_empty());
        let from = self.id(fields.next())?;
        let to = self.id(fields.next())?;
        let third = fields.next();
        if fields.next().is_some() {
            return Err(self.wrong("it has more than three columns: from, to, weight"));
        }
        let weight = match (self.weighted, third) {
            (true, Some(field)) => self.weight(field)?,
            (true, None) => {
                return Err(self.wrong("it has no third column, but weights were asked for"));
            }
            (false, _) => 0.0,
        };
        Ok((Edge { from, to, weight }, end))
    }

    fn id(&self, field: Option<&[u8]>) -> Result<u64, Wrong> {
        let Some(field) = field else {
            return Err(self.wrong("it has one column; an edge has two vertex ids"));
        };
        let shown = || show(field);
        let digits = field.strip_prefix(b"-").unwrap_or(field);
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(self.wrong(format!("{} is not a vertex id, a whole number", shown())));
        }
        // Only digits and a sign are left, which are text.
        let number = std::str::from_utf8(field).ok();
        let number = number.and_then(|text| text.parse::<i64>().ok());
        number.map(i64::cast_unsigned).ok_or_else(|| {
            self.wrong(format!(
                "{} is no vertex id: these are from {} to {}",
                shown(),
                i64::MIN,
                i64::MAX
            ))
        })
    }

    fn weight(&self, field: &[u8]) -> Result<f64, Wrong> {
        let number = std::str::from_utf8(field)
            .ok()
            .and_then(|text| text.parse::<f64>().ok());
        match number {
            Some(number) if number.is_finite() => Ok(number),
            _ => Err(self.wrong(format!("{} is not a weight, a finite number", show(field)))),
        }
    }
}

/// The start of a field, for messages.
fn show(field: &[u8]) -> String {
    let most = 40;
    let more = if field.len() > most { "..." } else { "" };
    format!("'{}{more}'", field[..field.len().min(most)].escape_ascii())
}

/// A line of numbers with one separator between them and nothing after them, as nearly all are.
#[inline]
fn plain(text: &[u8], at: usize, weighted: bool) -> Option<(Edge, usize)> {
    let (from, at) = number(text, at)?;
    let (to, mut at) = number(text, separated(text, at)?)?;
    let mut weight = 0.0;
    if weighted {
        (weight, at) = decimal(text, separated(text, at)?)?;
    }
    at += usize::from(text[at] == b'\r');
    (text[at] == b'\n').then_some((Edge { from, to, weight }, at + 1))
}

/// Behind the separator.
#[inline]
fn separated(text: &[u8], at: usize) -> Option<usize> {
    matches!(text[at], b'\t' | b' ' | b',').then_some(at + 1)
}

/// A decimal number of at most 15 digits. Such a number of digits is a whole float, and so is the
/// power of ten below it, so that their quotient is the float nearest to the number.
#[inline]
fn decimal(text: &[u8], at: usize) -> Option<(f64, usize)> {
    let negative = text[at] == b'-';
    let start = at + usize::from(negative);
    let (whole, mut end) = number(text, start)?;
    let (mut digits, mut tenths) = (whole, 1);
    if text[end] == b'.' {
        let (part, after) = number(text, end + 1)?;
        tenths = 10_u64.checked_pow((after - end - 1) as u32)?;
        digits = whole.checked_mul(tenths)?.checked_add(part)?;
        end = after;
    }
    let value = digits as f64 / tenths as f64;
    // A sign and a point beside the digits.
    (end - start <= 16 && digits < 1_000_000_000_000_000)
        .then_some((if negative { -value } else { value }, end))
}

/// A number of at most 16 digits, and where it ends. `text` goes on for eight bytes behind the last line.
#[inline]
fn number(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let (high, digits) = digits(text, at)?;
    if digits < 8 {
        return (digits > 0).then_some((high, at + digits));
    }
    let (low, more) = self::digits(text, at + 8)?;
    // With 8 more digits there may be even more, which is left to the slow way.
    const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
    let power = POWERS.get(more)?;
    Some((high * power + low, at + 8 + more))
}

/// The number that the next digits are, at most eight, and how many there are.
#[inline]
fn digits(text: &[u8], at: usize) -> Option<(u64, usize)> {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let word = u64::from_le_bytes(*text.get(at..)?.first_chunk::<8>()?);
    // Digits become 0 to 9, all else more.
    let word = word ^ 0x3030_3030_3030_3030;
    // The highest bit of each byte that is more than 9.
    let other = (((word & LOW) + 0x7676_7676_7676_7676) | word) & !LOW;
    let count = (other.trailing_zeros() / 8) as usize;
    if count == 0 {
        return Some((0, 0));
    }
    // Leading zeros, then pairs, fours and eights of digits.
    let word = word << (64 - 8 * count);
    let word = (word * 10 + (word >> 8)) & 0x00ff_00ff_00ff_00ff;
    let word = (word * 100 + (word >> 16)) & 0x0000_ffff_0000_ffff;
    let word = (word * 10_000 + (word >> 32)) & 0xffff_ffff;
    Some((word, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edges(text: &str, weighted: bool) -> Result<Vec<(i64, i64, f64)>, Wrong> {
        let mut edges = Vec::new();
        let mut parser = Parser::new(weighted);
        parser.parse(&Block::of(text.as_bytes()), |edge| {
            let (from, to) = (edge.from.cast_signed(), edge.to.cast_signed());
            edges.push((from, to, edge.weight));
        })?;
        assert_eq!(parser.lines, text.lines().count() as u64);
        Ok(edges)
    }

    #[test]
    fn comments_and_line_ends_and_separators() {
        let text = "\u{feff}# a\n\n% b\r\n1 2\r\n3\t4\n  5 , 6 \n9223372036854775807,0\n-9223372036854775808 -0\n7 8 99\n \n";
        let all = vec![
            (1, 2, 0.0),
            (3, 4, 0.0),
            (5, 6, 0.0),
            (i64::MAX, 0, 0.0),
            (i64::MIN, 0, 0.0),
            (7, 8, 0.0),
        ];
        assert_eq!(edges(text, false), Ok(all));
        assert_eq!(
            edges("1 -2 -2.5e1\r\n-3,4,7\n", true),
            Ok(vec![(1, -2, -25.0), (-3, 4, 7.0)])
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, weighted, line, part) in [
            ("1 2\n3\n", false, 2, "one column"),
            ("# c\n1 2\n\n- 4\n", false, 4, "'-'"),
            ("1 --4\n", false, 1, "'--4'"),
            ("1 +4\n", false, 1, "'+4'"),
            (
                "1 9223372036854775808\n",
                false,
                1,
                "from -9223372036854775808 to",
            ),
            (
                "1 -9223372036854775809\n",
                false,
                1,
                "from -9223372036854775808 to",
            ),
            ("1 99999999999999999999999999\n", false, 1, "no vertex id"),
            ("from,to\n", false, 1, "'from'"),
            ("1 2 3 4\n", false, 1, "more than three"),
            ("1 2\n", true, 1, "no third column"),
            ("1 2 NaN\n", true, 1, "'NaN'"),
            ("1 2 inf\n", true, 1, "'inf'"),
            ("1 2x\n", false, 1, "'2x'"),
            ("1 \u{e9}\n", false, 1, "'\\xc3\\xa9'"),
            ("%%MatrixMarket matrix\n", false, 1, "Matrix Market"),
        ] {
            let wrong = edges(text, weighted).unwrap_err();
            assert_eq!(wrong.line, line, "{text}");
            assert!(wrong.what.contains(part), "{text}: {}", wrong.what);
        }
    }

    proptest! {
        #[test]
        fn numbers_of_any_length(pairs in prop::collection::vec((any::<i64>(), 0..64_u32, any::<i64>(), 0..64_u32), 1..20)) {
            let pairs: Vec<_> = pairs.iter().map(|&(a, s, b, t)| (a >> s, b >> t, 0.0)).collect();
            let text: String = pairs.iter().map(|(a, b, _)| format!("{a} {b}\n")).collect();
            prop_assert_eq!(edges(&text, false).unwrap(), pairs);
        }

        #[test]
        fn weights_are_the_nearest_floats(whole in any::<i32>(), part in any::<u64>(), places in 0..20_usize) {
            let part = &format!("{part:020}")[..places];
            let weight = format!("{whole}{}{part}", if places > 0 { "." } else { "" });
            prop_assert_eq!(edges(&format!("1 2 {weight}\n"), true).unwrap(), vec![(1, 2, weight.parse().unwrap())]);
        }

        #[test]
        fn any_bytes_are_edges_or_an_error(mut text in prop::collection::vec(prop_oneof![Just(b'1'), Just(b' '), Just(b'\n'), any::<u8>()], 0..60)) {
            text.push(b'\n');
            let _ = Parser::new(text[0] % 2 == 0).parse(&Block::of(&text), |_| ());
        }
    }
}
