//! The grammar of `copy`, which takes PostgreSQL's and DataFusion's spellings.

use ingest::{Format, Options};
use messages::{Error, Result};
use sqlparser::ast::{Ident, ObjectName, Query};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::copy_options::{FileOptions, Forced, HeaderLine, file_options, not_copied};
use crate::depth;
use crate::dialect::DIALECT;
use crate::names::{base, table_name};

/// A `copy` statement.
#[derive(Clone, Debug)]
pub(crate) enum Copy {
    To(CopyTo),
    From(CopyFrom),
    /// `... to stdout`, `... from stdin`.
    Through(Through),
}

impl Copy {
    /// The query whose rows are written.
    pub(crate) fn query_mut(&mut self) -> Option<&mut Box<Query>> {
        match self {
            Copy::To(copy) => Some(&mut copy.query),
            Copy::Through(Through {
                what: ThroughWhat::Out { query, .. },
                ..
            }) => Some(query),
            _ => None,
        }
    }
}

/// `copy` through the connection of a client.
#[derive(Clone, Debug)]
pub struct Through {
    /// What is read or written.
    pub(crate) what: ThroughWhat,
    /// How the rows are written down.
    pub options: FileOptions,
}

/// What goes through the connection.
#[derive(Clone, Debug)]
pub(crate) enum ThroughWhat {
    Out {
        query: Box<Query>,
        rows: RowsOf,
    },
    In {
        table: ObjectName,
        columns: Vec<Ident>,
    },
}

/// Whose rows are written.
#[derive(Clone, Debug)]
pub enum RowsOf {
    /// All columns of a table.
    Table(ObjectName),
    /// Some columns of a table.
    Columns,
    /// Those of a query.
    Query,
}

impl RowsOf {
    /// The table of which all columns are written.
    pub fn whole(&self) -> Option<&ObjectName> {
        match self {
            RowsOf::Table(name) => Some(name),
            RowsOf::Columns | RowsOf::Query => None,
        }
    }

    /// That the columns that are to be in quotes are among those that are written.
    ///
    /// # Errors
    /// For one that is not.
    pub fn check_quoted(&self, quoted: &Forced, written: &[&str]) -> Result<()> {
        let table = self.whole().map(table_name).transpose()?;
        let some = matches!(self, RowsOf::Columns);
        quoted.check(written, |name| {
            not_copied("FORCE_QUOTE", name, table.as_deref().map(base), some)
        })
    }
}

/// `copy table|(query) to 'file'`.
#[derive(Clone, Debug)]
pub struct CopyTo {
    /// The rows, as a query.
    pub query: Box<Query>,
    /// Whether they are those of a table, or of a query.
    pub rows: RowsOf,
    /// The path of the file.
    pub target: String,
    /// How the rows are written down.
    pub options: FileOptions,
}

/// `copy table [(columns)] from 'file'`.
#[derive(Clone, Debug)]
pub struct CopyFrom {
    /// The table that gets the rows.
    pub table: ObjectName,
    /// The columns that the file has; all if there are none.
    pub columns: Vec<Ident>,
    /// The path of the file.
    pub source: String,
    /// How the rows are written down.
    pub options: FileOptions,
}

/// `copy table [(columns)]|(query) to|from 'file' [options]`.
pub(crate) fn copy(tokens: Vec<TokenWithSpan>) -> std::result::Result<Copy, ParserError> {
    let mut p = Parser::new(&DIALECT)
        .with_tokens_with_locations(tokens)
        .with_recursion_limit(depth::PARSER_RECURSION);
    p.expect_keyword(Keyword::COPY)?;
    if p.consume_token(&Token::LParen) {
        let query = p.parse_query()?;
        p.expect_token(&Token::RParen)?;
        p.expect_keyword(Keyword::TO)?;
        return copy_to(p, query, RowsOf::Query);
    }
    let table = p.parse_object_name(false)?;
    let columns = if p.consume_token(&Token::LParen) {
        let columns = p.parse_comma_separated(Parser::parse_identifier)?;
        p.expect_token(&Token::RParen)?;
        columns
    } else {
        Vec::new()
    };
    match p.parse_one_of_keywords(&[Keyword::TO, Keyword::FROM]) {
        Some(Keyword::TO) => {
            let query = select_all(&table, &columns)?;
            let rows = if columns.is_empty() {
                RowsOf::Table(table)
            } else {
                RowsOf::Columns
            };
            copy_to(p, query, rows)
        }
        Some(_) if p.parse_keyword(Keyword::STDIN) => {
            through(p, ThroughWhat::In { table, columns })
        }
        Some(_) => {
            let source = p.parse_literal_string()?;
            let options = file_options(&mut p)?;
            Ok(Copy::From(CopyFrom {
                table,
                columns,
                source,
                options,
            }))
        }
        None => {
            let found = p.peek_token();
            p.expected("TO or FROM", found)
        }
    }
}

fn copy_to(
    mut p: Parser<'_>,
    query: Box<Query>,
    rows: RowsOf,
) -> std::result::Result<Copy, ParserError> {
    if p.parse_keyword(Keyword::STDOUT) {
        return through(p, ThroughWhat::Out { query, rows });
    }
    let target = p.parse_literal_string()?;
    let options = file_options(&mut p)?;
    Ok(Copy::To(CopyTo {
        query,
        rows,
        target,
        options,
    }))
}

fn through(mut p: Parser<'_>, what: ThroughWhat) -> std::result::Result<Copy, ParserError> {
    let options = file_options(&mut p)?;
    Ok(Copy::Through(Through { what, options }))
}

/// `select columns from table`, which is what `copy table to` writes.
fn select_all(
    table: &ObjectName,
    columns: &[Ident],
) -> std::result::Result<Box<Query>, ParserError> {
    let list = match columns {
        [] => "*".to_string(),
        columns => columns
            .iter()
            .map(Ident::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    };
    Parser::new(&DIALECT)
        .try_with_sql(&format!("SELECT {list} FROM {table}"))?
        .parse_query()
}

/// The name of the format to write: the one that the statement asks for, or else that of the file's extension.
pub fn format_for(path: &str, options: &FileOptions) -> Result<&'static str> {
    let format = match &options.format {
        Some(wanted) => Format::named(wanted).ok_or_else(|| Error::unknown_format(wanted))?,
        None => Format::of_name(path).ok_or_else(|| Error::File {
            path: path.into(),
            message:
                "its extension does not name a known format; add `(format parquet|csv|text|json|arrow)`"
                    .into(),
        })?,
    };
    Ok(match format {
        Format::Parquet => "parquet",
        Format::Json => "json",
        Format::Arrow => "arrow",
        Format::Text => "text",
        _ => "csv",
    })
}

/// The options of a `copy ... from` as the crate `ingest` takes them.
pub fn options_of(options: &FileOptions) -> Result<Options> {
    let format = options.format.as_deref();
    Ok(Options {
        format: format
            .map(|name| Format::named(name).ok_or_else(|| Error::unknown_format(name)))
            .transpose()?,
        delimiter: options.delimiter,
        quote: options.quote.map(Some),
        escape: options.escape,
        header: options.header.map(|header| header != HeaderLine::Row),
        nulls: options.null.iter().cloned().collect(),
        dates: options.dates.as_deref().map(str::parse).transpose()?,
        empty_lines: true,
        tabs_escape: options.quote.is_none()
            && options.escape.is_none()
            && !options.force_null.is_any()
            && !options.force_not_null.is_any(),
        compression: options
            .compression
            .as_deref()
            .map(ingest::Compression::named)
            .transpose()?,
        ..Options::default()
    })
}
