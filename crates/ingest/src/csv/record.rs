//! Reads the fields of text records.
//!
//! A field that begins with a quote goes on to the next single quote, after which it must end; a doubled quote is one
//! character of it. Elsewhere quotes are characters like others. Records end with `\n`, `\r\n` or `\r`; empty lines
//! are none, except where records have a single field, which may be empty.

use memchr::{memchr, memchr2};

use crate::csv::backslash;
use crate::csv::layout::{Backslash, Dialect};

/// Marks, in a span's start, a field whose text is in [`Records::extra`].
const EXTRA: u32 = 1 << 31;

/// Marks, in a span's end, a field that stood within quotes.
const QUOTED: u32 = 1 << 31;

/// Where the text of a field is.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// With [`EXTRA`], if it is not in the text itself.
    start: u32,
    /// With [`QUOTED`], if quotes stood around it.
    end: u32,
}

/// Fields of records.
#[derive(Debug, Default)]
pub(crate) struct Records {
    spans: Vec<Span>,
    /// Where each record begins in the text, and where its fields end in `spans`.
    records: Vec<(u32, u32)>,
    /// Fields without their doubled quotes.
    extra: String,
}

impl Records {
    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Forgets all records.
    pub fn clear(&mut self) {
        self.spans.clear();
        self.records.clear();
        self.extra.clear();
    }

    /// How many fields a record has.
    pub fn width(&self, record: usize) -> usize {
        self.records[record].1 as usize - self.first(record)
    }

    /// Where a record begins in the text.
    pub fn start(&self, record: usize) -> usize {
        self.records[record].0 as usize
    }

    fn first(&self, record: usize) -> usize {
        let before = record
            .checked_sub(1)
            .map_or(0, |before| self.records[before].1);
        before as usize
    }

    /// A field of a record that has it; `text` is what the records were read from.
    pub fn field<'a>(&'a self, text: &'a str, record: usize, field: usize) -> &'a str {
        self.text(text, self.spans[self.first(record) + field])
    }

    /// The fields `field` of all records, each of which has `width`, and whether each stood within quotes.
    pub fn column<'a>(
        &'a self,
        text: &'a str,
        field: usize,
        width: usize,
    ) -> impl ExactSizeIterator<Item = (&'a str, bool)> {
        let spans = self.spans.get(field..).unwrap_or_default();
        spans
            .iter()
            .step_by(width.max(1))
            .map(|span| (self.text(text, *span), span.end & QUOTED != 0))
    }

    fn text<'a>(&'a self, text: &'a str, span: Span) -> &'a str {
        let end = (span.end & !QUOTED) as usize;
        match span.start & EXTRA {
            0 => &text[span.start as usize..end],
            _ => &self.extra[(span.start & !EXTRA) as usize..end],
        }
    }
}

/// Why a record cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The quote at this offset is not closed.
    Unclosed { opened: usize },
    /// After the quote that closes the field from `opened` on there is text.
    Trailing { opened: usize, at: usize },
    /// The backslashes of the field at this offset stand for no text.
    Backslash { at: usize },
    /// After the end of the data there is more.
    Behind { at: usize },
}

impl Wrong {
    /// Where the trouble is.
    pub fn offset(self) -> usize {
        match self {
            Wrong::Unclosed { opened } => opened,
            Wrong::Trailing { at, .. } | Wrong::Backslash { at } | Wrong::Behind { at } => at,
        }
    }

    /// What it is, `text` being what was read, which begins at `line` of the file.
    pub fn reason(self, text: &str, line: u64) -> String {
        match self {
            Wrong::Unclosed { .. } => unclosed().to_owned(),
            Wrong::Backslash { .. } => "the backslashes of a field stand for no UTF-8 text: one at the end of a line, or bytes that are no character; give the format csv if they are backslashes".to_owned(),
            Wrong::Behind { .. } => "more follows the end of the data, which a line of `\\.` is".to_owned(),
            Wrong::Trailing { opened, .. } => format!(
                "text follows a closing quote; the field began with a quote on line {}; double quotes within quotes, or say how they are escaped, or that there are none",
                line + lines(&text.as_bytes()[..opened])
            ),
        }
    }
}

/// The message for a quote that is never closed.
pub(crate) fn unclosed() -> &'static str {
    "a quote that opens here is never closed; close it, or say that there are no quotes or which other character they are"
}

/// How many line ends there are.
pub(crate) fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Reads one record after the other.
pub(crate) struct Reader<'t> {
    text: &'t str,
    dialect: Dialect,
    at: usize,
}

impl<'t> Reader<'t> {
    /// Reads `text`, of less than 2 GiB, which starts at a record's start.
    pub fn new(text: &'t str, dialect: Dialect) -> Reader<'t> {
        Reader::resume(text, dialect, 0)
    }

    /// Reads on at `at`, as [`Reader::at`] was.
    pub fn resume(text: &'t str, dialect: Dialect, at: usize) -> Reader<'t> {
        debug_assert!(text.len() < EXTRA as usize);
        Reader { text, dialect, at }
    }

    /// How far it has come.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Appends the next record; none after the last.
    pub fn next(&mut self, out: &mut Records) -> Result<bool, Wrong> {
        if let Some(kind) = self.dialect.backslash {
            return self.escaped(kind, out);
        }
        let bytes = self.text.as_bytes();
        while !self.dialect.single && matches!(bytes.get(self.at), Some(b'\n' | b'\r')) {
            self.at += 1;
        }
        if self.at >= bytes.len() {
            return Ok(false);
        }
        let (start, first) = (self.at, out.spans.len());
        loop {
            let span = match bytes.get(self.at) {
                quote @ Some(_) if quote.copied() == self.dialect.quote => self.quoted(out)?,
                _ => {
                    let begin = self.at;
                    self.at = field_end(bytes, begin, self.dialect.delimiter);
                    Span {
                        start: begin as u32,
                        end: self.at as u32,
                    }
                }
            };
            out.spans.push(span);
            match bytes.get(self.at) {
                Some(b'\n' | b'\r') | None => break,
                Some(_) => self.at += 1,
            }
        }
        if self.dialect.trailing
            && out.spans.len() > first + 1
            && out.spans.last().is_some_and(|last| last.start == last.end)
        {
            out.spans.pop();
        }
        self.line_end();
        out.records.push((start as u32, out.spans.len() as u32));
        Ok(true)
    }

    /// The same where backslashes escape: an empty line is a record of one empty field, and `\.` alone is the end.
    fn escaped(&mut self, kind: Backslash, out: &mut Records) -> Result<bool, Wrong> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        if start >= bytes.len() {
            return Ok(false);
        }
        let delimiter = self.dialect.delimiter;
        loop {
            let begin = self.at;
            let (end, escapes) = backslash::field_end(bytes, begin, delimiter);
            self.at = end;
            let field = &self.text[begin..end];
            let extra = out.extra.len();
            let mut span = Span {
                start: begin as u32,
                end: end as u32,
            };
            if escapes {
                if field == "\\N" && kind == Backslash::Null {
                    out.extra.push_str(backslash::NULL);
                } else if field == "\\." && begin == start && bytes.get(end) != Some(&delimiter) {
                    self.line_end();
                    if self.at < bytes.len() {
                        return Err(Wrong::Behind { at: self.at });
                    }
                    return Ok(false);
                } else if !backslash::unescape(field, &mut out.extra) {
                    return Err(Wrong::Backslash { at: begin });
                }
                span.start = extra as u32 | EXTRA;
                span.end = out.extra.len() as u32;
            }
            out.spans.push(span);
            if bytes.get(end) != Some(&delimiter) {
                break;
            }
            self.at += 1;
        }
        self.line_end();
        out.records.push((start as u32, out.spans.len() as u32));
        Ok(true)
    }

    /// Passes over one line end.
    fn line_end(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += match rest {
            [b'\r', b'\n', ..] => 2,
            [b'\r' | b'\n', ..] => 1,
            _ => 0,
        };
    }

    /// The field that begins with a quote at this place; afterwards the place is that of its delimiter.
    fn quoted(&mut self, out: &mut Records) -> Result<Span, Wrong> {
        let bytes = self.text.as_bytes();
        let opened = self.at;
        let quote = bytes[opened];
        let escape = self.dialect.escape.unwrap_or(quote);
        let (begin, extra) = (opened + 1, out.extra.len());
        // What was not yet copied, where quotes are to be left out.
        let mut from = begin;
        self.at = begin;
        let end = loop {
            let rest = &bytes[self.at..];
            let found = if escape == quote {
                memchr(quote, rest)
            } else {
                memchr2(quote, escape, rest)
            };
            let at = self.at + found.ok_or(Wrong::Unclosed { opened })?;
            let doubled = bytes.get(at + 1) == Some(&quote);
            if bytes[at] == quote && !doubled {
                break at;
            }
            // The character after it may be one of several bytes: only the first is passed over.
            out.extra.push_str(&self.text[from..at]);
            from = at + 1;
            self.at = at + 2;
            if self.at > bytes.len() {
                return Err(Wrong::Unclosed { opened });
            }
        };
        self.at = end + 1;
        match bytes.get(self.at) {
            None | Some(b'\n' | b'\r') => {}
            Some(byte) if *byte == self.dialect.delimiter => {}
            Some(_) => {
                return Err(Wrong::Trailing {
                    opened,
                    at: self.at,
                });
            }
        }
        if from == begin {
            return Ok(Span {
                start: begin as u32,
                end: end as u32 | QUOTED,
            });
        }
        out.extra.push_str(&self.text[from..end]);
        Ok(Span {
            start: extra as u32 | EXTRA,
            end: out.extra.len() as u32 | QUOTED,
        })
    }
}

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const LOW: u64 = ONES * 0x7f;

/// The high bit of each byte of `word` that is zero.
fn zeros(word: u64) -> u64 {
    !(((word & LOW) + LOW) | word | LOW)
}

/// Where the field that begins at `from` ends: at a delimiter, a line end, or the end of the text.
fn field_end(bytes: &[u8], from: usize, delimiter: u8) -> usize {
    let (wanted, lf, cr) = (
        ONES * u64::from(delimiter),
        ONES * u64::from(b'\n'),
        ONES * u64::from(b'\r'),
    );
    let mut at = from;
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight);
        let hits = zeros(word ^ wanted) | zeros(word ^ lf) | zeros(word ^ cr);
        if hits != 0 {
            return at + hits.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let ends = |byte: &u8| *byte == delimiter || matches!(byte, b'\n' | b'\r');
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(ends).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CSV: Dialect = Dialect {
        delimiter: b',',
        quote: Some(b'"'),
        escape: None,
        trailing: false,
        single: false,
        backslash: None,
    };

    fn read(text: &str, dialect: Dialect) -> Result<Vec<Vec<String>>, Wrong> {
        let (mut reader, mut records) = (Reader::new(text, dialect), Records::default());
        while reader.next(&mut records)? {}
        let fields = |record| {
            let fields = 0..records.width(record);
            fields
                .map(|field| records.field(text, record, field).to_owned())
                .collect()
        };
        Ok((0..records.len()).map(fields).collect())
    }

    #[test]
    fn fields_are_read() {
        let text = "a,b\n\n1,\"x\ny,z\"\r\n\"he said \"\"no\"\"\",5\" pipe\r,\n\"\",\"\"\"\"";
        let wanted: [&[&str]; 5] = [
            &["a", "b"],
            &["1", "x\ny,z"],
            &["he said \"no\"", "5\" pipe"],
            &["", ""],
            &["", "\""],
        ];
        assert_eq!(read(text, CSV).unwrap(), wanted);
        assert_eq!(
            read("äöü,a fairly long field,x", CSV).unwrap(),
            [["äöü", "a fairly long field", "x"]]
        );
        assert!(read("\n\r\n", CSV).unwrap().is_empty());
    }

    #[test]
    fn an_empty_line_may_be_a_record() {
        let single = Dialect {
            single: true,
            ..CSV
        };
        let text = "a\n\n\"\"\r\n\r\nb";
        let wanted: [&[&str]; 5] = [&["a"], &[""], &[""], &[""], &["b"]];
        assert_eq!(read(text, single).unwrap(), wanted);
        let (mut reader, mut records) = (Reader::new(text, single), Records::default());
        while reader.next(&mut records).unwrap() {}
        let quoted = records.column(text, 0, 1).map(|(_, quoted)| quoted);
        assert_eq!(
            quoted.collect::<Vec<_>>(),
            [false, false, true, false, false]
        );
    }

    #[test]
    fn backslashes_escape() {
        let copied = Dialect {
            delimiter: b'\t',
            quote: None,
            backslash: Some(Backslash::Null),
            ..CSV
        };
        let text = "1\ta\\tb\r\n\\N\t\\\\N\n\n\"\ta\\\tb\n\\.\n";
        let wanted: [&[&str]; 4] = [&["1", "a\tb"], &["\0", "\\N"], &[""], &["\"", "a\tb"]];
        assert_eq!(read(text, copied).unwrap(), wanted);
        let other = Dialect {
            backslash: Some(Backslash::Other),
            ..copied
        };
        assert_eq!(read("\\N\t\\.", other).unwrap(), [["N", "."]]);
        assert_eq!(read("a\\", copied), Err(Wrong::Backslash { at: 0 }));
        assert_eq!(read("\\.\na\n", copied), Err(Wrong::Behind { at: 3 }));
    }

    #[test]
    fn dialects_differ() {
        let tbl = Dialect {
            delimiter: b'|',
            quote: None,
            trailing: true,
            ..CSV
        };
        assert_eq!(
            read("1|\"a|\n2||\n3|b\n", tbl).unwrap(),
            [["1", "\"a"], ["2", ""], ["3", "b"]]
        );
        let escaped = Dialect {
            escape: Some(b'\\'),
            ..CSV
        };
        assert_eq!(
            read("\"a\\\"b\\\\\",\"\\ä\"\"\"\n", escaped).unwrap(),
            [["a\"b\\", "ä\""]]
        );
        let single = Dialect {
            quote: Some(b'\''),
            ..CSV
        };
        assert_eq!(read("'a,b',\"c", single).unwrap(), [["a,b", "\"c"]]);
    }

    #[test]
    fn broken_quotes_are_told() {
        assert_eq!(read("a,\"b", CSV), Err(Wrong::Unclosed { opened: 2 }));
        assert_eq!(
            read("a\n\"b\"c\n", CSV),
            Err(Wrong::Trailing { opened: 2, at: 5 })
        );
        let escaped = Dialect {
            escape: Some(b'\\'),
            ..CSV
        };
        assert_eq!(read("\"a\\", escaped), Err(Wrong::Unclosed { opened: 0 }));
    }

    /// What `csv-core` reads.
    fn peer(text: &str, dialect: Dialect) -> Vec<Vec<String>> {
        let mut reader = csv_core::ReaderBuilder::new()
            .delimiter(dialect.delimiter)
            .quote(dialect.quote.unwrap_or_default())
            .quoting(dialect.quote.is_some())
            .escape(dialect.escape)
            .build();
        let (mut rest, mut rows) = (text.as_bytes(), Vec::new());
        let (mut out, mut ends) = (vec![0; text.len() + 1], vec![0; text.len() + 1]);
        loop {
            let (mut written, mut fields) = (0, 0);
            loop {
                let (ended, read, wrote, found) =
                    reader.read_record(rest, &mut out[written..], &mut ends[fields..]);
                (rest, written, fields) = (&rest[read..], written + wrote, fields + found);
                match ended {
                    csv_core::ReadRecordResult::InputEmpty => {}
                    csv_core::ReadRecordResult::Record => break,
                    csv_core::ReadRecordResult::End => return rows,
                    full => panic!("{full:?}"),
                }
            }
            let starts = std::iter::once(0).chain(ends[..fields].iter().copied());
            let spans = starts.zip(ends[..fields].iter().copied());
            let field = |(from, to): (usize, usize)| String::from_utf8(out[from..to].to_vec());
            rows.push(spans.map(|span| field(span).unwrap()).collect());
        }
    }

    proptest! {
        /// What we read is what `csv-core` reads; it reads some of what we refuse, too.
        #[test]
        fn csv_core_reads_the_same(text in "[ab1,\"\n\rä]{0,60}", quote in prop::option::of(Just(b'"'))) {
            let dialect = Dialect { quote, ..CSV };
            if let Ok(rows) = read(&text, dialect) {
                prop_assert_eq!(peer(&text, dialect), rows);
            }
        }

        /// The same, with an escape within quotes.
        #[test]
        fn csv_core_escapes_the_same(text in "[a,\"\n\\\\]{0,60}") {
            let dialect = Dialect { escape: Some(b'\\'), ..CSV };
            if let Ok(rows) = read(&text, dialect) {
                prop_assert_eq!(peer(&text, dialect), rows);
            }
        }

        /// Whatever is written with its quotes doubled is read as it was.
        #[test]
        fn what_is_quoted_comes_back(rows in prop::collection::vec(prop::collection::vec("[a,\"\n\rä;]{0,12}", 2), 0..8)) {
            let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let lines = rows.iter().map(|row| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n");
            prop_assert_eq!(read(&lines.collect::<String>(), CSV).unwrap(), rows);
        }

        /// Any text is read or refused.
        #[test]
        fn any_text_is_read(text in "[a1,\"\n\rä\\\\]{0,60}", escape in prop::option::of(Just(b'\\'))) {
            let _ = read(&text, Dialect { escape, ..CSV });
        }

        #[test]
        fn ends_are_found(bytes in prop::collection::vec(prop_oneof![Just(b','), Just(b'\n'), any::<u8>()], 0..40), from in 0usize..40) {
            let from = from.min(bytes.len());
            let ends = |byte: &u8| matches!(byte, b',' | b'\n' | b'\r');
            let wanted = bytes[from..].iter().position(ends).map_or(bytes.len(), |at| from + at);
            prop_assert_eq!(field_end(&bytes, from, b','), wanted);
        }
    }
}
