//! `copy ... to stdout` and `copy ... from stdin`: what goes through the connection of a client, and in which format.

use messages::{Error, Result};
use sqlparser::ast::{Ident, ObjectName, Statement as Sql};

use crate::copy::{RowsOf, Through, ThroughWhat};
use crate::copy_options::{FileOptions, Forced, HeaderLine, Kind, not_copied};
use crate::names::base;
use crate::parse::{Statement, parse};

/// A `copy` through the connection.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Which rows go which way.
    pub what: What,
    /// How the rows are written.
    pub format: TransferFormat,
}

/// The direction of rows between a client and the server.
#[derive(Clone, Debug)]
pub enum What {
    /// To the client.
    Out {
        /// The query, or what runs before it and the query.
        statement: Box<Statement>,
        /// Whether they are those of a table, or of a query.
        rows: RowsOf,
        /// How deep the tree of the query is.
        depth: usize,
    },
    /// From the client.
    In {
        /// The table that gets them.
        table: ObjectName,
        /// The columns that they have; all if there are none.
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
        /// What the first line holds.
        header: HeaderLine,
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
        /// What the first line holds.
        header: HeaderLine,
        /// Columns whose values are written within quotes in any case.
        force_quote: Forced,
        /// Columns of which the text of NULL is read as NULL within quotes, too.
        force_null: Forced,
        /// Columns of which the text of NULL is read as that text.
        force_not_null: Forced,
    },
    /// PostgreSQL's binary format.
    Binary,
}

impl Transfer {
    /// Whether rows come from the client.
    pub fn is_incoming(&self) -> bool {
        matches!(self.what, What::In { .. })
    }

    /// That the columns that are named to be NULL, or not to be, are among those that are read.
    ///
    /// # Errors
    /// For one that is not; `table` is its name in the catalog and whether all its columns are read.
    pub fn check_read(&self, read: &[&str], (table, all): (&str, bool)) -> Result<()> {
        let TransferFormat::Csv {
            force_null,
            force_not_null,
            ..
        } = &self.format
        else {
            return Ok(());
        };
        for (option, columns) in [
            ("FORCE_NOT_NULL", force_not_null),
            ("FORCE_NULL", force_null),
        ] {
            columns.check(read, |name| {
                not_copied(option, name, Some(base(table)), !all)
            })?;
        }
        Ok(())
    }

    /// Whether it names columns that are to be in quotes.
    pub fn names_written(&self) -> bool {
        matches!(
            &self.format,
            TransferFormat::Csv {
                force_quote: Forced::Columns(_),
                ..
            }
        )
    }

    /// That the columns that are to be in quotes are among those that are written.
    ///
    /// # Errors
    /// For one that is not.
    pub fn check_written(&self, written: &[&str]) -> Result<()> {
        match (&self.what, &self.format) {
            (What::Out { rows, .. }, TransferFormat::Csv { force_quote, .. }) => {
                rows.check_quoted(force_quote, written)
            }
            _ => Ok(()),
        }
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
    let (steps, through) = match parsed.statement {
        Statement::Through(through) => (None, through),
        Statement::Steps {
            before,
            last,
            touched,
        } => match *last {
            Statement::Through(through) => (Some((before, touched)), through),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let Through { what, options } = through;
    let format = format(&options, matches!(what, ThroughWhat::In { .. }))?;
    let what = match what {
        ThroughWhat::Out { query, rows } => {
            let query = Box::new(Statement::Sql(Box::new(Sql::Query(query))));
            let statement = match steps {
                None => query,
                Some((before, touched)) => Box::new(Statement::Steps {
                    before,
                    last: query,
                    touched,
                }),
            };
            What::Out {
                statement,
                rows,
                depth: parsed.depth,
            }
        }
        ThroughWhat::In { table, columns } => What::In { table, columns },
    };
    Ok(Some(Transfer { what, format }))
}

fn begins_with_copy(text: &str) -> bool {
    crate::script::first_word(text).is_some_and(|word| word == "copy")
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

fn format(options: &FileOptions, incoming: bool) -> Result<TransferFormat> {
    no_file_options(options)?;
    let named = options.format.as_deref().unwrap_or("text");
    let kind = match named {
        "text" => Kind::Text,
        "csv" => Kind::Csv,
        "binary" => Kind::Binary,
        other => {
            return Err(Error::coded(
                "22023",
                format!(
                    "COPY format \"{other}\" not recognized: through a connection it is text, csv or binary"
                ),
            ));
        }
    };
    options.check(kind, incoming)?;
    let header = options.header.unwrap_or_default();
    Ok(match kind {
        Kind::Text => TransferFormat::Text {
            delimiter: options.delimiter.unwrap_or(b'\t'),
            null: options.null.clone().unwrap_or_else(|| "\\N".into()),
            header,
        },
        Kind::Csv => TransferFormat::Csv {
            delimiter: options.delimiter(),
            quote: options.quote(),
            escape: options.escape.unwrap_or_else(|| options.quote()),
            null: options.null.clone().unwrap_or_default(),
            header,
            force_quote: options.force_quote.clone(),
            force_null: options.force_null.clone(),
            force_not_null: options.force_not_null.clone(),
        },
        Kind::Binary | Kind::Other => TransferFormat::Binary,
    })
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
            header: HeaderLine::Row,
        };
        assert_eq!(of("copy t from stdin"), Some(text.clone()));
        assert_eq!(of("COPY (select 1) TO STDOUT"), Some(text));
        let csv = TransferFormat::Csv {
            delimiter: b';',
            quote: b'"',
            escape: b'"',
            null: "-".into(),
            header: HeaderLine::Names,
            force_quote: Forced::None,
            force_null: Forced::None,
            force_not_null: Forced::None,
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
