//! Finds out how a text file is laid out and what types its columns have, from its beginning.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use arrow::csv::reader::Format;
use arrow::datatypes::{DataType, Field, Schema};

use super::records::{Dialect, MARK, records};
use super::text::Layout;
use super::{Header, ImportOptions};
use crate::Error;

/// How much of a file is looked at.
const SAMPLE: usize = 2 << 20;

/// How many records types are inferred from.
const RECORDS: usize = 20_000;

/// The layout of a text file and the schema its values suggest.
#[derive(Debug)]
pub(crate) struct Sniffed {
    /// How to read it.
    pub layout: Layout,
    /// Names from the header, or `column_1`, ...; types that fit all values of the sample.
    pub schema: Schema,
}

/// Looks at the file at `path`. `names` are the columns of the table, where it is known already:
/// a first line that repeats them is a header.
pub(crate) fn sniff(
    path: &Path,
    tbl: bool,
    options: &ImportOptions,
    names: Option<&[&str]>,
) -> Result<Sniffed, Error> {
    let (sample, whole) = sample(path)?;
    let first = sample
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let first = first.strip_suffix(b"\r").unwrap_or(first);
    let delimiter = options.delimiter.unwrap_or_else(|| {
        if tbl {
            b'|'
        } else {
            guess_delimiter(path, first)
        }
    });
    let dialect = Dialect {
        delimiter,
        quote: (!tbl).then_some(b'"'),
        trailing: tbl && first.ends_with(&[delimiter]),
    };
    let fields = records(&sample, dialect)
        .next()
        .map_or(0, |record| record.fields);
    let fields = fields - usize::from(dialect.trailing).min(fields);
    if fields == 0 && names.is_none() {
        let reason = "is empty, so its columns are unknown; give them with --schema".to_owned();
        return Err(Error::Input {
            path: path.to_owned(),
            line: None,
            reason,
        });
    }
    let sample = if whole {
        &sample[..]
    } else {
        until_last_line(&sample)
    };
    let guess = Guess {
        path,
        sample,
        dialect,
        fields,
        null: options.null.as_deref(),
    };
    let header = match options.header {
        Header::Yes => true,
        Header::No => false,
        Header::Auto => !tbl && guess.has_header(names)?,
    };
    let schema = guess.schema(header, sample)?;
    let named = header.then(|| {
        schema
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect()
    });
    let null = options.null.clone().filter(|text| !text.is_empty());
    Ok(Sniffed {
        layout: Layout {
            dialect,
            header: named,
            fields,
            null,
        },
        schema,
    })
}

/// The file's beginning, and whether that is all of it.
fn sample(path: &Path) -> Result<(Vec<u8>, bool), Error> {
    let unreadable = |error| super::unreadable(path, &error);
    let file = File::open(path).map_err(unreadable)?;
    let mut sample = Vec::new();
    file.take(SAMPLE as u64)
        .read_to_end(&mut sample)
        .map_err(unreadable)?;
    let whole = sample.len() < SAMPLE;
    if sample.starts_with(MARK) {
        sample.drain(..MARK.len());
    }
    Ok((sample, whole))
}

fn until_last_line(sample: &[u8]) -> &[u8] {
    memchr::memrchr(b'\n', sample).map_or(sample, |end| &sample[..=end])
}

fn guess_delimiter(path: &Path, first: &[u8]) -> u8 {
    if path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("tsv"))
    {
        return b'\t';
    }
    let count = |delimiter: u8| first.iter().filter(|byte| **byte == delimiter).count();
    // The comma comes last because the last of equals wins.
    [b'|', b';', b'\t', b',']
        .into_iter()
        .max_by_key(|delimiter| count(*delimiter))
        .unwrap_or(b',')
}

/// What is known of a text file before its header is.
struct Guess<'a> {
    path: &'a Path,
    sample: &'a [u8],
    dialect: Dialect,
    fields: usize,
    null: Option<&'a str>,
}

impl Guess<'_> {
    /// Names and types of the columns of `text`.
    fn schema(&self, header: bool, text: &[u8]) -> Result<Schema, Error> {
        let mut format = Format::default()
            .with_header(header)
            .with_delimiter(self.dialect.delimiter)
            .with_quote(self.dialect.quote.unwrap_or(0))
            // Loading reports a short row with its line; inference need not.
            .with_truncated_rows(true);
        if let Some(Ok(null)) = self
            .null
            .map(|text| regex::Regex::new(&format!("^({})?$", regex::escape(text))))
        {
            format = format.with_null_regex(null);
        }
        let (schema, _) =
            format
                .infer_schema(text, Some(RECORDS))
                .map_err(|error| Error::Input {
                    path: self.path.to_owned(),
                    line: None,
                    reason: format!(
                        "is no readable text file ({error}); check --format and --delimiter"
                    ),
                })?;
        let fields = schema.fields().iter().take(self.fields).map(|field| {
            let data_type = if field.data_type() == &DataType::Null {
                &DataType::Utf8
            } else {
                field.data_type()
            };
            Field::new(field.name().trim(), data_type.clone(), true)
        });
        Ok(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Whether the first line holds names: the table's, or text above values that are not text,
    /// or, where everything is text, distinct words.
    fn has_header(&self, names: Option<&[&str]>) -> Result<bool, Error> {
        if self.fields == 0 {
            return Ok(false);
        }
        let named = self.schema(true, self.sample)?;
        let first: Vec<String> = named
            .fields()
            .iter()
            .map(|field| field.name().to_lowercase())
            .collect();
        if let Some(names) = names {
            return Ok(names
                .iter()
                .all(|name| first.contains(&name.to_lowercase())));
        }
        let distinct = first
            .iter()
            .enumerate()
            .all(|(at, name)| !name.is_empty() && !first[..at].contains(name));
        if !distinct {
            return Ok(false);
        }
        let line =
            memchr::memchr(b'\n', self.sample).map_or(self.sample, |end| &self.sample[..=end]);
        let values = self.schema(false, line)?;
        let text = |data_type: &DataType| data_type == &DataType::Utf8;
        let above = named.fields().iter().zip(values.fields());
        let all_text = above
            .clone()
            .all(|(below, first)| text(first.data_type()) && text(below.data_type()));
        let mixed = above
            .clone()
            .any(|(below, first)| text(first.data_type()) && !text(below.data_type()));
        let words = first
            .iter()
            .all(|name| name.starts_with(|c: char| c.is_alphabetic() || c == '_'));
        Ok(above.clone().all(|(_, first)| text(first.data_type())) && (mixed || all_text && words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(name: &str, text: &str) -> Sniffed {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a small file");
        sniff(
            &path,
            name.ends_with("tbl"),
            &ImportOptions::default(),
            None,
        )
        .expect("readable")
    }

    fn types(sniffed: &Sniffed) -> Vec<(String, DataType)> {
        sniffed
            .schema
            .fields()
            .iter()
            .map(|f| (f.name().clone(), f.data_type().clone()))
            .collect()
    }

    #[test]
    fn header_delimiter_and_types_are_found() {
        let sniffed = look(
            "a.csv",
            "id;name;day;x\n1;\"a;b\";2024-01-02;1.5\n2;c;2024-01-03;\n",
        );
        assert_eq!(sniffed.layout.dialect.delimiter, b';');
        let wanted = [
            ("id", DataType::Int64),
            ("name", DataType::Utf8),
            ("day", DataType::Date32),
            ("x", DataType::Float64),
        ];
        assert_eq!(
            types(&sniffed),
            wanted.map(|(name, data_type)| (name.to_owned(), data_type))
        );
        assert!(sniffed.layout.header.is_some());
    }

    #[test]
    fn a_first_line_of_values_is_no_header() {
        for text in ["1,a\n2,b\n", "a,a\nb,c\n", "1\n"] {
            let sniffed = look("a.csv", text);
            assert_eq!(sniffed.layout.header, None, "{text:?}");
            assert_eq!(sniffed.schema.field(0).name(), "column_1");
        }
        assert!(look("a.csv", "key,value\nx,y\n").layout.header.is_some());
    }

    #[test]
    fn a_tbl_line_ends_with_its_delimiter() {
        let sniffed = look("a.tbl", "0|AFRICA|\"lar deposits|\n1|AMERICA|hs use|\n");
        assert!(sniffed.layout.dialect.trailing);
        assert_eq!(
            (sniffed.layout.fields, sniffed.schema.fields().len()),
            (3, 3)
        );
        assert_eq!(sniffed.layout.header, None);
    }
}
