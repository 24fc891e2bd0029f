//! The grammar of `copy`, which takes PostgreSQL's and DataFusion's spellings.

use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Query};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use ingest::{Format, Options};

use crate::error::{Error, Result};
use crate::frontend::dialect::DIALECT;
use crate::frontend::distinct;
use crate::resources::guard;

/// A `copy` statement.
#[derive(Clone, Debug)]
pub(crate) enum Copy {
    To(CopyTo),
    From(CopyFrom),
    /// `... to stdout`, `... from stdin`.
    Through(Through),
}

/// `copy` through the connection of a client.
#[derive(Clone, Debug)]
pub(crate) struct Through {
    pub what: ThroughWhat,
    pub options: FileOptions,
}

/// What goes through the connection.
#[derive(Clone, Debug)]
pub(crate) enum ThroughWhat {
    Out {
        query: Box<Query>,
        /// As of [`CopyTo`].
        whole: Option<ObjectName>,
    },
    In {
        table: ObjectName,
        columns: Vec<Ident>,
    },
}

/// `copy table|(query) to 'file'`.
#[derive(Clone, Debug)]
pub(crate) struct CopyTo {
    pub query: Box<Query>,
    /// The table if the statement names one, and no columns.
    pub whole: Option<ObjectName>,
    pub target: String,
    pub options: FileOptions,
}

/// `copy table [(columns)] from 'file'`.
#[derive(Clone, Debug)]
pub(crate) struct CopyFrom {
    pub table: ObjectName,
    pub columns: Vec<Ident>,
    pub source: String,
    pub options: FileOptions,
}

/// The format of a file, as far as the statement tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FileOptions {
    /// `parquet`, `csv`, `text`, `json`, `arrow`; without it the file's extension decides.
    pub format: Option<String>,
    /// Whether the first line of a CSV file names the columns.
    pub header: Option<bool>,
    /// What separates the fields of a CSV file.
    pub delimiter: Option<u8>,
    /// What encloses fields of a CSV file that contain the delimiter.
    pub quote: Option<u8>,
    /// What escapes a quote inside a field of a CSV file.
    pub escape: Option<u8>,
    /// The text that stands for NULL in a CSV file.
    pub null: Option<String>,
    /// Compression of a Parquet file: `zstd(3)`, `snappy`, ...; of CSV and JSON as a whole: `gzip`, `zstd`.
    pub compression: Option<String>,
    /// How the dates of a CSV file are written: `dd.mm.yyyy`.
    pub dates: Option<String>,
}

/// `copy table [(columns)]|(query) to|from 'file' [options]`.
pub(crate) fn copy(tokens: Vec<TokenWithSpan>) -> std::result::Result<Copy, ParserError> {
    let mut p = Parser::new(&DIALECT)
        .with_tokens_with_locations(tokens)
        .with_recursion_limit(guard::PARSER_RECURSION);
    p.expect_keyword(Keyword::COPY)?;
    if p.consume_token(&Token::LParen) {
        let mut query = p.parse_query()?;
        distinct::associate(&mut *query);
        p.expect_token(&Token::RParen)?;
        p.expect_keyword(Keyword::TO)?;
        return copy_to(p, query, None);
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
            copy_to(p, query, columns.is_empty().then_some(table))
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
    whole: Option<ObjectName>,
) -> std::result::Result<Copy, ParserError> {
    if p.parse_keyword(Keyword::STDOUT) {
        return through(p, ThroughWhat::Out { query, whole });
    }
    let target = p.parse_literal_string()?;
    let options = file_options(&mut p)?;
    Ok(Copy::To(CopyTo {
        query,
        whole,
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

/// `stored as parquet`, `format csv`, `csv header delimiter '|'`, `with (format csv, header false)`,
/// `options ('format.delimiter' '|')`, in any combination.
fn file_options(p: &mut Parser<'_>) -> std::result::Result<FileOptions, ParserError> {
    let mut options = FileOptions::default();
    loop {
        let token = p.next_token();
        match token.token {
            Token::EOF => return Ok(options),
            Token::LParen => {
                while !p.consume_token(&Token::RParen) {
                    file_option(p, &mut options)?;
                    let _ = p.consume_token(&Token::Comma);
                }
            }
            Token::Word(ref word) => match word.value.to_lowercase().as_str() {
                "with" | "options" => {}
                "stored" => {
                    p.expect_keyword(Keyword::AS)?;
                    options.format = Some(text(p)?.to_lowercase());
                }
                _ => {
                    p.prev_token();
                    file_option(p, &mut options)?;
                }
            },
            _ => return p.expected("a file option or the end of the statement", token),
        }
    }
}

fn file_option(
    p: &mut Parser<'_>,
    options: &mut FileOptions,
) -> std::result::Result<(), ParserError> {
    let at = p.peek_token();
    let name = option_name(p)?;
    match name.as_str() {
        "format" => options.format = Some(text(p)?.to_lowercase()),
        "csv" | "parquet" | "json" | "arrow" | "binary" => options.format = Some(name),
        "header" | "has_header" => options.header = Some(boolean(p)?),
        "delimiter" | "delim" | "sep" => options.delimiter = Some(character(p)?),
        "quote" => options.quote = Some(character(p)?),
        "escape" => options.escape = Some(character(p)?),
        "null" | "null_value" => {
            let _ = p.parse_keyword(Keyword::AS);
            options.null = Some(text(p)?);
        }
        "compression" => options.compression = Some(text(p)?),
        "date_format" | "dateformat" => options.dates = Some(text(p)?),
        // Rows that are written are as old as any.
        "freeze" => _ = boolean(p)?,
        _ => {
            return p.expected(
                "FORMAT, HEADER, DELIMITER, QUOTE, ESCAPE, NULL, COMPRESSION or DATE_FORMAT",
                at,
            );
        }
    }
    Ok(())
}

/// `header`, `'format.has_header'`: the last part, in lower case.
fn option_name(p: &mut Parser<'_>) -> std::result::Result<String, ParserError> {
    let mut name = text(p)?;
    while p.consume_token(&Token::Period) {
        name = text(p)?;
    }
    Ok(name.rsplit('.').next().unwrap_or_default().to_lowercase())
}

fn text(p: &mut Parser<'_>) -> std::result::Result<String, ParserError> {
    let _ = p.consume_token(&Token::Eq);
    let token = p.next_token();
    match token.token {
        Token::Word(word) => Ok(word.value),
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => Ok(text),
        Token::EscapedStringLiteral(text) => Ok(text),
        Token::Number(text, _) => Ok(text),
        _ => p.expected("a word or a string", token),
    }
}

/// An optional truth value: `header` alone means `header true`.
fn boolean(p: &mut Parser<'_>) -> std::result::Result<bool, ParserError> {
    let value = match p.peek_token().token {
        Token::Eq | Token::SingleQuotedString(_) | Token::Number(..) => text(p)?,
        Token::Word(word)
            if matches!(
                word.keyword,
                Keyword::TRUE | Keyword::FALSE | Keyword::ON | Keyword::OFF
            ) =>
        {
            text(p)?
        }
        _ => return Ok(true),
    };
    match value.to_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(ParserError::ParserError(format!(
            "expected true or false, found {value:?}"
        ))),
    }
}

fn character(p: &mut Parser<'_>) -> std::result::Result<u8, ParserError> {
    let _ = p.parse_keyword(Keyword::AS);
    let value = text(p)?;
    match value.as_bytes() {
        [byte] => Ok(*byte),
        [b'\\', b't'] => Ok(b'\t'),
        _ => Err(ParserError::ParserError(format!(
            "expected one ASCII character, found {value:?}"
        ))),
    }
}

/// The name of the format to write: the one that the statement asks for, or else that of the file's extension.
pub(crate) fn format_for(path: &str, options: &FileOptions) -> Result<&'static str> {
    let format = match &options.format {
        Some(wanted) => Format::named(wanted).ok_or_else(|| Error::unknown_format(wanted))?,
        None => Format::of_name(path).ok_or_else(|| Error::File {
            path: path.into(),
            message:
                "its extension does not name a known format; add `(format parquet|csv|json|arrow)`"
                    .into(),
        })?,
    };
    Ok(match format {
        Format::Parquet => "parquet",
        Format::Json => "json",
        Format::Arrow => "arrow",
        Format::Text => {
            return Err(Error::unsupported(
                "text is written to the client alone: use `copy ... to stdout`, or `(format csv)` for a file",
            ));
        }
        _ => "csv",
    })
}

/// The options of a `copy ... from` as the crate `ingest` takes them.
pub(crate) fn options_of(options: &FileOptions) -> Result<Options> {
    let format = options.format.as_deref();
    Ok(Options {
        format: format
            .map(|name| Format::named(name).ok_or_else(|| Error::unknown_format(name)))
            .transpose()?,
        delimiter: options.delimiter,
        quote: options.quote.map(Some),
        escape: options.escape,
        header: options.header,
        nulls: options.null.iter().cloned().collect(),
        dates: options.dates.as_deref().map(str::parse).transpose()?,
        empty_lines: true,
        tabs_escape: options.quote.is_none() && options.escape.is_none(),
        compression: options
            .compression
            .as_deref()
            .map(ingest::Compression::named)
            .transpose()?,
        ..Options::default()
    })
}
