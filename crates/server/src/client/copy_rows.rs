//! The rows in lines of text or CSV that a client sends, as columns of texts.
//!
//! Lines of text that are UTF-8 are read in one pass over words of eight bytes, and their fields are taken from where they lie.
//! What is not so common is read line by line: CSV with quotes, unusual delimiters, and whatever is not UTF-8, to say in which
//! line.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewBuilder};
use atoll::{HeaderLine, TransferFormat};
use memchr::{memchr, memchr_iter};

use crate::client::copy_columns::Columns;
use crate::client::copy_fields::{
    counted, csv_end, csv_fields, is_plain, text_end, text_fields, unescaped, utf8, without_return,
};

/// The line behind which nothing more comes.
const END: &[u8] = b"\\.";

/// What was read.
#[derive(Debug)]
pub(crate) struct Rows {
    /// Texts, one array for each column.
    pub columns: Vec<ArrayRef>,
    /// How many rows there are.
    pub count: usize,
    /// How many lines they were in.
    pub lines: u64,
    /// The client says that nothing more comes.
    pub ended: bool,
}

#[cfg(test)]
impl Rows {
    /// The fields of each row.
    pub(crate) fn fields(&self) -> Vec<Vec<Option<String>>> {
        use arrow::array::{Array, AsArray};
        let field = |column: &ArrayRef, row: usize| {
            let texts = column.as_string_view();
            texts.is_valid(row).then(|| texts.value(row).to_string())
        };
        let row = |row: usize| -> Vec<Option<String>> {
            let columns = self.columns.iter();
            columns.map(|column| field(column, row)).collect()
        };
        (0..self.count).map(row).collect()
    }
}

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// Its number among the lines that are read together, from 1.
    pub line: u64,
    pub message: String,
}

impl Wrong {
    /// What the client is told, if so many lines were read before.
    pub(crate) fn told(&self, before: u64) -> String {
        let line = (before + self.line).max(1);
        format!("{}, in line {line} of the copied data", self.message)
    }
}

/// Reads whole lines, the last of which may lack its end, into these columns. `header` says what the first line holds.
///
/// # Errors
/// The first line that is wrong.
pub(crate) fn read(
    lines: &[u8],
    format: &TransferFormat,
    columns: &Columns,
    header: HeaderLine,
) -> Result<Rows, Wrong> {
    Reading::new(lines, format, columns).rows(header)
}

/// Lines that are being read.
struct Reading<'p> {
    format: &'p TransferFormat,
    bytes: &'p [u8],
    /// The same, if it is UTF-8 without zeros.
    text: Option<&'p str>,
    into: &'p Columns,
    columns: Vec<StringViewBuilder>,
    /// Rows that were read, and lines that were begun.
    count: usize,
    lines: u64,
    ended: bool,
}

impl<'p> Reading<'p> {
    fn new(lines: &'p [u8], format: &'p TransferFormat, into: &'p Columns) -> Reading<'p> {
        let columns = into.count();
        // A row has as many bytes as columns, at least.
        let most = memchr_iter(b'\n', lines).count() + 1;
        let most = most.min(lines.len() / columns.max(1) + 1);
        let builders = (0..columns).map(|_| StringViewBuilder::with_capacity(most));
        let text = std::str::from_utf8(lines).ok();
        Reading {
            format,
            bytes: lines,
            text: text.filter(|_| memchr(0, lines).is_none()),
            into,
            columns: builders.collect(),
            count: 0,
            lines: 0,
            ended: false,
        }
    }

    fn rows(mut self, header: HeaderLine) -> Result<Rows, Wrong> {
        if let Err(message) = self.all(header) {
            let line = self.lines;
            return Err(Wrong { line, message });
        }
        let columns = self.columns.iter_mut();
        let columns = columns.map(|column| Arc::new(column.finish()) as ArrayRef);
        Ok(Rows {
            columns: columns.collect(),
            count: self.count,
            lines: self.lines,
            ended: self.ended,
        })
    }

    fn all(&mut self, header: HeaderLine) -> Result<(), String> {
        let mut from = 0;
        if header != HeaderLine::Row {
            // Where nothing comes, an empty line does.
            let (line, next) = self.line(0)?.unwrap_or_default();
            self.lines += 1;
            self.ended = line == END;
            from = next;
            if header == HeaderLine::Match {
                let line = if self.ended { &line[..0] } else { line };
                self.check_names(line)?;
            }
        }
        if self.ended {
            return Ok(());
        }
        match (self.format, self.text) {
            (
                TransferFormat::Text {
                    delimiter, null, ..
                },
                Some(text),
            ) if is_plain(*delimiter) && !self.columns.is_empty() => {
                self.fields_of(text, from, *delimiter, null)
            }
            _ => self.one_by_one(from),
        }
    }

    /// That a line holds the names of the columns.
    fn check_names(&self, line: &[u8]) -> Result<(), String> {
        match self.format {
            TransferFormat::Text {
                delimiter, null, ..
            } => {
                let found = text_fields(line, *delimiter, null, None)?;
                self.into.check_names(&found, null)
            }
            TransferFormat::Csv {
                delimiter,
                quote,
                escape,
                null,
                ..
            } => {
                let marks = (*delimiter, *quote, *escape);
                let found = csv_fields(line, marks, null, None)?;
                self.into.check_names(&found, null)
            }
            _ => Ok(()),
        }
    }

    /// Reads the lines of the text format from `from` on.
    fn fields_of(
        &mut self,
        text: &str,
        from: usize,
        delimiter: u8,
        null: &str,
    ) -> Result<(), String> {
        let bytes = text.as_bytes();
        let (mut line, mut start) = (from, from);
        let (mut column, mut escaped, mut skip) = (0, false, 0);
        self.lines += u64::from(line < bytes.len());
        for at in Marks::new(bytes, from, [delimiter, b'\n', b'\\']) {
            // What a backslash stands before ends nothing.
            if at < skip {
                continue;
            }
            match bytes[at] {
                b'\\' => (escaped, skip) = (true, at + 2),
                b'\n' => {
                    let last = (column, &text[start..at], escaped);
                    self.last_field(&text[line..at], last, delimiter, null)?;
                    (line, start) = (at + 1, at + 1);
                    (column, escaped) = (0, false);
                    if self.ended {
                        return Ok(());
                    }
                    self.lines += u64::from(line < bytes.len());
                }
                _ => {
                    // Of a line with too many fields it is said at its end.
                    if let Some(texts) = self.columns.get_mut(column) {
                        append(texts, &text[start..at], escaped, null)?;
                    }
                    (column, start, escaped) = (column + 1, at + 1, false);
                }
            }
        }
        if line == bytes.len() {
            return Ok(());
        }
        let last = (column, &text[start..], escaped);
        self.last_field(&text[line..], last, delimiter, null)
    }

    /// Takes the last field of a line, and with it the row.
    #[inline]
    fn last_field(
        &mut self,
        line: &str,
        (column, field, escaped): (usize, &str, bool),
        delimiter: u8,
        null: &str,
    ) -> Result<(), String> {
        let whole = without_return(line.as_bytes());
        if column == 0 && whole == END {
            self.ended = true;
            return Ok(());
        }
        if column + 1 != self.columns.len() {
            // This finds what is wrong.
            let fields = text_fields(whole, delimiter, null, Some(self.columns.len()))?;
            self.append_row(fields);
            return Ok(());
        }
        let field = &field[..field.len() - (line.len() - whole.len())];
        append(&mut self.columns[column], field, escaped, null)?;
        self.count += 1;
        Ok(())
    }

    /// Reads lines of any kind from `from` on.
    fn one_by_one(&mut self, mut from: usize) -> Result<(), String> {
        while let Some((line, next)) = self.line(from)? {
            self.lines += 1;
            if line == END {
                self.ended = true;
                return Ok(());
            }
            let columns = self.columns.len();
            let format = self.format;
            match format {
                TransferFormat::Text {
                    delimiter, null, ..
                } => {
                    let fields = text_fields(line, *delimiter, null, Some(columns))?;
                    self.append_row(fields);
                }
                TransferFormat::Csv {
                    delimiter,
                    quote,
                    escape,
                    null,
                    ..
                } => match self.text {
                    Some(text) if is_plain(*delimiter) && memchr(*quote, line).is_none() => {
                        self.unquoted(&text[from..from + line.len()], *delimiter, null)?;
                    }
                    _ => {
                        let marks = (*delimiter, *quote, *escape);
                        let fields = csv_fields(line, marks, null, Some(columns))?;
                        let fields = fields.into_iter().enumerate();
                        let fields = fields.map(|(at, field)| self.into.field(at, field, null));
                        let fields = fields.collect();
                        self.append_row(fields);
                    }
                },
                _ => return Err("not text".into()),
            }
            from = next;
        }
        Ok(())
    }

    /// Takes the fields of a line of CSV without quotes.
    fn unquoted(&mut self, line: &str, delimiter: u8, null: &str) -> Result<(), String> {
        let bytes = line.as_bytes();
        counted(
            memchr_iter(delimiter, bytes).count() + 1,
            self.columns.len(),
        )?;
        let mut from = 0;
        for (at, column) in self.columns.iter_mut().enumerate() {
            let end = memchr(delimiter, &bytes[from..]).map_or(bytes.len(), |at| from + at);
            if self.into.is_never_null(at) {
                column.append_value(&line[from..end]);
            } else {
                append(column, &line[from..end], false, null)?;
            }
            from = end + 1;
        }
        self.count += 1;
        Ok(())
    }

    /// The line that begins at `from`, without its end, and where the next one begins; none behind the last.
    fn line(&self, from: usize) -> Result<Option<(&'p [u8], usize)>, String> {
        let bytes = self.bytes;
        if from >= bytes.len() {
            return Ok(None);
        }
        let rest = &bytes[from..];
        let end = match self.format {
            TransferFormat::Csv { quote, escape, .. } => csv_end(rest, *quote, *escape)?,
            _ => text_end(rest),
        };
        Ok(Some((without_return(&rest[..end]), from + end + 1)))
    }

    fn append_row(&mut self, fields: Vec<Option<String>>) {
        for (column, field) in self.columns.iter_mut().zip(fields) {
            column.append_option(field);
        }
        self.count += 1;
    }
}

/// Appends a field of a line of text, which may have backslashes if it is `escaped`.
#[inline]
fn append(
    column: &mut StringViewBuilder,
    field: &str,
    escaped: bool,
    null: &str,
) -> Result<(), String> {
    if field == null {
        column.append_null();
    } else if escaped {
        column.append_value(utf8(unescaped(field.as_bytes()))?);
    } else {
        column.append_value(field);
    }
    Ok(())
}

/// One in each byte.
const ONES: u64 = u64::from_ne_bytes([1; 8]);

/// All bits but the highest of each byte.
const LOW: u64 = ONES * 0x7f;

/// The highest bit of each byte that is zero, and no other bit.
fn zeros(word: u64) -> u64 {
    !(((word & LOW) + LOW) | word | LOW)
}

/// The places of any of three bytes, in order. None of the three is zero.
struct Marks<'b> {
    bytes: &'b [u8],
    /// Each of the three eight times.
    wanted: [u64; 3],
    /// Where the word begins that was looked at last, and the one behind it.
    word: usize,
    next: usize,
    /// What was found in the word and was not told yet.
    found: u64,
}

impl<'b> Marks<'b> {
    /// Those from `from` on.
    fn new(bytes: &'b [u8], from: usize, wanted: [u8; 3]) -> Marks<'b> {
        Marks {
            bytes,
            wanted: wanted.map(|byte| ONES * u64::from(byte)),
            word: from,
            next: from,
            found: 0,
        }
    }
}

impl Iterator for Marks<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.found == 0 {
            let rest = self.bytes.get(self.next..)?;
            let word = match rest.first_chunk::<8>() {
                Some(eight) => u64::from_le_bytes(*eight),
                None if rest.is_empty() => return None,
                None => {
                    let mut last = [0; 8];
                    last[..rest.len()].copy_from_slice(rest);
                    u64::from_le_bytes(last)
                }
            };
            self.word = self.next;
            self.next += 8;
            let [a, b, c] = self.wanted;
            self.found = zeros(word ^ a) | zeros(word ^ b) | zeros(word ^ c);
        }
        let at = self.word + self.found.trailing_zeros() as usize / 8;
        self.found &= self.found - 1;
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(options: &str) -> TransferFormat {
        let statement = format!("copy t from stdin ({options})");
        atoll::transfer(&statement).unwrap().unwrap().format
    }

    /// The same, by what reads lines of any kind.
    fn one_by_one(lines: &[u8], format: &TransferFormat, columns: &Columns) -> Result<Rows, Wrong> {
        let mut reading = Reading::new(lines, format, columns);
        reading.text = None;
        reading.rows(HeaderLine::Row)
    }

    #[test]
    fn marks_are_found_wherever_they_are() {
        let mut random = fastrand::Rng::with_seed(1);
        let letters = b"\t\n\\ab\x00\x8a\x89\xdc\xff\x08\x0b";
        for _ in 0..10_000 {
            let length = random.usize(..40);
            let bytes: Vec<u8> = (0..length)
                .map(|_| letters[random.usize(..letters.len())])
                .collect();
            let from = random.usize(..=length);
            let wanted = (from..length).filter(|at| b"\t\n\\".contains(&bytes[*at]));
            let found = Marks::new(&bytes, from, *b"\t\n\\");
            assert!(found.eq(wanted), "{bytes:?} from {from}");
        }
    }

    #[test]
    fn in_one_pass_is_read_what_is_read_line_by_line() {
        let mut random = fastrand::Rng::with_seed(137);
        let letters: Vec<char> = "a1\t\t\n\n\r\\,,\".Né\u{1f41f}\0".chars().collect();
        let formats = [
            format("format text"),
            format("delimiter ',', null ''"),
            format("delimiter '\"', null 'N'"),
            format("format csv"),
            format("format csv, quote '''', escape '\\', null 'N'"),
        ];
        for case in 0..60_000 {
            // Zeros are rare: all that is read with them is read line by line.
            let drawn = letters.len() - usize::from(case % 16 != 0);
            let length = random.usize(..30);
            let text: String = (0..length)
                .map(|_| letters[random.usize(..drawn)])
                .collect();
            let format = &formats[case % formats.len()];
            for columns in 0..4 {
                let all = Columns::plain(columns);
                let found = read(text.as_bytes(), format, &all, HeaderLine::Row);
                let wanted = one_by_one(text.as_bytes(), format, &all);
                match (found, wanted) {
                    (Ok(found), Ok(wanted)) => {
                        assert_eq!(found.fields(), wanted.fields(), "{text:?}");
                        assert_eq!(found.ended, wanted.ended, "{text:?}");
                        assert_eq!(found.lines, wanted.lines, "{text:?}");
                    }
                    (found, wanted) => {
                        assert_eq!(found.err(), wanted.err(), "{text:?} {format:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn lines_are_counted_and_names_are_passed_over() {
        let text = b"id\tname\n1\tone\r\n\\N\ttwo\\\nlines\n3\tthree";
        let two = Columns::plain(2);
        let rows = read(text, &format("header"), &two, HeaderLine::Names).unwrap();
        assert_eq!((rows.count, rows.lines, rows.ended), (3, 4, false));
        let fields = rows.fields();
        assert_eq!(fields[0], [Some("1".to_string()), Some("one".to_string())]);
        assert_eq!(fields[1], [None, Some("two\nlines".to_string())]);
        assert_eq!(
            fields[2],
            [Some("3".to_string()), Some("three".to_string())]
        );
        let plain = format("format text");
        let ended = read(b"1\t2\n\\.\nx", &plain, &two, HeaderLine::Row).unwrap();
        assert_eq!((ended.count, ended.ended), (1, true));
        let none = read(b"\n\n", &plain, &Columns::plain(0), HeaderLine::Row).unwrap();
        assert_eq!((none.count, none.columns.len()), (2, 0));
    }

    #[test]
    fn the_first_line_that_is_wrong_is_told() {
        let told = |text: &[u8]| {
            let two = Columns::plain(2);
            let wrong = read(text, &format("format text"), &two, HeaderLine::Row);
            wrong.unwrap_err().told(10)
        };
        let missing = "missing data: 1 fields for 2 columns, in line 12 of the copied data";
        assert_eq!(told(b"1\t2\n3\n4\n"), missing);
        assert_eq!(told(b"1\t2\n3"), missing);
        assert!(told(b"1\t2\t3\n4\n").starts_with("extra data after last expected column: 3"));
        assert!(told(b"1\t2\t3\n4\n").ends_with("in line 11 of the copied data"));
        let invalid = "invalid byte sequence for encoding \"UTF8\"";
        for text in [&b"1\t2\n3\t\xff\n4\n"[..], b"1\t2\n\\xff\t3\n"] {
            assert_eq!(
                told(text),
                format!("{invalid}, in line 12 of the copied data")
            );
        }
        let zero = format!("{invalid}: 0x00, in line 11 of the copied data");
        assert_eq!(told(b"1\t\\0\n\xff\t3\n"), zero);
    }
}
