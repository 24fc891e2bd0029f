//! Detects the dialect of a text file and the types of its columns from a sample of its beginning.

use std::path::Path;
use std::sync::Arc;

use crate::csv::backslash;
use crate::csv::cutter::Scanner;
use crate::csv::infer::Kinds;
use crate::csv::layout::{Backslash, Dialect, Layout};
use crate::csv::record::{self, Reader, Records, Wrong, lines};
use crate::error::{Error, Result};
use crate::options::{Format, Options};
use crate::stream::{MARK, Stream};

/// Bytes of a file that are looked at; more where its first record is longer.
const SAMPLE: usize = 4 << 20;

/// The longest first record that is looked at.
const LONGEST: usize = 1 << 30;

/// Records that are compared to find the delimiter.
const COMPARED: usize = 100;

/// Delimiters that are tried; of equals the first wins.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Looks at the beginning of the file at `path`: at `rows` records at most.
pub(crate) fn sniff(
    path: &Path,
    stream: &mut Stream,
    options: &Options,
    format: Format,
    rows: usize,
) -> Result<Layout> {
    options.check()?;
    let tbl = format == Format::Tbl;
    let text = format == Format::Text;
    let unquoted = tbl || text;
    let quote = options.quote.unwrap_or((!unquoted).then_some(b'"'));
    let quote = quote.filter(|_| !text);
    let mut dialect = Dialect {
        delimiter: options.delimiter.unwrap_or(if text { b'\t' } else { b'|' }),
        quote,
        escape: options.escape.filter(|escape| Some(*escape) != quote),
        trailing: tbl,
        single: false,
        backslash: text.then(|| escaping(options)),
    };
    let known = options.delimiter.is_some() || tbl || text;
    let (sample, delimiter) = sample(path, stream, dialect, known, rows)?;
    dialect.delimiter = delimiter;
    if delimiter == b'\t' && is_copied(path, options) {
        (dialect.quote, dialect.backslash) = (None, Some(escaping(options)));
    }
    let mut records = Records::default();
    let mut reader = Reader::new(&sample, dialect);
    while records.len() <= rows {
        match reader.next(&mut records) {
            Ok(true) => {}
            Ok(false) => break,
            Err(wrong) => return Err(refused(path, &sample, wrong)),
        }
    }
    if let Some(names) = &options.matched {
        matches(path, names, &sample, &records)?;
    }
    let mut layout = layout(&sample, &records, dialect, options, tbl);
    layout.dialect.single =
        options.empty_lines && layout.names.len() == 1 && dialect.backslash.is_none();
    Ok(layout)
}

/// That the first line holds these names.
///
/// # Errors
/// If it does not.
fn matches(path: &Path, names: &[String], sample: &str, records: &Records) -> Result<()> {
    // A line without anything is a field without anything.
    let width = if records.len() == 0 {
        1
    } else {
        records.width(0)
    };
    let failed = |reason| Err(Error::line(path, 1, reason));
    if width != names.len() {
        return failed(format!(
            "wrong number of fields in header line: got {width}, expected {}",
            names.len()
        ));
    }
    for (at, name) in names.iter().enumerate() {
        let found = if records.len() == 0 {
            ""
        } else {
            records.field(sample, 0, at)
        };
        if found != name {
            return failed(format!(
                "column name mismatch in header line field {}: got \"{found}\", expected \"{name}\"",
                at + 1
            ));
        }
    }
    Ok(())
}

/// What stands for NULL where backslashes escape.
fn escaping(options: &Options) -> Backslash {
    match options.nulls.as_slice() {
        [] => Backslash::Null,
        nulls if nulls.iter().any(|null| null == "\\N") => Backslash::Null,
        _ => Backslash::Other,
    }
}

/// Whether a file of which only its tabs tell how it is written is one of PostgreSQL's `copy`.
fn is_copied(path: &Path, options: &Options) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let csv = name.split('.').any(|part| matches!(part, "csv" | "tsv"));
    options.tabs_escape && options.format.is_none() && !csv
}

fn refused(path: &Path, sample: &str, wrong: Wrong) -> Error {
    let line = 1 + lines(&sample.as_bytes()[..wrong.offset()]);
    Error::line(path, line, wrong.reason(sample, 1))
}

/// Whole records from the beginning of the file, and the delimiter, which is guessed where it is not `known`: what is
/// within quotes, and so where records end, depends on it.
fn sample(
    path: &Path,
    stream: &mut Stream,
    dialect: Dialect,
    known: bool,
    rows: usize,
) -> Result<(String, u8)> {
    let mut size = if rows < COMPARED { SAMPLE / 64 } else { SAMPLE };
    loop {
        let bytes = stream.peek(size).map_err(|error| Error::io(path, &error))?;
        let whole = bytes.len() < size;
        let bytes = bytes.strip_prefix(MARK).unwrap_or(bytes);
        let readable = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        };
        let delimiter = if known {
            dialect.delimiter
        } else {
            guess(path, readable, dialect)
        };
        let end = if whole {
            Some(bytes.len())
        } else {
            Scanner::new(Dialect {
                delimiter,
                ..dialect
            })
            .last_end(bytes)
        };
        if let Some(end) = end {
            return Ok((text_of(path, &bytes[..end], 1)?.to_owned(), delimiter));
        }
        if size >= LONGEST {
            return Err(Error::line(path, 1, record::unclosed()));
        }
        size *= 4;
    }
}

/// `bytes` as text; `line` is the file's line on which they start.
pub(crate) fn text_of<'b>(path: &Path, bytes: &'b [u8], line: u64) -> Result<&'b str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let line = line + lines(&bytes[..at]);
        let byte = bytes.get(at).copied().unwrap_or_default();
        Error::line(
            path,
            line,
            format!("byte 0x{byte:02x} is not UTF-8; convert the file first (such as iconv -f latin1 -t utf-8)"),
        )
    })
}

/// The delimiter with which most records have as many fields as the first one.
fn guess(path: &Path, sample: &str, dialect: Dialect) -> u8 {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    if name
        .to_ascii_lowercase()
        .split('.')
        .any(|part| part == "tsv")
    {
        return b'\t';
    }
    let first_line = sample.split('\n').next().unwrap_or_default().as_bytes();
    let score = |delimiter: u8| {
        let mut records = Records::default();
        let mut reader = Reader::new(
            sample,
            Dialect {
                delimiter,
                ..dialect
            },
        );
        while records.len() < COMPARED && reader.next(&mut records).unwrap_or(false) {}
        let width = match records.len() {
            // Its quotes are wrong, which is to be told and not to be avoided by another delimiter.
            0 => 1 + memchr::memchr_iter(delimiter, first_line).count(),
            _ => records.width(0),
        };
        if width < 2 {
            return (0, 0);
        }
        let alike = (0..records.len())
            .filter(|record| records.width(*record) == width)
            .count();
        (alike.max(1), width)
    };
    let best = DELIMITERS
        .into_iter()
        .rev()
        .max_by_key(|delimiter| score(*delimiter));
    best.unwrap_or(b',')
}

fn layout(
    sample: &str,
    records: &Records,
    dialect: Dialect,
    options: &Options,
    tbl: bool,
) -> Layout {
    let width = if records.len() == 0 {
        0
    } else {
        records.width(0)
    };
    let first: Vec<&str> = (0..width)
        .map(|field| records.field(sample, 0, field))
        .collect();
    let nulls: Vec<String> = match dialect.backslash {
        Some(Backslash::Null) => vec![backslash::NULL.to_owned()],
        _ => options.nulls.clone(),
    };
    let is_null = |value: &str| value.is_empty() || nulls.iter().any(|null| null == value);
    let dates = options.dates.as_ref();
    let mut kinds = vec![Kinds::default(); width];
    for record in 1..records.len() {
        for (field, kinds) in kinds.iter_mut().enumerate().take(records.width(record)) {
            let value = records.field(sample, record, field);
            if !is_null(value) {
                kinds.add(Kinds::with(value, dates));
            }
        }
    }
    let header = match options.header {
        Some(given) => given && width > 0,
        None if dialect.backslash.is_some() => false,
        None => !tbl && width > 0 && has_header(sample, records, &first, &kinds, options),
    };
    if !header {
        for (value, kinds) in first.iter().zip(&mut kinds) {
            if !is_null(value) {
                kinds.add(Kinds::with(value, dates));
            }
        }
    }
    let mut given: Vec<String> = if header {
        first.iter().map(|name| name.trim().to_owned()).collect()
    } else {
        vec![String::new(); width]
    };
    for (name, own) in given.iter_mut().zip(&options.names) {
        own.clone_into(name);
    }
    Layout {
        dialect,
        header,
        names: unique(given),
        named: header || !options.names.is_empty(),
        kinds,
        dates: options.dates.clone(),
        nulls: Arc::from(nulls),
        sampled: records.len(),
    }
}

/// Whether the first record holds names: those that are expected; or text above values that are not text; or, where
/// all is text, distinct words that do not come again below.
fn has_header(
    sample: &str,
    records: &Records,
    first: &[&str],
    below: &[Kinds],
    options: &Options,
) -> bool {
    let has = |name: &String| {
        first
            .iter()
            .any(|cell| cell.trim().eq_ignore_ascii_case(name))
    };
    if !options.expected.is_empty() && options.expected.iter().all(has) {
        return true;
    }
    let kinds: Vec<Kinds> = first
        .iter()
        .map(|cell| match cell.trim() {
            "" => Kinds::default(),
            cell => Kinds::of(cell),
        })
        .collect();
    if kinds.iter().any(|kind| !kind.is_empty() && !kind.is_text())
        || kinds.iter().all(|kind| kind.is_empty())
    {
        return false;
    }
    let mixed = kinds
        .iter()
        .zip(below)
        .any(|(first, below)| first.is_text() && !below.is_empty() && !below.is_text());
    if mixed {
        return true;
    }
    // Names stand without the spaces around them.
    let word = |cell: &&str| {
        let name = cell.trim();
        name.is_empty() || name.starts_with(|c: char| c.is_alphabetic() || c == '_')
    };
    let once = |at: usize| {
        let cell = first[at];
        let again =
            |record: usize| at < records.width(record) && records.field(sample, record, at) == cell;
        cell.is_empty() || !first[..at].contains(&cell) && !(1..records.len()).any(again)
    };
    first.iter().all(word) && (0..first.len()).all(once)
}

/// Names, each only once whatever its case: `column_2` for one that is empty, `a_1` for a second `a`.
pub(crate) fn unique(names: Vec<String>) -> Vec<String> {
    let lower = |name: &str| name.to_lowercase();
    let mut taken: std::collections::HashSet<String> = std::collections::HashSet::new();
    // Names that are written win over those that are made.
    let written: std::collections::HashSet<String> = names.iter().map(|name| lower(name)).collect();
    let named = names.into_iter().enumerate().map(|(at, name)| {
        let base = if name.is_empty() {
            format!("column_{}", at + 1)
        } else {
            name.clone()
        };
        let mut unique = base.clone();
        let mut number = 0;
        while taken.contains(&lower(&unique)) || unique != name && written.contains(&lower(&unique))
        {
            number += 1;
            unique = format!("{base}_{number}");
        }
        taken.insert(lower(&unique));
        unique
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(text: &str, options: &Options) -> Layout {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, text).unwrap();
        let (_, mut stream, _) = crate::stream::Source::open(&path, options).unwrap();
        sniff(&path, &mut stream, options, Format::Csv, 1000).unwrap()
    }

    fn types(layout: &Layout) -> String {
        let column = |(name, kinds): (&String, &Kinds)| format!("{name} {}", kinds.data_type());
        layout
            .names
            .iter()
            .zip(&layout.kinds)
            .map(column)
            .collect::<Vec<_>>()
            .join(", ")
    }

    #[test]
    fn header_delimiter_and_types_are_found() {
        let layout = look(
            "id;name;day;x\n1;\"a;b\";2024-01-02;1.5\n2;c;2024-01-03;\n",
            &Options::default(),
        );
        assert_eq!(layout.dialect.delimiter, b';');
        assert_eq!(
            types(&layout),
            "id Int64, name Utf8View, day Date32, x Float64"
        );
        for (text, delimiter) in [
            ("a|b\n1|2\n", b'|'),
            ("a\tb\n1\t2,5\n", b'\t'),
            ("a,b\n1;2,3\n", b','),
            ("name;price\nx;1,5\ny;2,5\n", b';'),
            ("\"a;b\",c\n1,2\n", b','),
            ("one\ntwo\n", b','),
            // One line that is wrong does not tell.
            ("a,b,c\n1,2,3\n1,2\n4,5,6\n", b','),
        ] {
            assert_eq!(
                look(text, &Options::default()).dialect.delimiter,
                delimiter,
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_first_line_of_values_is_no_header() {
        for (text, header) in [
            ("1,a\n2,b\n", false),
            ("a,a\nb,c\n", false),
            ("1\n", false),
            ("x,y\nz,x\nx,w\n", false),
            ("key,value\nx,y\n", true),
            ("id,name\n", true),
            // Names that are repeated or missing are names.
            ("id,name,name\n1,a,b\n", true),
            (",a,b\n0,1,2\n", true),
            ("a,,\n1,2,3\n", true),
            ("\u{feff}id,x\r\n1,2\r\n", true),
            ("2019,2020\n1,2\n", false),
            // Names stand without the spaces around them.
            ("\"first name\", last \nA,B\nC,D\n", true),
            ("a , b\nx,y\n", true),
            (" 1, 2\nx,y\n", false),
        ] {
            assert_eq!(look(text, &Options::default()).header, header, "{text:?}");
        }
        let expected = Options {
            expected: vec!["A".into()],
            ..Options::default()
        };
        assert!(look("a,a\nb,c\n", &expected).header);
    }

    #[test]
    fn names_are_unique() {
        let names = |names: &[&str]| unique(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(names(&["a", "A", "", "a"]), ["a", "A_1", "column_3", "a_2"]);
        assert_eq!(
            names(&["", "column_1", "b", "b", "b_1"]),
            ["column_1_1", "column_1", "b", "b_2", "b_1"]
        );
    }

    #[test]
    fn options_are_heeded() {
        let options = Options {
            header: Some(false),
            delimiter: Some(b' '),
            quote: Some(Some(b'\'')),
            nulls: vec!["NA".into(), "-".into()],
            names: vec!["x".into()],
            ..Options::default()
        };
        let layout = look("1 'a b'\nNA -\n", &options);
        assert_eq!(types(&layout), "x Int64, column_2 Utf8View");
    }
}
