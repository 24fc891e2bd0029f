//! The formats of `copy`: rows as lines of text or CSV, both ways, and as binary to the client.

use arrow::datatypes::SchemaRef;
use atoll::TransferFormat;

use crate::values::row::Writers;
use crate::wire::backend;

/// Most bytes of a line, which is kept until its end has come.
const LONGEST: usize = 256 << 20;

/// Writes rows.
pub(crate) struct Writer<'f> {
    format: &'f TransferFormat,
    /// What stands behind a backslash for each byte; 0 for one that stands for itself. In CSV: bytes that need quotes.
    escapes: [u8; 256],
}

impl<'f> Writer<'f> {
    pub(crate) fn new(format: &'f TransferFormat) -> Writer<'f> {
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
        Writer { format, escapes }
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
                rows.is_numeric(column) && !may_be(delimiter) && !may_be(quote) && never_null
            }
            _ => false,
        }
    }

    /// What comes before the first row.
    pub(crate) fn head(&self, schema: &SchemaRef) -> Option<Vec<u8>> {
        let wanted = match self.format {
            TransferFormat::Text { header, .. } | TransferFormat::Csv { header, .. } => *header,
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
            self.value(field.name().as_bytes(), false, &mut line);
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
            } else if !direct && self.is_special(&out[start..], alone) {
                let value = out.split_off(start);
                self.value(&value, alone, out);
            }
        }
        out.push(b'\n');
    }

    /// Whether a value, that of the only column if `alone`, does not stand as it is.
    fn is_special(&self, value: &[u8], alone: bool) -> bool {
        let escapes = value
            .iter()
            .any(|byte| self.escapes[usize::from(*byte)] != 0);
        match self.format {
            TransferFormat::Csv { null, .. } => {
                escapes || value == null.as_bytes() || (alone && value == b"\\.")
            }
            _ => escapes,
        }
    }

    /// Appends a value, of the only column if `alone`.
    fn value(&self, value: &[u8], alone: bool, out: &mut Vec<u8>) {
        if !self.is_special(value, alone) {
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

/// What a reader finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Row(Vec<Option<String>>),
    /// The line has not ended: more bytes are needed, or there are none.
    More,
    /// The client says that nothing more comes.
    End,
}

/// Reads rows from pieces that end anywhere.
pub(crate) struct Reader {
    format: TransferFormat,
    columns: usize,
    /// Bytes from `taken` on are still to be read.
    bytes: Vec<u8>,
    taken: usize,
    /// Bytes after `taken` in which no line ends, and whether they end within quotes.
    looked: usize,
    quoted: bool,
    /// Whether the last byte that was looked at escapes the next one.
    escaped: bool,
    line: u64,
    ended: bool,
    header: bool,
}

impl Reader {
    pub(crate) fn new(format: &TransferFormat, columns: usize) -> Reader {
        let header = match format {
            TransferFormat::Text { header, .. } | TransferFormat::Csv { header, .. } => *header,
            _ => false,
        };
        Reader {
            format: format.clone(),
            columns,
            bytes: Vec::new(),
            taken: 0,
            looked: 0,
            quoted: false,
            escaped: false,
            line: 0,
            ended: false,
            header,
        }
    }

    /// Takes more bytes.
    pub(crate) fn push(&mut self, more: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend(more);
    }

    /// The next row. `last` says that no bytes will follow.
    ///
    /// # Errors
    /// What is wrong with the line, and its number.
    pub(crate) fn next(&mut self, last: bool) -> Result<Line, String> {
        loop {
            if self.ended {
                return Ok(Line::End);
            }
            let Some(end) = self.line_end(last) else {
                return if self.bytes.len() - self.taken > LONGEST {
                    Err(self.wrong("the line is too long"))
                } else if last && self.quoted {
                    Err(self.wrong("unterminated CSV quoted field"))
                } else {
                    Ok(Line::More)
                };
            };
            let start = self.taken;
            self.taken = (end + 1).min(self.bytes.len());
            (self.looked, self.quoted, self.escaped) = (0, false, false);
            self.line += 1;
            let mut line = &self.bytes[start..end];
            if line.last() == Some(&b'\r') && !line.ends_with(b"\\\r") {
                line = &line[..line.len() - 1];
            }
            if line == b"\\." {
                self.ended = true;
                continue;
            }
            if std::mem::take(&mut self.header) {
                continue;
            }
            let fields = match &self.format {
                TransferFormat::Csv { .. } => self.csv(line),
                _ => self.text(line),
            };
            return fields
                .map(Line::Row)
                .map_err(|message| self.wrong(&message));
        }
    }

    fn wrong(&self, message: &str) -> String {
        format!("{message}, in line {} of the copied data", self.line.max(1))
    }

    /// Where the line ends that begins at `taken`.
    fn line_end(&mut self, last: bool) -> Option<usize> {
        let from = self.taken + self.looked;
        for (at, byte) in self.bytes.iter().enumerate().skip(from) {
            match &self.format {
                TransferFormat::Csv { quote, escape, .. } => {
                    if std::mem::take(&mut self.escaped) {
                        continue;
                    }
                    if self.quoted && byte == escape && escape != quote {
                        self.escaped = true;
                    } else if byte == quote {
                        // A doubled one ends the quotes and begins them again, which comes to the same.
                        self.quoted = !self.quoted;
                    } else if *byte == b'\n' && !self.quoted {
                        return Some(at);
                    }
                }
                _ => {
                    if std::mem::take(&mut self.escaped) {
                        continue;
                    }
                    match byte {
                        b'\\' => self.escaped = true,
                        b'\n' => return Some(at),
                        _ => {}
                    }
                }
            }
        }
        self.looked = self.bytes.len() - self.taken;
        // The last line may lack its end.
        (last && self.looked > 0 && !self.quoted).then_some(self.bytes.len())
    }

    fn utf8(bytes: Vec<u8>) -> Result<String, String> {
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| "invalid byte sequence for encoding \"UTF8\"".to_string())?;
        if text.contains('\0') {
            return Err("invalid byte sequence for encoding \"UTF8\": 0x00".to_string());
        }
        Ok(text)
    }

    fn counted(&self, fields: Vec<Option<String>>) -> Result<Vec<Option<String>>, String> {
        match fields.len() {
            found if found == self.columns => Ok(fields),
            found if found < self.columns => Err(format!(
                "missing data: {found} fields for {} columns",
                self.columns
            )),
            found => Err(format!(
                "extra data after last expected column: {found} fields for {} columns",
                self.columns
            )),
        }
    }

    fn text(&self, line: &[u8]) -> Result<Vec<Option<String>>, String> {
        let TransferFormat::Text {
            delimiter, null, ..
        } = &self.format
        else {
            return Err("not text".into());
        };
        let mut fields = Vec::with_capacity(self.columns);
        let mut start = 0;
        let mut at = 0;
        loop {
            match line.get(at) {
                Some(b'\\') => at += 2,
                Some(byte) if byte != delimiter => at += 1,
                found => {
                    let raw = &line[start..at.min(line.len())];
                    fields.push(if raw == null.as_bytes() {
                        None
                    } else {
                        Some(Reader::utf8(unescaped(raw))?)
                    });
                    if found.is_none() {
                        // A table without columns has rows without fields.
                        if self.columns == 0 && line.is_empty() {
                            fields.clear();
                        }
                        return self.counted(fields);
                    }
                    at += 1;
                    start = at;
                }
            }
        }
    }

    fn csv(&self, line: &[u8]) -> Result<Vec<Option<String>>, String> {
        let TransferFormat::Csv {
            delimiter,
            quote,
            escape,
            null,
            ..
        } = &self.format
        else {
            return Err("not csv".into());
        };
        let mut fields = Vec::with_capacity(self.columns);
        let mut at = 0;
        loop {
            let (mut value, mut within, mut had_quotes) = (Vec::new(), false, false);
            while let Some(byte) = line.get(at) {
                let next = line.get(at + 1);
                if within {
                    if byte == escape && next.is_some_and(|next| next == quote || next == escape) {
                        value.extend(next);
                        at += 2;
                        continue;
                    }
                    if byte == quote {
                        within = false;
                    } else {
                        value.push(*byte);
                    }
                } else if byte == quote {
                    within = true;
                    had_quotes = true;
                } else if byte == delimiter {
                    break;
                } else {
                    value.push(*byte);
                }
                at += 1;
            }
            if within {
                return Err("unterminated CSV quoted field".to_string());
            }
            fields.push(if !had_quotes && value == null.as_bytes() {
                None
            } else {
                Some(Reader::utf8(value)?)
            });
            if line.get(at).is_none() {
                return self.counted(fields);
            }
            at += 1;
        }
    }
}

/// A field of the text format without its backslashes.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut bytes = field.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        match bytes.next() {
            None => plain.push(b'\\'),
            Some(b'b') => plain.push(8),
            Some(b'f') => plain.push(12),
            Some(b'n') => plain.push(b'\n'),
            Some(b'r') => plain.push(b'\r'),
            Some(b't') => plain.push(b'\t'),
            Some(b'v') => plain.push(11),
            Some(b'x') => {
                let mut code = None;
                for _ in 0..2 {
                    let digit = bytes.next_if(u8::is_ascii_hexdigit);
                    let digit = digit.and_then(|digit| char::from(digit).to_digit(16));
                    code = digit.map(|digit| code.unwrap_or(0) * 16 + digit).or(code);
                }
                plain.push(code.map_or(b'x', |code| code as u8));
            }
            Some(first @ b'0'..=b'7') => {
                let mut code = u32::from(first - b'0');
                for _ in 0..2 {
                    if let Some(digit) = bytes.next_if(|byte| matches!(byte, b'0'..=b'7')) {
                        code = code * 8 + u32::from(digit - b'0');
                    }
                }
                plain.push(code as u8);
            }
            Some(other) => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray};

    use super::*;
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
        let mut reader = Reader::new(format, columns);
        let mut pieces = bytes.chunks(size);
        let (mut rows, mut last) = (Vec::new(), false);
        loop {
            match reader.next(last)? {
                Line::Row(fields) => rows.push(fields),
                Line::More if last => return Ok(rows),
                Line::More => match pieces.next() {
                    Some(piece) => reader.push(piece),
                    None => last = true,
                },
                Line::End => return Ok(rows),
            }
        }
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
                Writer::new(format).row(&writers, (at, &vec![false; width]), &mut bytes);
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
            ("copy t to stdout (format csv, quote '1')", false),
        ] {
            let format = format(statement);
            let writer = Writer::new(&format);
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
