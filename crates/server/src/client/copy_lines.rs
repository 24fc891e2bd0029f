//! The lines of `copy` from the client: pieces that end anywhere, cut where lines of text or CSV end.

use atoll::TransferFormat;
use memchr::{memchr, memchr3_iter, memrchr};

/// Bytes of lines that are cut off together, about: enough to be worth a task, few enough to stay in a core's cache.
pub(crate) const PART: usize = 256 << 10;

/// Most bytes of a line, which is kept until its end has come.
const LONGEST: usize = 256 << 20;

/// Cuts what comes in pieces after line ends.
#[derive(Debug)]
pub(crate) struct Cutter {
    /// Quote and escape of CSV.
    quotes: Option<(u8, u8)>,
    /// Bytes of lines that are cut off together.
    part: usize,
    /// Bytes from `taken` on are still to be cut off. The places that follow count from there.
    bytes: Vec<u8>,
    taken: usize,
    /// Up to where was looked for ends of lines.
    looked: usize,
    /// Behind the last line end of CSV that was seen; 0 if none was.
    end: usize,
    /// Whether what was looked at ends within quotes.
    quoted: bool,
    /// The byte that an escape within quotes stands before.
    escaped: Option<usize>,
}

impl Cutter {
    /// Cuts lines of this format, about `part` bytes of them at a time.
    pub(crate) fn new(format: &TransferFormat, part: usize) -> Cutter {
        let quotes = match format {
            TransferFormat::Csv { quote, escape, .. } => Some((*quote, *escape)),
            _ => None,
        };
        Cutter {
            quotes,
            part,
            bytes: Vec::new(),
            taken: 0,
            looked: 0,
            end: 0,
            quoted: false,
            escaped: None,
        }
    }

    /// Takes more bytes.
    pub(crate) fn push(&mut self, more: &[u8]) {
        if self.taken > 0 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(more);
    }

    /// Cuts whole lines off, once there are many bytes; however few there are if `all` have come. None if no line ends in
    /// what is left.
    pub(crate) fn lines(&mut self, all: bool) -> Option<Vec<u8>> {
        if !all && self.bytes.len() - self.taken < self.part {
            return None;
        }
        let end = match self.quotes {
            Some((quote, escape)) => self.csv_end(quote, escape),
            None => self.text_end(),
        };
        end.map(|end| self.cut(end))
    }

    /// Cuts off what is left: a line without its end.
    pub(crate) fn rest(&mut self) -> Option<Vec<u8>> {
        let left = self.bytes.len() - self.taken;
        (left > 0).then(|| self.cut(left))
    }

    /// Bytes that have come and are not cut off yet.
    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// Whether a line that has not ended is longer than what is kept. Told right when there are no more
    /// [lines](Cutter::lines).
    pub(crate) fn is_too_long(&self) -> bool {
        self.bytes.len() - self.taken > LONGEST
    }

    fn cut(&mut self, end: usize) -> Vec<u8> {
        let lines = self.bytes[self.taken..self.taken + end].to_vec();
        self.taken += end;
        self.looked = self.looked.saturating_sub(end);
        self.escaped = self.escaped.and_then(|at| at.checked_sub(end));
        self.end = 0;
        lines
    }

    /// Behind the last line that ends within a part, or the first one behind it.
    fn text_end(&mut self) -> Option<usize> {
        let bytes = &self.bytes[self.taken..];
        let near = &bytes[..bytes.len().min(self.part)];
        if self.looked < near.len() {
            let mut until = near.len();
            while let Some(at) = memrchr(b'\n', &near[..until]) {
                if !is_escaped(near, at) {
                    return Some(at + 1);
                }
                until = at;
            }
            self.looked = near.len();
        }
        while let Some(at) = memchr(b'\n', &bytes[self.looked..]) {
            let at = self.looked + at;
            self.looked = at + 1;
            if !is_escaped(bytes, at) {
                return Some(at + 1);
            }
        }
        self.looked = bytes.len();
        None
    }

    /// Behind the first line that ends behind a part, or the last one that ends before.
    fn csv_end(&mut self, quote: u8, escape: u8) -> Option<usize> {
        let bytes = &self.bytes[self.taken..];
        let from = self.looked;
        for at in memchr3_iter(quote, escape, b'\n', &bytes[from..]) {
            let at = from + at;
            if self.escaped == Some(at) {
                continue;
            }
            let byte = bytes[at];
            if self.quoted && byte == escape && escape != quote {
                self.escaped = Some(at + 1);
            } else if byte == quote {
                // A doubled one ends the quotes and begins them again, which comes to the same.
                self.quoted = !self.quoted;
            } else if byte == b'\n' && !self.quoted {
                self.end = at + 1;
                if self.end >= self.part {
                    self.looked = self.end;
                    return Some(self.end);
                }
            }
        }
        self.looked = bytes.len();
        (self.end > 0).then_some(self.end)
    }
}

/// Whether a backslash stands before the byte at `at` that none stands before itself. `bytes` begin with a line.
fn is_escaped(bytes: &[u8], at: usize) -> bool {
    let backslashes = bytes[..at].iter().rev();
    backslashes.take_while(|byte| **byte == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use atoll::{Forced, HeaderLine};

    use super::*;

    fn text() -> TransferFormat {
        TransferFormat::Text {
            delimiter: b'\t',
            null: "\\N".into(),
            header: HeaderLine::Row,
        }
    }

    fn csv(escape: u8) -> TransferFormat {
        TransferFormat::Csv {
            delimiter: b',',
            quote: b'"',
            escape,
            null: String::new(),
            header: HeaderLine::Row,
            force_quote: Forced::None,
            force_null: Forced::None,
            force_not_null: Forced::None,
        }
    }

    /// What is cut off of `bytes` in pieces of `piece`.
    fn cut(format: &TransferFormat, part: usize, bytes: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let mut cutter = Cutter::new(format, part);
        let mut found = Vec::new();
        for piece in bytes.chunks(piece) {
            cutter.push(piece);
            found.extend(std::iter::from_fn(|| cutter.lines(false)));
        }
        found.extend(std::iter::from_fn(|| cutter.lines(true)));
        found.extend(cutter.rest());
        assert!(cutter.rest().is_none());
        found
    }

    /// Where lines end, byte by byte.
    fn ends(format: &TransferFormat, bytes: &[u8]) -> Vec<usize> {
        let (mut quoted, mut escaped) = (false, false);
        let mut ends = Vec::new();
        for (at, byte) in bytes.iter().enumerate() {
            if std::mem::take(&mut escaped) {
                continue;
            }
            match format {
                TransferFormat::Csv { quote, escape, .. } => {
                    if quoted && byte == escape && escape != quote {
                        escaped = true;
                    } else if byte == quote {
                        quoted = !quoted;
                    } else if *byte == b'\n' && !quoted {
                        ends.push(at + 1);
                    }
                }
                _ if *byte == b'\\' => escaped = true,
                _ if *byte == b'\n' => ends.push(at + 1),
                _ => {}
            }
        }
        ends
    }

    #[test]
    fn lines_are_cut_where_they_end() {
        let bytes = b"one\ntw\\\no\nthree\\\\\nfour";
        let wanted: [&[u8]; 4] = [b"one\n", b"tw\\\no\n", b"three\\\\\n", b"four"];
        assert_eq!(cut(&text(), 1, bytes, 3), wanted);
        let bytes = b"one\n\"t\n\"\"w\no\"\nthree";
        let wanted: [&[u8]; 3] = [b"one\n", b"\"t\n\"\"w\no\"\n", b"three"];
        assert_eq!(cut(&csv(b'"'), 1, bytes, 2), wanted);
        let bytes = b"\"a\\\"\n\"\nb\n";
        let wanted: [&[u8]; 2] = [b"\"a\\\"\n\"\n", b"b\n"];
        assert_eq!(cut(&csv(b'\\'), 1, bytes, 1), wanted);
    }

    #[test]
    fn whatever_comes_is_cut_at_ends_of_lines_and_nothing_is_lost() {
        let mut random = fastrand::Rng::with_seed(137);
        let letters = b"ab\n\n\\\",";
        for case in 0..20_000 {
            let length = random.usize(..60);
            let letter = |_| letters[random.usize(..letters.len())];
            let bytes: Vec<u8> = (0..length).map(letter).collect();
            let format = match case % 3 {
                0 => text(),
                1 => csv(b'"'),
                _ => csv(b'\\'),
            };
            let (part, piece) = (random.usize(1..20), random.usize(1..20));
            let found = cut(&format, part, &bytes, piece);
            assert_eq!(found.concat(), bytes, "{format:?}");
            let ends = ends(&format, &bytes);
            let mut at = 0;
            for (number, part) in found.iter().enumerate() {
                at += part.len();
                let is_end = ends.contains(&at) || number + 1 == found.len();
                assert!(
                    is_end,
                    "{format:?} {:?}: {at}",
                    String::from_utf8_lossy(&bytes)
                );
            }
        }
    }

    #[test]
    fn parts_are_about_as_long_as_they_are_to_be() {
        let bytes = b"0123456789abcde\n".repeat(10_000);
        for format in [text(), csv(b'"')] {
            let found = cut(&format, 1000, &bytes, 777);
            let (last, parts) = found.split_last().unwrap();
            assert!(parts.iter().all(|part| (900..1100).contains(&part.len())));
            assert!(last.len() < 1100);
        }
    }
}
