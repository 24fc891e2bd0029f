//! Finds the rows of a JSON file: objects, one after the other, or in one array.

use std::io::{self, Read};

use memchr::memchr2;

use crate::stream::MARK;

/// Bytes that are read at a time.
const BUFFER: usize = 1 << 20;

/// The longest row that is believed.
const LONGEST: usize = 1 << 30;

/// Some rows of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The objects, each followed by a line end.
    pub text: Vec<u8>,
    /// Where each begins in `text`, and on which line of the file, counted from 1.
    pub starts: Vec<(usize, u64)>,
}

impl Chunk {
    /// The objects and their lines.
    pub fn rows(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let ends = self.starts.iter().skip(1).map(|(start, _)| *start);
        let rows = self.starts.iter().zip(ends.chain([self.text.len()]));
        rows.map(|((start, line), end)| (&self.text[*start..end], *line))
    }
}

/// Why a file has no more rows.
#[derive(Debug)]
pub(crate) enum Broken {
    /// It cannot be read.
    Io(io::Error),
    /// Something else than an object stands on this line.
    Unexpected { line: u64, found: String },
    /// The file ends within what begins on this line.
    Unclosed { line: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Between two rows.
    Between,
    /// Within a row, and how many braces and brackets are open.
    Inside(usize),
    /// Within a string of a row.
    String(usize),
    /// After a backslash in a string.
    Escaped(usize),
}

/// What may come next in the array that rows stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InArray {
    /// A row, or the end.
    First,
    /// A row, since there was a comma.
    Row,
    /// A comma, or the end.
    Comma,
}

/// Cuts a file into chunks of whole rows.
pub(crate) struct Chunks<R> {
    reader: R,
    size: usize,
    buffer: Vec<u8>,
    /// How far `buffer` was looked at.
    next: usize,
    at: At,
    /// Where the row begins that is being read, and on which line.
    row: (usize, u64),
    line: u64,
    /// On which line the array begins that rows stand in.
    array: Option<u64>,
    /// What may come next in the array.
    next_in: InArray,
    begun: bool,
    ended: bool,
}

impl<R: Read> Chunks<R> {
    /// Chunks of about `size` bytes.
    pub fn new(reader: R, size: usize) -> Chunks<R> {
        Chunks {
            reader,
            size,
            buffer: vec![],
            next: 0,
            at: At::Between,
            row: (0, 1),
            line: 1,
            array: None,
            next_in: InArray::First,
            begun: false,
            ended: false,
        }
    }

    fn fill(&mut self) -> Result<(), Broken> {
        let keep = match self.at {
            At::Between => self.next,
            _ => self.row.0,
        };
        self.buffer.drain(..keep);
        self.next -= keep;
        self.row.0 -= keep.min(self.row.0);
        if self.buffer.len() >= LONGEST {
            return Err(Broken::Unclosed { line: self.row.1 });
        }
        // Long rows are not read in small steps.
        let count = BUFFER.max(self.buffer.len()) as u64;
        let read = self
            .reader
            .by_ref()
            .take(count)
            .read_to_end(&mut self.buffer);
        self.ended = (read.map_err(Broken::Io)? as u64) < count;
        if !self.begun && self.buffer.starts_with(MARK) {
            self.next = MARK.len();
        }
        self.begun = true;
        Ok(())
    }

    /// The next chunk; none after the last.
    pub fn cut(&mut self) -> Result<Option<Chunk>, Broken> {
        let mut chunk = Chunk::default();
        loop {
            while self.next < self.buffer.len() && chunk.text.len() < self.size {
                self.step(&mut chunk)?;
            }
            if chunk.text.len() >= self.size {
                return Ok(Some(chunk));
            }
            if self.ended {
                break;
            }
            self.fill()?;
        }
        match (self.at, self.array) {
            (At::Between, None) => Ok((!chunk.starts.is_empty()).then_some(chunk)),
            (At::Between, Some(line)) => Err(Broken::Unclosed { line }),
            _ => Err(Broken::Unclosed { line: self.row.1 }),
        }
    }

    /// Looks at the next byte, or at some that say nothing.
    fn step(&mut self, chunk: &mut Chunk) -> Result<(), Broken> {
        let rest = &self.buffer[self.next..];
        let byte = rest[0];
        let mut taken = 1;
        match self.at {
            At::Between => match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {}
                b',' if self.array.is_some() && self.next_in == InArray::Comma => {
                    self.next_in = InArray::Row;
                }
                b'[' if self.array.is_none() => {
                    (self.array, self.next_in) = (Some(self.line), InArray::First);
                }
                b']' if self.array.is_some() && self.next_in != InArray::Row => self.array = None,
                b'{' if self.array.is_none() || self.next_in != InArray::Comma => {
                    self.next_in = InArray::Comma;
                    self.row = (self.next, self.line);
                    self.at = At::Inside(1);
                }
                _ => return Err(self.unexpected()),
            },
            At::Inside(depth) => match byte {
                b'"' => self.at = At::String(depth),
                b'{' | b'[' => self.at = At::Inside(depth + 1),
                b'}' | b']' if depth == 1 => {
                    chunk.starts.push((chunk.text.len(), self.row.1));
                    chunk
                        .text
                        .extend_from_slice(&self.buffer[self.row.0..=self.next]);
                    chunk.text.push(b'\n');
                    self.at = At::Between;
                }
                b'}' | b']' => self.at = At::Inside(depth - 1),
                _ => {}
            },
            At::String(depth) => {
                let found = memchr2(b'"', b'\\', rest);
                match found.map(|at| rest[at]) {
                    Some(b'"') => self.at = At::Inside(depth),
                    Some(_) => self.at = At::Escaped(depth),
                    None => {}
                }
                taken = found.map_or(rest.len(), |at| at + 1);
            }
            At::Escaped(depth) => self.at = At::String(depth),
        }
        self.line += match taken {
            1 => u64::from(byte == b'\n'),
            _ => memchr::memchr_iter(b'\n', &rest[..taken]).count() as u64,
        };
        self.next += taken;
        Ok(())
    }

    fn unexpected(&self) -> Broken {
        let rest = &self.buffer[self.next..];
        let word = rest
            .split(|byte| byte.is_ascii_whitespace())
            .next()
            .unwrap_or_default();
        let found: String = String::from_utf8_lossy(&word[..word.len().min(80)])
            .chars()
            .take(20)
            .collect();
        Broken::Unexpected {
            line: self.line,
            found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, size: usize) -> Result<Vec<(String, u64)>, Broken> {
        let mut chunks = Chunks::new(text.as_bytes(), size);
        let mut all = vec![];
        while let Some(chunk) = chunks.cut()? {
            all.extend(chunk.rows().map(|(row, line)| {
                (
                    String::from_utf8(row.to_vec())
                        .unwrap()
                        .trim_end()
                        .to_owned(),
                    line,
                )
            }));
        }
        Ok(all)
    }

    #[test]
    fn rows_are_objects_in_lines_or_an_array() {
        for size in [1, 10, 1000] {
            let wanted = [
                ("{\"a\":\"}\\\"{\"}".to_owned(), 1),
                ("{\"b\":\n[{}]}".to_owned(), 3),
            ];
            let lines = "{\"a\":\"}\\\"{\"}\n\n{\"b\":\n[{}]}";
            assert_eq!(rows(lines, size).unwrap(), wanted);
            let array = "\u{feff}[{\"a\":\"}\\\"{\"},\n\n{\"b\":\n[{}]}\n]\n";
            assert_eq!(rows(array, size).unwrap(), wanted);
            assert!(rows(" [] \n", size).unwrap().is_empty() && rows("", size).unwrap().is_empty());
        }
    }

    #[test]
    fn what_is_no_row_is_told() {
        let line = |text: &str| match rows(text, 8).unwrap_err() {
            Broken::Unexpected { line, .. } | Broken::Unclosed { line } => line,
            Broken::Io(error) => panic!("{error}"),
        };
        assert_eq!(line("{}\n1"), 2);
        assert_eq!(line("{}\n{\"a\":\n1"), 2);
        assert_eq!(line("\n[{}\n"), 2);
        assert_eq!(line("{},{}"), 1);
        // A comma too many, or too few.
        for wrong in ["[{},]", "[,{}]", "[{},,{}]", "[{} {}]", "[,]"] {
            assert_eq!(line(wrong), 1, "{wrong}");
        }
        assert_eq!(line("{\"a\n"), 1);
    }
}
