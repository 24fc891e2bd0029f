//! Cuts a text file into chunks of whole records: after line ends that are not within quotes.
//!
//! This is the one place that decides where records end. A quote counts at the start of a field only, as in
//! [`super::record`], which reads the fields of a chunk; so a stray `5" pipe` neither hides the line ends after it
//! nor moves a boundary.

use std::io::{self, Read};

use memchr::{memchr, memchr_iter, memchr2, memrchr};

use crate::csv::layout::Dialect;
use crate::stream::MARK;

/// The longest record; a longer one is taken for an unclosed quote.
const LONGEST: usize = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Outside of quotes.
    Plain,
    Quoted,
    /// After an escape within quotes.
    Escaped,
    /// After a quote within quotes: a second one is a character, anything else ends the quoted part.
    Quote,
}

/// Finds the ends of records in text that comes in pieces.
#[derive(Debug)]
pub(crate) struct Scanner {
    dialect: Dialect,
    at: At,
    /// The byte before.
    before: u8,
    /// Bytes seen.
    seen: u64,
    /// Where the last quoted part began.
    opened: u64,
}

impl Scanner {
    pub fn new(dialect: Dialect) -> Scanner {
        Scanner {
            dialect,
            at: At::Plain,
            before: b'\n',
            seen: 0,
            opened: 0,
        }
    }

    /// Takes the next bytes of the file; gives how many of them there are up to the end of the last record that
    /// ends in them.
    pub fn last_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let Some(quote) = self.dialect.quote else {
            let mut end = bytes.len();
            let found = loop {
                let Some(at) = memrchr(b'\n', &bytes[..end]) else {
                    break None;
                };
                if self.dialect.backslash.is_none() || !self.is_escaped(bytes, at) {
                    break Some(at + 1);
                }
                end = at;
            };
            self.before = bytes.last().copied().unwrap_or(self.before);
            return found;
        };
        let (mut next, mut last) = (0, None);
        while next < bytes.len() {
            let rest = &bytes[next..];
            next += match self.at {
                At::Plain => {
                    let found = memchr(quote, rest);
                    let plain = &rest[..found.unwrap_or(rest.len())];
                    last = memrchr(b'\n', plain).map(|at| next + at + 1).or(last);
                    let before = plain.last().copied().unwrap_or(self.before);
                    let starts =
                        before == self.dialect.delimiter || matches!(before, b'\n' | b'\r');
                    if found.is_some() && starts {
                        self.at = At::Quoted;
                        self.opened = self.seen + (next + plain.len()) as u64;
                    }
                    plain.len() + usize::from(found.is_some())
                }
                At::Quoted => {
                    let found = match self.dialect.escape {
                        Some(escape) => memchr2(quote, escape, rest),
                        None => memchr(quote, rest),
                    };
                    match found {
                        Some(at) if rest[at] == quote => self.at = At::Quote,
                        Some(_) => self.at = At::Escaped,
                        None => {}
                    }
                    found.map_or(rest.len(), |at| at + 1)
                }
                At::Escaped => {
                    self.at = At::Quoted;
                    1
                }
                At::Quote if rest[0] == quote => {
                    self.at = At::Quoted;
                    1
                }
                At::Quote => {
                    self.at = At::Plain;
                    0
                }
            };
            if let Some(before) = next.checked_sub(1) {
                self.before = bytes[before];
            }
        }
        self.seen += bytes.len() as u64;
        last
    }

    /// Whether a backslash may stand before the byte at this place that escapes it: of those before `bytes` only the last
    /// is known.
    fn is_escaped(&self, bytes: &[u8], at: usize) -> bool {
        let before = bytes[..at].iter().rev();
        let count = before.take_while(|byte| **byte == b'\\').count();
        count % 2 == 1 || (count == at && self.before == b'\\')
    }

    /// Where the quoted part began that has not ended, in bytes from the first one seen.
    fn unclosed(&self) -> Option<u64> {
        matches!(self.at, At::Quoted | At::Escaped).then_some(self.opened)
    }
}

/// Whole records of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The file's line (counted from 1) at which `text` starts.
    pub line: u64,
    /// The records, the last of which may lack a line end.
    pub text: Vec<u8>,
}

/// Why a file cannot be cut.
#[derive(Debug)]
pub(crate) enum Uncut {
    /// It cannot be read.
    Io(io::Error),
    /// A quote that opens on this line is not closed before the end, or not within a gigabyte.
    Unclosed { line: u64 },
}

/// Cuts what a reader yields into chunks.
pub(crate) struct Chunks<R> {
    reader: R,
    scanner: Scanner,
    size: usize,
    /// Read but not yet handed out; starts at a record's start.
    rest: Vec<u8>,
    /// The end of the last record that ends in `rest`; 0 if none does.
    end: usize,
    /// Bytes handed out.
    consumed: u64,
    line: u64,
    begun: bool,
    ended: bool,
}

impl<R: Read> Chunks<R> {
    /// Chunks of about `size` bytes, more where records are longer.
    pub fn new(reader: R, dialect: Dialect, size: usize) -> Chunks<R> {
        Chunks {
            reader,
            scanner: Scanner::new(dialect),
            size: size.max(1),
            rest: Vec::new(),
            end: 0,
            consumed: 0,
            line: 1,
            begun: false,
            ended: false,
        }
    }

    /// Reads on until `target` bytes are there.
    fn fill(&mut self, target: usize) -> io::Result<()> {
        let target = if self.begun {
            target
        } else {
            target.max(MARK.len())
        };
        let before = self.rest.len();
        let missing = target.saturating_sub(before);
        self.rest.reserve(missing);
        let read = self
            .reader
            .by_ref()
            .take(missing as u64)
            .read_to_end(&mut self.rest)?;
        self.ended = read < missing;
        if !self.begun && self.rest.starts_with(MARK) {
            self.rest.drain(..MARK.len());
        }
        self.begun = true;
        if let Some(end) = self.scanner.last_end(&self.rest[before..]) {
            self.end = before + end;
        }
        Ok(())
    }

    fn cut(&mut self) -> Result<Option<Chunk>, Uncut> {
        let mut target = self.size;
        while !self.ended && (self.rest.len() < target || self.end == 0) {
            if self.rest.len() >= target {
                if target >= LONGEST {
                    return Err(self.unclosed(self.consumed));
                }
                target *= 2;
            }
            self.fill(target).map_err(Uncut::Io)?;
        }
        if self.ended {
            if let Some(opened) = self.scanner.unclosed() {
                return Err(self.unclosed(opened));
            }
            self.end = self.rest.len();
        }
        let mut rest = Vec::with_capacity(self.size.max(self.rest.len() - self.end));
        rest.extend_from_slice(&self.rest[self.end..]);
        let mut text = std::mem::replace(&mut self.rest, rest);
        text.truncate(self.end);
        let line = self.line;
        self.line += memchr_iter(b'\n', &text).count() as u64;
        self.consumed += self.end as u64;
        self.end = 0;
        Ok((!text.is_empty()).then_some(Chunk { line, text }))
    }

    fn unclosed(&mut self, opened: u64) -> Uncut {
        let before = (opened - self.consumed) as usize;
        let lines = memchr_iter(b'\n', &self.rest[..before.min(self.rest.len())]).count();
        Uncut::Unclosed {
            line: self.line + lines as u64,
        }
    }
}

impl<R: Read> Iterator for Chunks<R> {
    type Item = Result<Chunk, Uncut>;

    fn next(&mut self) -> Option<Self::Item> {
        self.cut().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::layout::Backslash;

    const CSV: Dialect = Dialect {
        delimiter: b',',
        quote: Some(b'"'),
        escape: None,
        trailing: false,
        single: false,
        backslash: None,
    };

    fn cut(text: &str, dialect: Dialect, size: usize) -> Vec<(u64, String)> {
        let chunks = Chunks::new(text.as_bytes(), dialect, size);
        let text = |chunk: Chunk| (chunk.line, String::from_utf8(chunk.text).unwrap());
        chunks.map(|chunk| text(chunk.unwrap())).collect()
    }

    /// The chunks of `text`, of any size, together are `text`, each ends with one of `records`, and knows its line.
    fn check(records: &[&str], dialect: Dialect) {
        let text = records.concat();
        let ends: Vec<usize> = (1..=records.len())
            .map(|n| records[..n].concat().len())
            .collect();
        for size in 1..text.len() + 2 {
            let mut end = 0;
            for (line, chunk) in cut(&text, dialect, size) {
                assert_eq!(line, 1 + text[..end].matches('\n').count() as u64);
                assert_eq!(chunk, text[end..end + chunk.len()]);
                end += chunk.len();
                assert!(ends.contains(&end), "{chunk:?} of {text:?}, {size}");
            }
            assert_eq!(end, text.len());
        }
        assert!(records.len() < 2 || cut(&text, dialect, 1).len() > 1);
    }

    #[test]
    fn files_are_cut_after_records() {
        check(&["a,b\n", "1,2\n", "3,4\n"], CSV);
        check(&["a\r\n", "1\r\n", "\"2\r\n\"\r\n"], CSV);
        check(&["no end"], CSV);
        check(&["a\n", "\"\n\""], CSV);
        check(&["a\n", "\n", "\n", "b\n"], CSV);
        assert!(cut("", CSV, 8).is_empty());
        assert!(cut("\u{feff}", CSV, 8).is_empty());
        assert_eq!(
            cut("\u{feff}\"a\nb\"\n1\n", CSV, 6)[0],
            (1, "\"a\nb\"\n".to_owned())
        );
    }

    #[test]
    fn quotes_count_where_a_field_starts() {
        let records = [
            "a,b\n",
            "1,\"x\ny\"\n",
            "2,5\" pipe\n",
            "3,\"he said \"\"no\"\"\n\"\n",
            "\"\"\"\n\",\"\"\n",
            "4,z",
        ];
        check(&records, CSV);
        let plain = Dialect { quote: None, ..CSV };
        check(&["a\"\n", "\"b\n", "c"], plain);
    }

    #[test]
    fn a_backslash_hides_a_line_end() {
        let copied = Dialect {
            delimiter: b'\t',
            quote: None,
            backslash: Some(Backslash::Null),
            ..CSV
        };
        check(&["a\\\nb\n", "c\\\\\n", "\\\\\\\nd\n", "e\n"], copied);
    }

    #[test]
    fn an_escape_hides_a_quote() {
        let escaped = Dialect {
            escape: Some(b'\\'),
            ..CSV
        };
        check(&["a\\\"\n", "\"b\\\"\n\"\n", "\"c\\\\\"\n", "d\n"], escaped);
        let tabs = Dialect {
            delimiter: b'\t',
            quote: Some(b'\''),
            ..CSV
        };
        check(&["a\t'\n'\n", "\"\t,'\n", "'\t\n'\n"], tabs);
    }

    #[test]
    fn an_unclosed_quote_is_told_with_its_line() {
        for (text, wanted) in [
            ("\"a\nb\n", 1),
            ("a\n1,\"b\nc\n", 2),
            ("a\n\"x\ny\"\n\"z\"\n5,\"\nq", 5),
            ("a,\"b\"\"\n\n", 1),
        ] {
            for size in 1..20 {
                let last = Chunks::new(text.as_bytes(), CSV, size).find_map(|chunk| chunk.err());
                let Some(Uncut::Unclosed { line }) = last else {
                    panic!("{text:?} was cut");
                };
                assert_eq!(line, wanted, "{text:?}");
            }
        }
    }
}
