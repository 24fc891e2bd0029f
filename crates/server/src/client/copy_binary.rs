//! `copy ... from stdin (format binary)`: rows as PostgreSQL's binary format has them.

use arrow::datatypes::SchemaRef;

use crate::values::{parameter, types};

/// What a copy begins with; flags and the length of more that may come follow.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// Bytes up to the length of what comes before the first row.
const HEAD: usize = SIGNATURE.len() + 8;

/// Most bytes of a value, which is kept until all of it has come.
const LONGEST: usize = 256 << 20;

/// What stands in the place of the number of fields after the last row.
const END: [u8; 2] = [0xff, 0xff];

/// What a reader finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Row(Vec<Option<String>>),
    /// The row has not ended: more bytes are needed, or there are none.
    More,
    /// The client says that nothing more comes.
    End,
}

/// Reads rows out of pieces that may end anywhere.
#[derive(Debug)]
pub(crate) struct BinaryReader {
    /// The types of the columns, by their numbers.
    types: Vec<u32>,
    bytes: Vec<u8>,
    /// Bytes of these that were read.
    read: usize,
    begun: bool,
    ended: bool,
    row: u64,
}

impl BinaryReader {
    pub(crate) fn new(columns: &SchemaRef) -> BinaryReader {
        let fields = columns.fields().iter();
        BinaryReader {
            types: fields.map(|field| types::oid(field.data_type())).collect(),
            bytes: Vec::new(),
            read: 0,
            begun: false,
            ended: false,
            row: 0,
        }
    }

    /// Bytes that have come and are not read yet.
    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len() - self.read
    }

    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.bytes.drain(..self.read);
        self.read = 0;
        self.bytes.extend(piece);
    }

    /// The next row; `last` says that all bytes have come.
    ///
    /// # Errors
    /// What is wrong, and with which row.
    pub(crate) fn next(&mut self, last: bool) -> Result<Line, String> {
        if self.ended {
            return match self.bytes.len() - self.read {
                0 => Ok(Line::End),
                _ => Err("received copy data after the end of the rows".into()),
            };
        }
        if !self.begun {
            if self.head()? {
                self.begun = true;
            } else if last {
                return Err("COPY file signature not recognized".into());
            } else {
                return Ok(Line::More);
            }
        }
        let mut at = self.read;
        let found = self
            .fields(&mut at)
            .map_err(|e| format!("{e}, in row {}", self.row + 1))?;
        match found {
            Some(line) => {
                self.read = at;
                self.row += 1;
                Ok(line)
            }
            // Where a row would begin the end may come without its mark.
            None if last && self.read == self.bytes.len() => Ok(Line::End),
            None if last => Err(format!(
                "unexpected EOF in COPY data, in row {}",
                self.row + 1
            )),
            None => Ok(Line::More),
        }
    }

    /// Reads what comes before the first row; false if it has not all come.
    fn head(&mut self) -> Result<bool, String> {
        let known = self.bytes.len().min(SIGNATURE.len());
        if self.bytes[..known] != SIGNATURE[..known] {
            return Err("COPY file signature not recognized".into());
        }
        let Some(rest) = self.bytes.get(SIGNATURE.len()..HEAD) else {
            return Ok(false);
        };
        let number = |at: usize| {
            rest[at..at + 4]
                .iter()
                .fold(0, |sum, byte| (sum << 8) | u32::from(*byte))
        };
        if number(0) >> 16 != 0 {
            return Err("unrecognized critical flags in COPY file header".into());
        }
        let more = number(4) as usize;
        if more > LONGEST {
            return Err("invalid COPY file header (wrong length)".into());
        }
        if self.bytes.len() < HEAD + more {
            return Ok(false);
        }
        self.read = HEAD + more;
        Ok(true)
    }

    /// The row at `at`, behind which `at` is moved; none if it has not all come.
    fn fields(&mut self, at: &mut usize) -> Result<Option<Line>, String> {
        let Some(count) = take::<2>(&self.bytes, at) else {
            return Ok(None);
        };
        if count == END {
            self.ended = true;
            return Ok(Some(Line::End));
        }
        let count = usize::from(u16::from_be_bytes(count));
        if count != self.types.len() {
            let wanted = self.types.len();
            return Err(format!("row field count is {count}, expected {wanted}"));
        }
        // Nothing is decoded before all of the row has come: it is looked at anew with each piece.
        let mut places = Vec::with_capacity(count);
        for _ in 0..count {
            let Some(length) = take::<4>(&self.bytes, at) else {
                return Ok(None);
            };
            let length = i32::from_be_bytes(length);
            if length == -1 {
                places.push(None);
                continue;
            }
            let length = usize::try_from(length).ok();
            let length = length.filter(|length| *length <= LONGEST);
            let length = length.ok_or("invalid field size")?;
            places.push(Some(*at..*at + length));
            *at += length;
        }
        if *at > self.bytes.len() {
            return Ok(None);
        }
        let all = self.types.iter().zip(places);
        let fields = all.map(|(oid, place)| {
            let value = place.map(|place| parameter::text(*oid, true, &self.bytes[place]));
            value.transpose()
        });
        let fields = fields.collect::<Result<Vec<_>, String>>()?;
        Ok(Some(Line::Row(fields)))
    }
}

/// The next bytes, if they have come.
fn take<const N: usize>(bytes: &[u8], at: &mut usize) -> Option<[u8; N]> {
    let found = bytes.get(*at..)?.get(..N)?.try_into().ok()?;
    *at += N;
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    fn reader() -> BinaryReader {
        let fields = vec![
            Field::new("a", DataType::Int32, true),
            Field::new("b", DataType::Utf8View, true),
        ];
        BinaryReader::new(&Arc::new(Schema::new(fields)))
    }

    fn copied() -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 3, 9, 9, 9]);
        bytes.extend([0, 2, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 2, b'h', b'i']);
        bytes.extend([0, 2, 255, 255, 255, 255, 0, 0, 0, 0]);
        bytes.extend(END);
        bytes
    }

    /// The rows of pieces of so many bytes.
    fn rows(bytes: &[u8], piece: usize) -> Result<Vec<Vec<Option<String>>>, String> {
        let mut reader = reader();
        let mut rows = Vec::new();
        let mut pieces = bytes.chunks(piece);
        let mut last = false;
        loop {
            match reader.next(last)? {
                Line::Row(fields) => rows.push(fields),
                Line::End => return Ok(rows),
                Line::More => match pieces.next() {
                    Some(piece) => reader.push(piece),
                    None if last => return Ok(rows),
                    None => last = true,
                },
            }
        }
    }

    #[test]
    fn pieces_may_end_anywhere() {
        let wanted = vec![
            vec![Some("7".to_string()), Some("hi".to_string())],
            vec![None, Some(String::new())],
        ];
        for piece in 1..60 {
            assert_eq!(rows(&copied(), piece).unwrap(), wanted, "{piece}");
        }
        // Without the mark of the end, too.
        let whole = copied();
        assert_eq!(rows(&whole[..whole.len() - 2], 7).unwrap(), wanted);
    }

    #[test]
    fn what_is_cut_or_wrong_is_refused() {
        let whole = copied();
        let ends = [22 + 16, 22 + 16 + 10];
        for length in 0..whole.len() {
            let found = rows(&whole[..length], 5);
            let whole_rows = length == 22 || ends.contains(&length);
            assert_eq!(found.is_ok(), whole_rows, "{length}: {found:?}");
        }
        let mut two = copied();
        two[23] = 3;
        assert!(
            rows(&two, 100)
                .unwrap_err()
                .contains("row field count is 3, expected 2, in row 1")
        );
        let mut flags = copied();
        flags[12] = 1;
        assert!(rows(&flags, 100).unwrap_err().contains("critical flags"));
        assert!(rows(b"1\thello\n", 100).unwrap_err().contains("signature"));
    }

    #[test]
    fn any_bytes_end_fuzzed() {
        let mut random = fastrand::Rng::with_seed(29);
        for _ in 0..20_000 {
            let mut bytes = copied();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
            }
            let _ = rows(&bytes, random.usize(1..40));
        }
    }
}
