//! Finds where the records of a text file begin and end, without reading their values.
//!
//! A quote counts only at the start of a field, as in the reader that decodes the values; so a
//! stray `5" pipe` neither hides the line ends after it nor moves a boundary.

use std::io::{self, Read};

/// Bytes that one piece of text has, about.
const CHUNK: usize = 4 << 20;

/// The longest record that is believed; a longer one is an unclosed quote.
const LONGEST: usize = 1 << 30;

/// The byte order mark some programs write before UTF-8; it is no part of the first value.
pub(crate) const MARK: &[u8] = "\u{feff}".as_bytes();

/// How a text file separates its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// Between two fields.
    pub delimiter: u8,
    /// Around a field that contains delimiters or line ends; none in `.tbl` files.
    pub quote: Option<u8>,
    /// Each record ends with a delimiter, as in `.tbl` files.
    pub trailing: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    FieldStart,
    Plain,
    Quoted,
    /// After a quote inside a quoted field: a second one is a character, anything else ends it.
    QuoteInQuoted,
}

impl At {
    fn next(self, byte: u8, dialect: &Dialect) -> At {
        let quote = Some(byte) == dialect.quote;
        match self {
            At::Quoted if quote => At::QuoteInQuoted,
            At::Quoted => At::Quoted,
            At::FieldStart | At::QuoteInQuoted if quote => At::Quoted,
            _ if byte == dialect.delimiter || byte == b'\n' || byte == b'\r' => At::FieldStart,
            _ => At::Plain,
        }
    }
}

/// The byte after the last record that ends in `text`, which starts at a record's start.
fn last_end(text: &[u8], dialect: &Dialect) -> Option<usize> {
    let quoted = dialect
        .quote
        .is_some_and(|quote| memchr::memchr(quote, text).is_some());
    if !quoted {
        return memchr::memrchr(b'\n', text).map(|at| at + 1);
    }
    let (mut at, mut end) = (At::FieldStart, None);
    for (position, byte) in text.iter().enumerate() {
        if *byte == b'\n' && at != At::Quoted {
            end = Some(position + 1);
        }
        at = at.next(*byte, dialect);
    }
    end
}

/// A record of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Its first line, counted from 0 at the start of the text.
    pub line: u64,
    /// Its fields; the empty one after a trailing delimiter counts.
    pub fields: usize,
}

/// The records of `text`, which starts at a record's start. Empty lines are none.
pub(crate) fn records(text: &[u8], dialect: Dialect) -> impl Iterator<Item = Record> {
    let (mut position, mut line) = (0, 0);
    std::iter::from_fn(move || {
        while position < text.len() {
            let (mut record, mut at, start) =
                (Record { line, fields: 1 }, At::FieldStart, position);
            let mut length = 0;
            while position < text.len() {
                let byte = text[position];
                position += 1;
                let ends = at != At::Quoted && byte == b'\n';
                line += u64::from(byte == b'\n');
                if ends {
                    break;
                }
                record.fields += usize::from(at != At::Quoted && byte == dialect.delimiter);
                length += usize::from(byte != b'\r');
                at = at.next(byte, &dialect);
            }
            if length > 0 {
                debug_assert!(position > start);
                return Some(record);
            }
        }
        None
    })
}

/// Whole records of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The file's line (counted from 1) at which `text` starts.
    pub line: u64,
    /// The records, the last of which may lack a line end.
    pub text: Vec<u8>,
}

/// Cuts a file into chunks of whole records.
pub(crate) struct Chunks<R> {
    reader: R,
    dialect: Dialect,
    size: usize,
    /// Read but not yet handed out; starts at a record's start.
    rest: Vec<u8>,
    line: u64,
    /// The file's first bytes have been looked at for a byte order mark.
    begun: bool,
    ended: bool,
}

impl<R: Read> Chunks<R> {
    /// Cuts what `reader` yields.
    pub fn new(reader: R, dialect: Dialect) -> Chunks<R> {
        Chunks::with_size(reader, dialect, CHUNK)
    }

    fn with_size(reader: R, dialect: Dialect, size: usize) -> Chunks<R> {
        Chunks {
            reader,
            dialect,
            size,
            rest: Vec::new(),
            line: 1,
            begun: false,
            ended: false,
        }
    }

    fn fill(&mut self, target: usize) -> io::Result<()> {
        let missing = target.saturating_sub(self.rest.len()) as u64;
        let read = self
            .reader
            .by_ref()
            .take(missing)
            .read_to_end(&mut self.rest)?;
        self.ended = (read as u64) < missing;
        if !self.begun && self.rest.starts_with(MARK) {
            self.rest.drain(..MARK.len());
        }
        self.begun |= self.rest.len() >= MARK.len();
        Ok(())
    }

    fn cut(&mut self) -> io::Result<Option<Chunk>> {
        let mut target = self.size;
        loop {
            if !self.ended {
                self.fill(target)?;
            }
            let end = if self.ended {
                Some(self.rest.len())
            } else {
                last_end(&self.rest, &self.dialect)
            };
            if let Some(end) = end {
                let rest = self.rest.split_off(end);
                let text = std::mem::replace(&mut self.rest, rest);
                let line = self.line;
                self.line += memchr::memchr_iter(b'\n', &text).count() as u64;
                return Ok((!text.is_empty()).then_some(Chunk { line, text }));
            }
            if target >= LONGEST {
                let reason = format!(
                    "the record at line {} is longer than 1 GiB; is a quote unclosed?",
                    self.line
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
            target *= 2;
        }
    }
}

impl<R: Read> Iterator for Chunks<R> {
    type Item = io::Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        self.cut().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: Dialect = Dialect {
        delimiter: b',',
        quote: Some(b'"'),
        trailing: false,
    };

    fn chunks(text: &str, size: usize) -> Vec<(u64, String)> {
        let cut = Chunks::with_size(text.as_bytes(), CSV, size);
        cut.map(|chunk| chunk.expect("memory reads"))
            .map(|chunk| {
                (
                    chunk.line,
                    String::from_utf8(chunk.text).expect("cut at a line end"),
                )
            })
            .collect()
    }

    #[test]
    fn chunks_end_with_records_and_know_their_line() {
        let text = "a,b\n1,\"x\ny\"\n2,5\" pipe\n3,\"he said \"\"no\"\"\n\"\n4,z";
        for size in 1..text.len() + 2 {
            let cut = chunks(text, size);
            assert_eq!(
                cut.iter()
                    .map(|(_, text)| text.as_str())
                    .collect::<String>(),
                text,
                "size {size}"
            );
            for (line, chunk) in &cut {
                let before = &text[..text.find(chunk.as_str()).expect("a part of the text")];
                assert_eq!(*line, 1 + before.matches('\n').count() as u64);
                assert!(
                    !["y", "\"\n"].iter().any(|inner| chunk.starts_with(inner)),
                    "cut in a field: {chunk:?}"
                );
            }
        }
        assert!(chunks(text, 8).len() > 2);
        assert_eq!(chunks("", 8), []);
        assert_eq!(chunks("\u{feff}a,b\n", 8), [(1, "a,b\n".to_owned())]);
    }

    #[test]
    fn records_know_their_fields_and_lines() {
        let text = b"a,b\n\n1,\"x\ny,z\"\r\n2\n3,4,5";
        let found: Vec<_> = records(text, CSV).map(|r| (r.line, r.fields)).collect();
        assert_eq!(found, [(0, 2), (2, 2), (4, 1), (5, 3)]);
    }
}
