//! `copy ... to stdout` and `copy ... from stdin`: what goes through the connection of a client, and in which format.

use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Query};

use crate::error::{Error, Result};
use crate::frontend::copy::{FileOptions, ThroughWhat};
use crate::frontend::parse::{Statement, parse};

/// A `copy` through the connection.
#[derive(Clone, Debug)]
pub struct Transfer {
    pub(crate) what: What,
    /// How the rows are written.
    pub format: TransferFormat,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Out {
        query: Box<Query>,
        /// The table if the statement names one, and no columns.
        whole: Option<ObjectName>,
        depth: usize,
    },
    In {
        table: ObjectName,
        columns: Vec<Ident>,
    },
}

/// How the rows of a [`Transfer`] are written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransferFormat {
    /// PostgreSQL's text: a line for each row, `\` before what would end a field.
    Text {
        /// Between fields; a tab if the statement names none.
        delimiter: u8,
        /// What stands for NULL; `\N` if the statement names nothing.
        null: String,
        /// Whether a line with the names of the columns comes first.
        header: bool,
    },
    /// CSV.
    Csv {
        /// Between fields; a comma if the statement names none.
        delimiter: u8,
        /// Around fields.
        quote: u8,
        /// Before a quote in a field.
        escape: u8,
        /// What stands for NULL where it has no quotes; nothing if the statement names nothing.
        null: String,
        /// Whether a line with the names of the columns comes first.
        header: bool,
    },
    /// PostgreSQL's binary format.
    Binary,
}

impl Transfer {
    /// Whether rows come from the client.
    pub fn is_incoming(&self) -> bool {
        matches!(self.what, What::In { .. })
    }
}

/// The `copy` through the connection that `text` is; none if it is anything else.
///
/// # Errors
/// If it is one and is wrong, or not the only statement.
pub fn transfer(text: &str) -> Result<Option<Transfer>> {
    if !begins_with_copy(text) {
        return Ok(None);
    }
    let mut statements = parse(text)?;
    let (Some(parsed), true) = (statements.pop(), statements.is_empty()) else {
        return Ok(None);
    };
    let Statement::Through(through) = parsed.statement else {
        return Ok(None);
    };
    let what = match through.what {
        ThroughWhat::Out { query, whole } => What::Out {
            query,
            whole,
            depth: parsed.depth,
        },
        ThroughWhat::In { table, columns } => What::In { table, columns },
    };
    Ok(Some(Transfer {
        what,
        format: format(&through.options)?,
    }))
}

fn begins_with_copy(text: &str) -> bool {
    crate::frontend::script::first_word(text).is_some_and(|word| word == "copy")
}

/// Refuses options that only files have.
fn no_file_options(options: &FileOptions) -> Result<()> {
    let told = if options.compression.is_some() {
        "`copy` through a connection is not compressed"
    } else if options.dates.is_some() {
        "`copy` through a connection takes dates as `datestyle` says: set that"
    } else {
        return Ok(());
    };
    Err(Error::unsupported(told))
}

fn format(options: &FileOptions) -> Result<TransferFormat> {
    let FileOptions {
        format,
        header,
        delimiter,
        quote,
        escape,
        null,
        ..
    } = options;
    no_file_options(options)?;
    let header = header.unwrap_or(false);
    let distinct = |given: &[u8]| {
        let plain = given.iter().all(|b| !matches!(b, b'\r' | b'\n'));
        if plain && given.first() != given.get(1) {
            return Ok(());
        }
        Err(Error::coded(
            "22023",
            "the delimiter and the quote of `copy` are different, and no ends of lines",
        ))
    };
    match format.as_deref().unwrap_or("text") {
        "text" => {
            if quote.is_some() || escape.is_some() {
                return Err(Error::coded(
                    "0A000",
                    "`quote` and `escape` are for `format csv`",
                ));
            }
            let delimiter = delimiter.unwrap_or(b'\t');
            if delimiter.is_ascii_alphanumeric() || matches!(delimiter, b'\\' | b'.') {
                return Err(Error::coded(
                    "22023",
                    format!(
                        "{:?} cannot separate the fields of `copy`",
                        char::from(delimiter)
                    ),
                ));
            }
            distinct(&[delimiter])?;
            let null = null.clone().unwrap_or_else(|| "\\N".into());
            Ok(TransferFormat::Text {
                delimiter,
                null,
                header,
            })
        }
        "csv" => {
            let (delimiter, quote) = (delimiter.unwrap_or(b','), quote.unwrap_or(b'"'));
            distinct(&[delimiter, quote])?;
            Ok(TransferFormat::Csv {
                delimiter,
                quote,
                escape: escape.unwrap_or(quote),
                null: null.clone().unwrap_or_default(),
                header,
            })
        }
        "binary" => Ok(TransferFormat::Binary),
        other => Err(Error::unsupported(format!(
            "`copy` through a connection is text, csv or binary, not {other}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_the_defaults_of_postgresql() {
        let of = |text: &str| transfer(text).unwrap().map(|found| found.format);
        let text = TransferFormat::Text {
            delimiter: b'\t',
            null: "\\N".into(),
            header: false,
        };
        assert_eq!(of("copy t from stdin"), Some(text.clone()));
        assert_eq!(of("COPY (select 1) TO STDOUT"), Some(text));
        let csv = TransferFormat::Csv {
            delimiter: b';',
            quote: b'"',
            escape: b'"',
            null: "-".into(),
            header: true,
        };
        let wanted = Some(csv);
        assert_eq!(
            of("copy t (a) from stdin with (format csv, header, delimiter ';', null '-')"),
            wanted
        );
        assert_eq!(
            of("copy t from stdin csv header delimiter ';' null as '-'"),
            wanted
        );
        assert_eq!(
            of("copy t to stdout (format binary)"),
            Some(TransferFormat::Binary)
        );
        assert_eq!(of("copy t to 'f.csv'"), None);
        assert_eq!(of("select 'copy'"), None);
        for wrong in [
            "copy t from stdin (format parquet)",
            "copy t from stdin (quote '|')",
            "copy t from stdin (format csv, quote ',')",
            "copy t from stdin (delimiter 'x')",
        ] {
            assert!(transfer(wrong).is_err(), "{wrong}");
        }
    }
}
