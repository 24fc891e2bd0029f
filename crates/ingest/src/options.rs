//! How files are to be read: one set of options for imports and for queries.

use arrow::datatypes::DataType;

use crate::dates::DateForm;
use crate::error::{Error, Result};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// Text with a delimiter between fields and quotes where they are needed.
    Csv,
    /// Text as the TPC-H generator writes it: `|` after each field, no quotes, no header.
    Tbl,
    /// Text as PostgreSQL's `copy` writes it: tabs between fields, no quotes, no header, a backslash and what follows it
    /// for one character, `\N` for NULL.
    Text,
    /// JSON: an object a row, one after the other or as one array.
    Json,
    /// Arrow IPC: the file format or the stream format.
    Arrow,
}

/// Extensions of file names, and the format each stands for.
const EXTENSIONS: [(&str, Format); 15] = [
    ("parquet", Format::Parquet),
    ("pq", Format::Parquet),
    ("csv", Format::Csv),
    ("tsv", Format::Csv),
    ("txt", Format::Csv),
    ("tbl", Format::Tbl),
    ("json", Format::Json),
    ("ndjson", Format::Json),
    ("jsonl", Format::Json),
    ("geojsonl", Format::Json),
    ("arrow", Format::Arrow),
    ("arrows", Format::Arrow),
    ("feather", Format::Arrow),
    ("ipc", Format::Arrow),
    ("arrowstream", Format::Arrow),
];

impl Format {
    /// The format of that name or extension, in any case: `csv`, `parquet`, `jsonl`, ...
    pub fn named(name: &str) -> Option<Format> {
        let known = |(extension, _): &&(&str, Format)| extension.eq_ignore_ascii_case(name);
        if name.eq_ignore_ascii_case("text") {
            return Some(Format::Text);
        }
        EXTENSIONS.iter().find(known).map(|(_, format)| *format)
    }

    /// The format that a file's name stands for: that of its extension, below one of a compression.
    ///
    /// ```
    /// use ingest::Format;
    /// assert_eq!(Format::of_name("sales.csv.gz"), Some(Format::Csv));
    /// assert_eq!(Format::of_name("folder/sales"), None);
    /// ```
    pub fn of_name(name: &str) -> Option<Format> {
        let file = name.rsplit('/').next().unwrap_or(name);
        let mut parts = file.rsplit('.');
        let last = parts.next()?;
        let inner = match Compression::of_extension(last) {
            Some(_) => parts.next()?,
            None => last,
        };
        // A name without a full stop has no extension.
        parts.next()?;
        Format::named(inner).filter(|format| *format != Format::Text)
    }
}

/// How a whole file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, of one or more members.
    Gzip,
    /// Zstandard, of one or more frames.
    Zstd,
    /// bzip2, of one or more streams.
    Bzip2,
}

impl Compression {
    /// The compression of that name, in any case.
    ///
    /// # Errors
    /// [`Error::Options`] for one that is not read.
    pub fn named(name: &str) -> Result<Compression> {
        match name.to_ascii_lowercase().as_str() {
            "none" | "uncompressed" => Ok(Compression::None),
            "gzip" | "gz" => Ok(Compression::Gzip),
            "zstd" | "zst" => Ok(Compression::Zstd),
            "bzip2" | "bz2" => Ok(Compression::Bzip2),
            _ => Err(Error::Options(format!(
                "no compression {name:?}; there are gzip, zstd, bzip2 and none"
            ))),
        }
    }

    /// The compression that a file is to be written with: that of its name's extension, none without one.
    ///
    /// # Errors
    /// [`Error::Options`] for a name that ends in a compression that is not written.
    ///
    /// ```
    /// use ingest::Compression;
    /// assert_eq!(Compression::to_write("a.csv.gz")?, Compression::Gzip);
    /// assert_eq!(Compression::to_write("a.csv")?, Compression::None);
    /// assert!(Compression::to_write("a.csv.xz").is_err());
    /// # Ok::<(), ingest::Error>(())
    /// ```
    pub fn to_write(name: &str) -> Result<Compression> {
        /// Extensions of compressions that are not written.
        const OTHERS: [&str; 14] = [
            "7z", "br", "lz", "lz4", "lzma", "lzo", "rar", "snappy", "sz", "tbz2", "txz", "xz",
            "z", "zip",
        ];
        let file = name.rsplit('/').next().unwrap_or(name);
        let Some((_, extension)) = file.rsplit_once('.') else {
            return Ok(Compression::None);
        };
        if OTHERS.contains(&extension.to_ascii_lowercase().as_str()) {
            return Err(Error::Options(format!(
                "{name}: no file is written as .{extension}; end its name in .gz, .zst or .bz2, or in none of them"
            )));
        }
        Ok(Compression::of_extension(extension).unwrap_or(Compression::None))
    }

    pub(crate) fn of_extension(extension: &str) -> Option<Compression> {
        match extension.to_ascii_lowercase().as_str() {
            "gz" | "gzip" => Some(Compression::Gzip),
            "zst" | "zstd" => Some(Compression::Zstd),
            "bz2" | "bzip2" => Some(Compression::Bzip2),
            _ => None,
        }
    }
}

/// How to read files. The default finds everything out from their names and their beginnings.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The files' format; by name, else by their first bytes.
    pub format: Option<Format>,
    /// How they are compressed; by their first bytes.
    pub compression: Option<Compression>,
    /// Text: what separates two fields, one ASCII character.
    pub delimiter: Option<u8>,
    /// Text: what encloses fields that hold delimiters or line ends, `"` where absent; `Some(None)` for nothing.
    pub quote: Option<Option<u8>>,
    /// Text: the escape character; within quotes, the character after it is taken literally. A doubled quote
    /// always stands for one quote.
    pub escape: Option<u8>,
    /// Text: whether the first line holds the columns' names; found out where absent.
    pub header: Option<bool>,
    /// Text: what stands for NULL; an empty field where none is given. Empty fields of columns that are not text
    /// are always NULL.
    pub nulls: Vec<String>,
    /// Types of columns that are not to be inferred, by name in any case.
    pub types: Vec<(String, DataType)>,
    /// Text: how dates are written; with year, month and day (`2024-03-05`) where absent.
    pub dates: Option<DateForm>,
    /// Text: every column whose type is not given is text.
    pub all_text: bool,
    /// Text without a header: the columns' names, the first ones at least.
    pub names: Vec<String>,
    /// Folders `key=value` on the way to a file are columns; where absent, if all files of a pattern have them.
    pub hive: Option<bool>,
    /// Text that nothing tells to be of another format, with tabs between its fields, is [`Format::Text`].
    pub tabs_escape: bool,
    /// CSV of a single column: an empty line is a row whose value is an empty field, as in PostgreSQL's `copy`.
    pub empty_lines: bool,
    /// Names of columns that are known already: a first line of text that has them all is a header. Not for users.
    pub expected: Vec<String>,
    /// Text: what the first line has to hold, name for name and in this order.
    pub matched: Option<Vec<String>>,
}

/// Which fields of a column of CSV are NULL, where that is said of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NullRule {
    /// What stands within quotes, too, if it is the text of NULL.
    pub quoted: bool,
    /// None that stands without quotes.
    pub never: bool,
}

impl Options {
    /// Checks that delimiter and quote are two ASCII characters, and that the escape is a third one, or the quote.
    ///
    /// # Errors
    /// [`Error::Options`].
    pub fn check(&self) -> Result<()> {
        let quote = self.quote.unwrap_or(Some(b'"'));
        let used = [
            self.delimiter,
            quote,
            self.escape.filter(|e| quote != Some(*e)),
        ];
        for (at, byte) in used.iter().enumerate() {
            let Some(byte) = byte else { continue };
            if !byte.is_ascii() || matches!(byte, b'\n' | b'\r' | 0) {
                return Err(Error::Options(
                    "delimiter, quote and escape are one ASCII character each, and no line end"
                        .into(),
                ));
            }
            if used[..at].contains(&Some(*byte)) {
                return Err(Error::Options(format!(
                    "delimiter, quote and escape must differ, but two are {:?}",
                    char::from(*byte)
                )));
            }
        }
        Ok(())
    }

    /// The type that the options declare for a column.
    pub(crate) fn type_of(&self, name: &str) -> Option<&DataType> {
        let given = self
            .types
            .iter()
            .find(|(given, _)| given.eq_ignore_ascii_case(name));
        given.map(|(_, data_type)| data_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        for (name, format) in [
            ("a.csv", Some(Format::Csv)),
            ("a.CSV.GZ", Some(Format::Csv)),
            ("x/a.b.jsonl.zst", Some(Format::Json)),
            ("a.parquet", Some(Format::Parquet)),
            ("a.gz", None),
            ("csv", None),
            ("a.csv/b", None),
            ("a.text", None),
            ("gz.csv", Some(Format::Csv)),
        ] {
            assert_eq!(Format::of_name(name), format, "{name}");
        }
    }

    #[test]
    fn characters_must_differ() {
        let with = |delimiter, quote, escape| Options {
            delimiter,
            quote,
            escape,
            ..Options::default()
        };
        assert!(with(Some(b'|'), None, Some(b'\\')).check().is_ok());
        // A quote that is doubled is its own escape.
        assert!(with(None, Some(Some(b'\'')), Some(b'\'')).check().is_ok());
        assert!(with(Some(b'"'), None, None).check().is_err());
        assert!(with(Some(b'"'), Some(None), None).check().is_ok());
        assert!(with(Some(b'\n'), None, None).check().is_err());
        assert!(with(Some(0xe4), None, None).check().is_err());
    }
}
