//! Where a text file can be cut: after records, which quoted values with line breaks in them are parts of.
//!
//! One thread reads ahead of those that decode, so that they find in memory what it has seen, and each of them has a
//! part of its own; it sleeps when it is some parts ahead.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytes::Bytes;
use futures::SinkExt;
use futures::channel::mpsc;
use memchr::{memchr, memchr2, memrchr};

/// Bytes that are read at a time.
const BUFFER: usize = 1 << 20;
/// Parts that are known before somebody asks for them.
const AHEAD: usize = 2;

/// How a text file separates its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub delimiter: u8,
    pub quote: u8,
    /// Within quotes, what follows it is nothing but itself.
    pub escape: Option<u8>,
}

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

/// Finds the ends of records in a file, as the reader does that decodes it: a quote counts at the start of a field only.
#[derive(Debug)]
struct Scanner {
    dialect: Dialect,
    at: At,
    /// The byte before.
    before: u8,
}

impl Scanner {
    fn new(dialect: Dialect) -> Scanner {
        let before = b'\n';
        let at = At::Plain;
        Scanner {
            dialect,
            at,
            before,
        }
    }

    /// Takes the next bytes of the file; gives how many of them there are up to the end of the last record that ends in
    /// them.
    fn last_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let Dialect {
            delimiter,
            quote,
            escape,
        } = self.dialect;
        let (mut next, mut last) = (0, None);
        while next < bytes.len() {
            let rest = &bytes[next..];
            let skip = match self.at {
                At::Plain => {
                    let found = memchr(quote, rest);
                    let plain = &rest[..found.unwrap_or(rest.len())];
                    last = memrchr(b'\n', plain).map(|at| next + at + 1).or(last);
                    let before = plain.last().copied().unwrap_or(self.before);
                    let starts = before == delimiter || matches!(before, b'\n' | b'\r');
                    if found.is_some() && starts {
                        self.at = At::Quoted;
                    }
                    plain.len() + usize::from(found.is_some())
                }
                At::Quoted => {
                    let found = match escape {
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
            next += skip;
            if let Some(before) = next.checked_sub(1) {
                self.before = bytes[before];
            }
        }
        last
    }
}

/// Parts of a file that are whole records: each the records from `least` bytes on, the last one what is left.
struct Cutter<R> {
    reader: R,
    scanner: Scanner,
    least: u64,
    /// Bytes read.
    read: u64,
    /// The end of the last record that ends in them.
    end: u64,
    /// The end of the last part.
    cut: u64,
    buffer: Vec<u8>,
}

impl<R: Read> Cutter<R> {
    fn new(reader: R, dialect: Dialect, least: u64, buffer: usize) -> Cutter<R> {
        Cutter {
            reader,
            scanner: Scanner::new(dialect),
            least,
            read: 0,
            end: 0,
            cut: 0,
            buffer: vec![0; buffer],
        }
    }

    /// The next part; none after the last.
    fn next(&mut self) -> io::Result<Option<Range<u64>>> {
        while self.end - self.cut < self.least {
            let count = match self.reader.read(&mut self.buffer) {
                Ok(0) => {
                    self.end = self.read;
                    break;
                }
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            let bytes = &self.buffer[..count];
            // A mark of the byte order is no part of the first value.
            let mark = self.read == 0 && bytes.starts_with(b"\xef\xbb\xbf");
            let skipped = if mark { 3 } else { 0 };
            if let Some(end) = self.scanner.last_end(&bytes[skipped..]) {
                self.end = self.read + (skipped + end) as u64;
            }
            self.read += count as u64;
        }
        let part = self.cut..self.end;
        self.cut = self.end;
        Ok((!part.is_empty()).then_some(part))
    }
}

/// The records of the file at `path`, some at a time, in order.
///
/// # Errors
/// If the file cannot be opened; later ones are in the iterator.
pub(crate) fn records(
    path: &Path,
    dialect: Dialect,
) -> io::Result<impl Iterator<Item = io::Result<Bytes>>> {
    let file = File::open(path)?;
    let mut cutter = Cutter::new(file.try_clone()?, dialect, BUFFER as u64, BUFFER);
    let mut next = move || {
        let part = cutter.next()?;
        let read = |part: Range<u64>| {
            let mut bytes = vec![0; (part.end - part.start) as usize];
            file.read_exact_at(&mut bytes, part.start)?;
            Ok(Bytes::from(bytes))
        };
        part.map(read).transpose()
    };
    Ok(std::iter::from_fn(move || next().transpose()))
}

/// Parts of the file at `path` of at least `least` bytes, as they are found. Dropping it ends the search.
pub(crate) fn parts(
    path: &Path,
    dialect: Dialect,
    least: u64,
) -> mpsc::Receiver<io::Result<Range<u64>>> {
    let (mut sender, receiver) = mpsc::channel(AHEAD);
    let path = path.to_path_buf();
    let search = move || {
        let mut cutter = match File::open(path) {
            Ok(file) => Cutter::new(file, dialect, least, BUFFER),
            Err(e) => return drop(futures::executor::block_on(sender.send(Err(e)))),
        };
        while let Some(part) = cutter.next().transpose() {
            let last = part.is_err();
            if futures::executor::block_on(sender.send(part)).is_err() || last {
                return;
            }
        }
    };
    tokio::task::spawn_blocking(search);
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: Dialect = Dialect {
        delimiter: b',',
        quote: b'"',
        escape: None,
    };

    fn cut(text: &str, dialect: Dialect, least: u64, buffer: usize) -> Vec<String> {
        let mut cutter = Cutter::new(text.as_bytes(), dialect, least, buffer);
        let parts = std::iter::from_fn(|| cutter.next().unwrap());
        parts
            .map(|part| text[part.start as usize..part.end as usize].to_owned())
            .collect()
    }

    /// The parts of `text`, of any size, together are `text`, and each ends with one of `records`.
    fn check(text: &str, records: &[&str], dialect: Dialect) {
        assert_eq!(records.concat(), text);
        let mut ends = vec![];
        for record in records {
            ends.push(ends.last().unwrap_or(&0) + record.len());
        }
        for buffer in 1..text.len() + 2 {
            for least in 1..text.len() + 2 {
                let parts = cut(text, dialect, least as u64, buffer);
                assert_eq!(parts.concat(), text, "{least}, {buffer}");
                let mut end = 0;
                for part in &parts {
                    end += part.len();
                    assert!(
                        ends.contains(&end),
                        "{part:?} of {text:?}, {least}, {buffer}"
                    );
                }
                let most = text.len().div_ceil(least);
                assert!(parts.len() <= most, "{parts:?}");
            }
        }
        // A byte at a time, each record is a part.
        assert_eq!(cut(text, dialect, 1, 1), records);
    }

    #[test]
    fn files_are_cut_after_records() {
        check("a,b\n1,2\n3,4\n", &["a,b\n", "1,2\n", "3,4\n"], CSV);
        check(
            "a\r\n1\r\n\"2\r\n\"\r\n",
            &["a\r\n", "1\r\n", "\"2\r\n\"\r\n"],
            CSV,
        );
        check("no end", &["no end"], CSV);
        check("a\n\"\n\"", &["a\n", "\"\n\""], CSV);
        check("a\n\n\nb\n", &["a\n", "\n", "\n", "b\n"], CSV);
        assert!(cut("", CSV, 8, 8).is_empty());
    }

    #[test]
    fn quotes_count_where_a_field_starts() {
        let records = [
            "a,b\n",
            "1,\"x\ny\"\n",
            "2,5\" pipe\n",
            "3,\"he said \"\"no\"\"\n\"\n",
            "\"\"\"\n\",\"\"\n",
            "\"a\"\"\nb\"c\"\n",
            "4,z",
        ];
        check(&records.concat(), &records, CSV);
        // Never closed: all the rest is one record.
        check("a\n\"b\nc\n", &["a\n", "\"b\nc\n"], CSV);
        let marked = ["\u{feff}\"a\nb\"\n", "1\n"];
        let text = marked.concat();
        assert_eq!(cut(&text, CSV, 1, 64).len(), 1);
        assert_eq!(cut(&text, CSV, 1, 9), marked);
    }

    #[test]
    fn an_escape_hides_a_quote() {
        let escaped = Dialect {
            escape: Some(b'\\'),
            ..CSV
        };
        let records = ["a\\\"\n", "\"b\\\"\n\"\n", "\"c\\\\\"\n", "d\n"];
        check(&records.concat(), &records, escaped);
        let tabs = Dialect {
            delimiter: b'\t',
            quote: b'\'',
            escape: None,
        };
        let records = ["a\t'\n'\n", "\"\t,'\n", "'\t\n'\n"];
        check(&records.concat(), &records, tabs);
    }
}
