//! From text to statements.
//!
//! The text is tokenised once and cut at the semicolons, so that every statement is checked by
//! [`crate::resources::guard`] before the recursive parser sees it. `copy` has a grammar of its own here, which takes
//! PostgreSQL's and DataFusion's spellings; everything else is parsed by DataFusion.

use datafusion::common::format::ExplainStatementOptions;
use datafusion::sql::parser::{DFParserBuilder, ExplainStatement, Statement as Extended};
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Query, Statement as Sql};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::error::{Error, Result};
use crate::frontend::dialect::Atoll;
use crate::frontend::{distinct, grammar, rewrite};
use crate::resources::guard;

static DIALECT: Atoll = Atoll;

/// One statement, sorted by who runs it.
#[derive(Clone, Debug)]
pub(crate) enum Statement {
    /// Anything of the SQL grammar.
    Sql(Box<Sql>),
    /// `explain [analyze] [verbose] statement`.
    Explain {
        analyze: bool,
        verbose: bool,
        statement: Box<Statement>,
    },
    /// `copy table|(query) to 'file'`.
    CopyTo(CopyTo),
    /// `copy table [(columns)] from 'file'`.
    CopyFrom(CopyFrom),
}

/// `copy table|(query) to 'file'`.
#[derive(Clone, Debug)]
pub(crate) struct CopyTo {
    pub query: Box<Query>,
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

/// How a file is laid out, as far as the statement says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FileOptions {
    /// `parquet`, `csv`, `json`, `arrow`; without it the file's extension decides.
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
    /// Compression of a Parquet file: `zstd(3)`, `snappy`, ...
    pub compression: Option<String>,
}

/// A statement, and how deep its tree may be.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    pub statement: Statement,
    pub depth: usize,
}

/// Cuts `text` into statements. An error anywhere means that none of them runs.
pub(crate) fn parse(text: &str) -> Result<Vec<Parsed>> {
    guard::check_length(text)?;
    let tokens = Tokenizer::new(&DIALECT, text)
        .tokenize_with_location()
        .map_err(|e| Error::from(ParserError::from(e)))?;
    tokens
        .split(|token| token.token == Token::SemiColon)
        .filter(|tokens| {
            tokens
                .iter()
                .any(|t| !matches!(t.token, Token::Whitespace(_)))
        })
        .map(|tokens| {
            let depth = guard::check(tokens)?;
            let parsed = guard::with_room(depth, || match first_word(tokens) {
                Some(Keyword::COPY) => rewritten(tokens)
                    .and_then(copy)
                    .map_err(Error::from)
                    .and_then(copied),
                _ => rewritten(tokens).map_err(Error::from).and_then(plain),
            });
            match parsed {
                Ok(statement) => Ok(Parsed { statement, depth }),
                // What the parser misses at the end has no position of its own.
                Err(e) => Err(e.at(rewrite::end(tokens))),
            }
        })
        .collect()
}

fn rewritten(tokens: &[TokenWithSpan]) -> std::result::Result<Vec<TokenWithSpan>, ParserError> {
    distinct::mark(&DIALECT, rewrite::tables(rewrite::numbers(tokens)?))
}

fn first_word(tokens: &[TokenWithSpan]) -> Option<Keyword> {
    tokens.iter().find_map(|t| match &t.token {
        Token::Word(word) => Some(Some(word.keyword)),
        Token::Whitespace(_) => None,
        _ => Some(None),
    })?
}

fn plain(tokens: Vec<TokenWithSpan>) -> Result<Statement> {
    let mut parsed = DFParserBuilder::new(tokens)
        .with_dialect(&DIALECT)
        .with_recursion_limit(guard::PARSER_RECURSION)
        .build()?
        .parse_statements()?;
    match (parsed.pop_front(), parsed.is_empty()) {
        (Some(statement), true) => sort(statement),
        _ => Err(Error::Syntax {
            message: "expected one statement".into(),
            position: None,
        }),
    }
}

fn sort(statement: Extended) -> Result<Statement> {
    match statement {
        Extended::Statement(mut sql) => {
            distinct::associate(&mut *sql);
            rewrite::statement(&mut sql)?;
            grammar::check(&*sql)?;
            Ok(Statement::Sql(sql))
        }
        Extended::Explain(ExplainStatement { options, statement }) => {
            let ExplainStatementOptions {
                analyze,
                verbose,
                format,
                analyze_level,
                analyze_categories,
                show_statistics,
            } = options;
            if format.is_some()
                || analyze_level.is_some()
                || analyze_categories.is_some()
                || show_statistics.is_some()
            {
                return Err(Error::unsupported(
                    "`explain` takes `analyze` and `verbose`: `format` and other options are not supported",
                ));
            }
            Ok(Statement::Explain {
                analyze,
                verbose,
                statement: Box::new(sort(*statement)?),
            })
        }
        Extended::CreateExternalTable(_) => Err(Error::unsupported(
            "`create external table` is not supported: name the file in a query (select ... from 'file.parquet') or load it with `copy table from 'file'`",
        )),
        Extended::CopyTo(_) => Err(Error::unsupported(
            "`explain copy` is not supported: explain the query instead",
        )),
        Extended::Reset(_) => Err(Error::unsupported(
            "`reset` is not supported: options are given when the database is opened",
        )),
    }
}

/// What [`sort`] does for the query of a `copy`.
fn copied(mut statement: Statement) -> Result<Statement> {
    if let Statement::CopyTo(copy) = &mut statement {
        rewrite::query(&mut copy.query)?;
        grammar::check(&*copy.query)?;
    }
    Ok(statement)
}

/// `copy table [(columns)]|(query) to|from 'file' [options]`.
fn copy(tokens: Vec<TokenWithSpan>) -> std::result::Result<Statement, ParserError> {
    let mut p = Parser::new(&DIALECT)
        .with_tokens_with_locations(tokens)
        .with_recursion_limit(guard::PARSER_RECURSION);
    p.expect_keyword(Keyword::COPY)?;
    if p.consume_token(&Token::LParen) {
        let mut query = p.parse_query()?;
        distinct::associate(&mut *query);
        p.expect_token(&Token::RParen)?;
        p.expect_keyword(Keyword::TO)?;
        return copy_to(p, query);
    }
    let table = p.parse_object_name(false)?;
    let columns = match p.consume_token(&Token::LParen) {
        true => {
            let columns = p.parse_comma_separated(Parser::parse_identifier)?;
            p.expect_token(&Token::RParen)?;
            columns
        }
        false => Vec::new(),
    };
    match p.parse_one_of_keywords(&[Keyword::TO, Keyword::FROM]) {
        Some(Keyword::TO) => {
            let query = select_all(&table, &columns)?;
            copy_to(p, query)
        }
        Some(_) => {
            let source = p.parse_literal_string()?;
            let options = file_options(&mut p)?;
            Ok(Statement::CopyFrom(CopyFrom {
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

fn copy_to(mut p: Parser<'_>, query: Box<Query>) -> std::result::Result<Statement, ParserError> {
    let target = p.parse_literal_string()?;
    let options = file_options(&mut p)?;
    Ok(Statement::CopyTo(CopyTo {
        query,
        target,
        options,
    }))
}

/// `select columns from table`, as `copy table to` means it.
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
        "csv" | "parquet" | "json" | "arrow" => options.format = Some(name),
        "header" | "has_header" => options.header = Some(boolean(p)?),
        "delimiter" | "delim" | "sep" => options.delimiter = Some(character(p)?),
        "quote" => options.quote = Some(character(p)?),
        "escape" => options.escape = Some(character(p)?),
        "null" | "null_value" => options.null = Some(text(p)?),
        "compression" => options.compression = Some(text(p)?),
        _ => {
            return p.expected(
                "FORMAT, HEADER, DELIMITER, QUOTE, ESCAPE, NULL or COMPRESSION",
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

/// `true` unless the next word says otherwise: `header` alone means `header true`.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> FileOptions {
        match parse(text).unwrap().pop().unwrap().statement {
            Statement::CopyTo(copy) => copy.options,
            Statement::CopyFrom(copy) => copy.options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn statements_are_cut_at_semicolons_outside_strings() {
        let statements = parse("select ';'; -- a;b\n select 2;;").unwrap();
        assert_eq!(statements.len(), 2);
        assert!(parse(" -- nothing\n;").unwrap().is_empty());
    }

    #[test]
    fn copy_takes_all_spellings() {
        let csv = FileOptions {
            format: Some("csv".into()),
            header: Some(true),
            delimiter: Some(b'|'),
            ..Default::default()
        };
        for text in [
            "copy t from 'f' csv header delimiter '|'",
            "copy t (a, b) from 'f' with (format csv, header, delimiter '|')",
            "copy t to 'f' stored as csv options ('format.has_header' 'true', 'format.delimiter' '|')",
            "copy (select 1) to 'f' (format 'csv', header true, delimiter '|')",
        ] {
            assert_eq!(options(text), csv, "{text}");
        }
        assert_eq!(
            options("copy t to 'f.parquet' format parquet compression snappy")
                .compression
                .unwrap(),
            "snappy"
        );
    }

    #[test]
    fn syntax_errors_say_where() {
        let position = |text: &str| {
            parse(text)
                .unwrap_err()
                .position()
                .map(|p| (p.line, p.column))
        };
        assert_eq!(position("select 1;\nselect a b c"), Some((2, 12)));
        assert_eq!(position("copy t to 'f' (colour red)"), Some((1, 16)));
        assert_eq!(position("select 'abc"), Some((1, 8)));
    }
}
