//! The formats of `copy` to the client: rows as lines of text or CSV, and as binary.

use arrow::datatypes::SchemaRef;
use atoll::{HeaderLine, TransferFormat};

use crate::values::row::Writers;
use crate::wire::backend;

/// Writes rows.
pub(crate) struct Writer<'f> {
    format: &'f TransferFormat,
    /// What stands behind a backslash for each byte; 0 for one that stands for itself. In CSV: bytes that need quotes.
    escapes: [u8; 256],
    /// Columns whose values stand within quotes in any case; none behind the last.
    quoted: Vec<bool>,
}

impl<'f> Writer<'f> {
    /// Writes columns of these names.
    pub(crate) fn new<'n>(
        format: &'f TransferFormat,
        names: impl Iterator<Item = &'n str>,
    ) -> Writer<'f> {
        let quoted = match format {
            TransferFormat::Csv { force_quote, .. } => force_quote.of(names),
            _ => Vec::new(),
        };
        let mut escapes = [0; 256];
        let mut escape = |byte: u8, letter: u8| escapes[usize::from(byte)] = letter;
        match format {
            TransferFormat::Csv {
                delimiter, quote, ..
            } => {
                for byte in [*delimiter, *quote, b'\r', b'\n'] {
                    escape(byte, byte.max(1));
                }
            }
            TransferFormat::Text { delimiter, .. } => {
                escape(*delimiter, *delimiter);
                for (byte, letter) in [
                    (b'\\', b'\\'),
                    (b'\n', b'n'),
                    (b'\r', b'r'),
                    (b'\t', b't'),
                    (8, b'b'),
                    (11, b'v'),
                    (12, b'f'),
                ] {
                    escape(byte, letter);
                }
            }
            _ => {}
        }
        Writer {
            format,
            escapes,
            quoted,
        }
    }

    pub(crate) fn is_binary(&self) -> bool {
        *self.format == TransferFormat::Binary
    }

    /// Appends all rows as messages of a copy; `head` comes with the first, and is none afterwards.
    pub(crate) fn messages(
        &self,
        rows: &Writers<'_>,
        count: usize,
        head: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        let direct: Vec<bool> = (0..rows.columns())
            .map(|column| self.is_direct(rows, column))
            .collect();
        for at in 0..count {
            backend::copied(out, |out| {
                out.append(head);
                self.row(rows, (at, &direct), out);
            });
        }
    }

    /// Whether no value of a column needs anything before it or around it.
    fn is_direct(&self, rows: &Writers<'_>, column: usize) -> bool {
        // Bytes that may be in the text of a number, a day or a time.
        let may_be = |byte: &u8| byte.is_ascii_alphanumeric() || b" -+.:/".contains(byte);
        match self.format {
            TransferFormat::Text { delimiter, .. } => rows.is_numeric(column) && !may_be(delimiter),
            TransferFormat::Csv {
                delimiter,
                quote,
                null,
                ..
            } => {
                // What reads as NULL has quotes.
                let never_null = null.is_empty() || !null.bytes().all(|byte| may_be(&byte));
                rows.is_numeric(column)
                    && !self.is_quoted(column)
                    && !may_be(delimiter)
                    && !may_be(quote)
                    && never_null
            }
            _ => false,
        }
    }

    /// Whether all values of a column stand within quotes.
    fn is_quoted(&self, column: usize) -> bool {
        self.quoted.get(column).copied().unwrap_or(false)
    }

    /// What comes before the first row.
    pub(crate) fn head(&self, schema: &SchemaRef) -> Option<Vec<u8>> {
        let wanted = match self.format {
            TransferFormat::Text { header, .. } | TransferFormat::Csv { header, .. } => {
                *header != HeaderLine::Row
            }
            _ => return Some(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec()),
        };
        if !wanted {
            return None;
        }
        let mut line = Vec::new();
        for (at, field) in schema.fields().iter().enumerate() {
            if at > 0 {
                line.push(self.delimiter());
            }
            self.value(field.name().as_bytes(), (false, false), &mut line);
        }
        line.push(b'\n');
        Some(line)
    }

    /// What comes after the last row.
    pub(crate) fn end(&self) -> Option<&'static [u8]> {
        self.is_binary().then_some(&[0xff, 0xff])
    }

    fn delimiter(&self) -> u8 {
        match self.format {
            TransferFormat::Text { delimiter, .. } | TransferFormat::Csv { delimiter, .. } => {
                *delimiter
            }
            _ => 0,
        }
    }

    /// Appends a row: its place, and which columns need nothing around their values.
    fn row(&self, rows: &Writers<'_>, (at, direct): (usize, &[bool]), out: &mut Vec<u8>) {
        if self.is_binary() {
            out.extend((rows.columns() as u16).to_be_bytes());
            rows.fields(at, out);
            return;
        }
        let null = match self.format {
            TransferFormat::Text { null, .. } | TransferFormat::Csv { null, .. } => null.as_bytes(),
            _ => b"",
        };
        let alone = rows.columns() == 1;
        for (column, direct) in direct.iter().enumerate() {
            if column > 0 {
                out.push(self.delimiter());
            }
            let start = out.len();
            if !rows.value(column, at, out) {
                out.extend_from_slice(null);
            } else if !direct {
                let around = (alone, self.is_quoted(column));
                if self.is_special(&out[start..], around) {
                    let value = out.split_off(start);
                    self.value(&value, around, out);
                }
            }
        }
        out.push(b'\n');
    }

    /// Whether a value, that of the only column if `alone`, does not stand as it is: none does if `always`.
    fn is_special(&self, value: &[u8], (alone, always): (bool, bool)) -> bool {
        let escapes = value
            .iter()
            .any(|byte| self.escapes[usize::from(*byte)] != 0);
        match self.format {
            TransferFormat::Csv { null, .. } => {
                always || escapes || value == null.as_bytes() || (alone && value == b"\\.")
            }
            _ => escapes,
        }
    }

    /// Appends a value, of the only column if `alone`, and within quotes if `always`.
    fn value(&self, value: &[u8], (alone, always): (bool, bool), out: &mut Vec<u8>) {
        if !self.is_special(value, (alone, always)) {
            out.extend_from_slice(value);
            return;
        }
        match self.format {
            TransferFormat::Csv { quote, escape, .. } => {
                out.push(*quote);
                for byte in value {
                    if byte == quote || byte == escape {
                        out.push(*escape);
                    }
                    out.push(*byte);
                }
                out.push(*quote);
            }
            _ => {
                let mut from = 0;
                for (at, byte) in value.iter().enumerate() {
                    let letter = self.escapes[usize::from(*byte)];
                    if letter != 0 {
                        out.extend_from_slice(&value[from..at]);
                        out.extend_from_slice(&[b'\\', letter]);
                        from = at + 1;
                    }
                }
                out.extend_from_slice(&value[from..]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray};

    use super::*;
    use crate::client::copy_columns::Columns;
    use crate::client::copy_lines::Cutter;
    use crate::client::copy_rows;
    use crate::values::row::Rows;

    fn text() -> TransferFormat {
        format("copy t from stdin")
    }

    fn csv() -> TransferFormat {
        format("copy t from stdin (format csv)")
    }

    fn format(statement: &str) -> TransferFormat {
        atoll::transfer(statement).unwrap().unwrap().format
    }

    type Fields = Vec<Option<String>>;

    /// All rows of `bytes`, which come in pieces of `size`.
    fn read(
        format: &TransferFormat,
        columns: usize,
        bytes: &[u8],
        size: usize,
    ) -> Result<Vec<Fields>, String> {
        // Of few bytes, so that there are several.
        let mut cutter = Cutter::new(format, 8);
        let mut parts = Vec::new();
        for piece in bytes.chunks(size) {
            cutter.push(piece);
            parts.extend(std::iter::from_fn(|| cutter.lines(false)));
        }
        parts.extend(std::iter::from_fn(|| cutter.lines(true)));
        parts.extend(cutter.rest());
        let (mut found, mut lines) = (Vec::new(), 0);
        for part in parts {
            let all = Columns::plain(columns);
            let rows = copy_rows::read(&part, format, &all, HeaderLine::Row);
            let rows = rows.map_err(|wrong| wrong.told(lines))?;
            lines += rows.lines;
            found.extend(rows.fields());
            if rows.ended {
                break;
            }
        }
        Ok(found)
    }

    fn some(fields: &[&str]) -> Fields {
        fields
            .iter()
            .map(|field| Some((*field).to_string()))
            .collect()
    }

    #[test]
    fn lines_are_read_in_pieces_of_any_size() {
        let bytes = b"a\tb\\tc\n\\N\t\\x41\\101\\\nd\n\\.\nrest";
        let csv_bytes = b"a,\"b\n\"\"c\"\"\"\r\n,\"\"\n";
        for size in 1..20 {
            let rows = read(&text(), 2, bytes, size).unwrap();
            assert_eq!(rows[0], some(&["a", "b\tc"]));
            assert_eq!(rows[1], [None, Some("AA\nd".into())]);
            assert_eq!(rows.len(), 2);
            let rows = read(&csv(), 2, csv_bytes, size).unwrap();
            assert_eq!(rows[0], some(&["a", "b\n\"c\""]));
            assert_eq!(rows[1], [None, Some(String::new())]);
        }
    }

    #[test]
    fn wrong_lines_are_told_with_their_numbers() {
        let wrong = |format: &TransferFormat, bytes: &[u8]| read(format, 2, bytes, 7).unwrap_err();
        assert!(wrong(&text(), b"a\tb\na\n").contains("line 2"));
        assert!(wrong(&text(), b"a\tb\tc\n").contains("extra data"));
        assert!(wrong(&csv(), b"a,\"b\n").contains("unterminated"));
        assert!(wrong(&csv(), b"a,\xff\n").contains("UTF8"));
    }

    #[test]
    fn what_is_written_is_read() {
        let mut random = fastrand::Rng::with_seed(13);
        let parts = [
            "a", "\t", "\n", "\r", "\\", "\"", ",", "N", ".", "é", "\u{8}", ";", "x", "1",
        ];
        let formats = [
            text(),
            csv(),
            format(
                "copy t from stdin (format csv, delimiter ';', quote '''', escape '\\', null 'x')",
            ),
            // A value that is the text of NULL reads as NULL, as with PostgreSQL: none that is drawn is one.
            format("copy t from stdin (delimiter ',', null 'q')"),
        ];
        for round in 0..2000 {
            let format = &formats[round % formats.len()];
            let width = random.usize(1..4);
            let value = |random: &mut fastrand::Rng| -> Option<String> {
                let length = random.usize(0..5);
                let text = (0..length)
                    .map(|_| parts[random.usize(0..parts.len())])
                    .collect();
                random.bool().then_some(text)
            };
            let rows: Vec<Fields> = (0..random.usize(1..6))
                .map(|_| (0..width).map(|_| value(&mut random)).collect())
                .collect();
            let columns = (0..width).map(|at| {
                let array: StringArray = rows.iter().map(|row| row[at].clone()).collect();
                (format!("c{at}"), Arc::new(array) as ArrayRef, true)
            });
            let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
            let encoded = Rows::new(&batch, vec![false; width]).unwrap();
            let writers = encoded.writers().unwrap();
            let mut bytes = Vec::new();
            for at in 0..encoded.len() {
                Writer::new(format, [].into_iter()).row(
                    &writers,
                    (at, &vec![false; width]),
                    &mut bytes,
                );
            }
            let back = read(format, width, &bytes, random.usize(1..9)).unwrap();
            assert_eq!(
                back,
                rows,
                "{format:?} {:?}",
                String::from_utf8_lossy(&bytes)
            );
        }
    }

    #[test]
    fn numbers_are_written_alike_whether_they_are_looked_at_or_not() {
        let whole = Int64Array::from(vec![Some(-12), None, Some(7)]);
        let floats = Float64Array::from(vec![Some(1e300), Some(f64::NAN), None]);
        let days = Date32Array::from(vec![0, -900_000, 20_000]);
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("a", Arc::new(whole) as ArrayRef, true),
            ("b", Arc::new(floats) as ArrayRef, true),
            ("c", Arc::new(days) as ArrayRef, true),
        ])
        .unwrap();
        let encoded = Rows::new(&batch, vec![false; 3]).unwrap();
        let writers = encoded.writers().unwrap();
        for (statement, direct) in [
            ("copy t to stdout", true),
            ("copy t to stdout (format csv)", true),
            ("copy t to stdout (delimiter '-')", false),
            ("copy t to stdout (delimiter ' ')", false),
            ("copy t to stdout (format csv, null '7')", false),
            ("copy t to stdout (format csv, null '')", true),
            ("copy t to stdout (format csv, force_quote (b))", true),
            ("copy t to stdout (format csv, force_quote (a))", false),
            ("copy t to stdout (format csv, force_quote *)", false),
            ("copy t to stdout (format csv, quote '1')", false),
        ] {
            let format = format(statement);
            let writer = Writer::new(&format, ["a", "b", "c"].into_iter());
            assert_eq!(writer.is_direct(&writers, 0), direct, "{statement}");
            let (mut head, mut found) = (b"head".to_vec(), Vec::new());
            writer.messages(&writers, 3, &mut head, &mut found);
            let mut wanted = Vec::new();
            for at in 0..3 {
                backend::copied(&mut wanted, |out| {
                    if at == 0 {
                        out.extend(b"head");
                    }
                    writer.row(&writers, (at, &[false; 3]), out);
                });
            }
            assert_eq!(found, wanted, "{statement}");
            assert!(head.is_empty());
        }
    }
}
