//! From text to statements.
//!
//! The text is tokenised once and cut at the semicolons, so that every statement is checked by
//! [`guard`] before the recursive parser sees it. [`copy`](crate::copy) has a grammar of its own; everything
//! else is parsed by DataFusion.

use datafusion_sql::parser::{DFParserBuilder, ExplainStatement, Statement as Extended};
use messages::{Error, Result};
use sqlparser::ast::Statement as Sql;
use sqlparser::keywords::Keyword;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::changes::Piece;
use crate::copy::{Copy, copy};
use crate::depth;
use crate::dialect::DIALECT;
use crate::names::{column_name, table_name};
use crate::prepared::Prepared;
use crate::rewritten::rewritten;
use crate::schemas::SchemaStatement;
use crate::steps::Split;
use crate::{
    absent, arrays, begin, changes, constraints, distinct, domains, explained, fused, grammar,
    identity, kept, like, maintenance, materialized, merge, prepared, returning, rewrite, roles,
    schema_elements, schemas, sequences, steps, summarize, table_as, types,
};

pub use crate::statement::{Parsed, Statement, Step};

/// Parses all statements of `text`.
///
/// # Errors
/// The first error of any of them: then none must run.
pub fn parse(text: &str) -> Result<Vec<Parsed>> {
    depth::check_length(text)?;
    let tokens = Tokenizer::new(&DIALECT, text)
        .tokenize_with_location()
        .map_err(|e| Error::from(ParserError::from(e)))?;
    fused::check(text, &tokens)?;
    tokens
        .split(|token| token.token == Token::SemiColon)
        .filter(|tokens| {
            tokens
                .iter()
                .any(|t| !matches!(t.token, Token::Whitespace(_)))
        })
        .map(|tokens| {
            let depth = depth::check(tokens)?;
            match depth::with_room(depth, || any(text, tokens)) {
                Ok(statement) => Ok(Parsed { statement, depth }),
                // Where the parser misses something at the end, the error has no position of its own.
                Err(e) => Err(e.at(rewrite::end(tokens))),
            }
        })
        .collect()
}

/// A statement of any kind, of these tokens of `text`.
fn any(text: &str, tokens: &[TokenWithSpan]) -> Result<Statement> {
    if let Some((head, elements)) = schema_elements::split(tokens) {
        return new_schema(text, head, &elements);
    }
    let parsed = own(text, tokens).unwrap_or_else(|| match first_word(tokens) {
        Some(Keyword::COPY) => rewritten(tokens)
            .and_then(copy)
            .map_err(Error::from)
            .and_then(copied),
        _ => rewritten(tokens).map_err(Error::from).and_then(plain),
    });
    parsed.map(|statement| with_text(statement, || source(text, tokens)))
}

/// A `create schema` that makes what is in it, too.
fn new_schema(
    text: &str,
    head: &[TokenWithSpan],
    elements: &[&[TokenWithSpan]],
) -> Result<Statement> {
    let create = schemas::statement(head).map_err(|e| e.at(rewrite::end(head)))?;
    let create = match create {
        Some(SchemaStatement::Create {
            if_not_exists: true,
            ..
        }) => {
            return Err(Error::coded(
                "0A000",
                "CREATE SCHEMA IF NOT EXISTS cannot include schema elements",
            ));
        }
        Some(create) => create,
        None => {
            return Err(Error::Defect {
                message: "a `create schema` is none".into(),
            });
        }
    };
    let elements = elements.iter().map(|tokens| {
        let element = any(text, tokens);
        element.map_err(|e| e.at(rewrite::end(tokens)))
    });
    Ok(Statement::NewSchema {
        create,
        elements: elements.collect::<Result<_>>()?,
    })
}

/// A statement with a grammar of its own.
fn own(text: &str, tokens: &[TokenWithSpan]) -> Option<Result<Statement>> {
    if let Some(own) = types::statement(tokens).transpose() {
        return Some(own.map(Statement::Type));
    }
    if let Some(own) = domains::statement(tokens).transpose() {
        return Some(own.map(Statement::Domain));
    }
    if let Some(own) = roles::statement(tokens).transpose() {
        return Some(own.map(Statement::Role));
    }
    if let Some(own) = schemas::statement(tokens).transpose() {
        return Some(own.map(Statement::Schema));
    }
    if let Some(own) = begun(text, tokens) {
        return Some(own);
    }
    if let Some(own) = constraints::set(tokens).transpose() {
        return Some(own.map(Statement::Constraints));
    }
    if let Some(own) = begin::statement(tokens).transpose() {
        return Some(own.map(Statement::Modes));
    }
    let source = |tokens: &[TokenWithSpan]| source(text, tokens);
    if let Some(own) = materialized::statement(tokens, source).transpose() {
        return Some(own.map(Statement::Materialized));
    }
    if let Some(own) = like::statement(tokens).transpose() {
        return Some(own.map(Statement::Like));
    }
    let known = |tokens: &[TokenWithSpan]| {
        let statement = rewritten(tokens).map_err(Error::from).and_then(plain)?;
        match statement {
            Statement::Sql(sql) => Ok(sql),
            _ => Err(Error::Syntax {
                message: "expected a statement that changes or makes a table".into(),
                position: None,
            }),
        }
    };
    if let Some((told, query)) = summarize::strip(tokens) {
        let read = known(&query).and_then(|own| summarize::of(told, *own));
        return Some(read.map(Statement::Columns));
    }
    if let Some(own) = maintenance::statement(tokens).transpose() {
        return Some(own.map(Statement::Maintenance));
    }
    if let Some((rest, columns)) = table_as::strip(tokens) {
        let made = known(&rest).and_then(|own| table_as::with_columns(own, columns));
        return Some(made.map(Statement::Sql));
    }
    if let Some(rest) = maintenance::not_concurrently(tokens) {
        return Some(known(&rest).map(Statement::Sql));
    }
    if let Some(own) = absent::statement(tokens).transpose() {
        return Some(own.map(Statement::Absent));
    }
    if let Some(own) = changes::statement(tokens, known).transpose() {
        return Some(own.map(altered));
    }
    let change = identity::statement(tokens).transpose()?;
    Some(change.map(Statement::Identity))
}

/// A statement whose first words say what it is.
fn begun(text: &str, tokens: &[TokenWithSpan]) -> Option<Result<Statement>> {
    if sequences::begins(tokens) {
        return Some(sequences::statement(tokens.to_vec()).map(Statement::Sequence));
    }
    if arrays::begins(tokens) {
        return Some(arrays::statement(tokens.to_vec()).map(Statement::Array));
    }
    if merge::begins(tokens) {
        let read = rewritten(tokens)
            .map_err(Error::from)
            .and_then(merge::statement);
        return Some(read.map(|merge| Statement::Merge(Box::new(merge))));
    }
    if let Some((head, merge)) = explained::of_merge(tokens) {
        let head = rewritten(&head).map_err(Error::from).and_then(plain);
        return Some(head.and_then(|head| Ok(explaining(head, any(text, merge)?))));
    }
    None
}

/// The changes of an `alter table`.
fn altered(pieces: Vec<Piece>) -> Statement {
    let each = pieces.into_iter().map(|piece| match piece {
        Piece::Change(own) => Statement::Change(own),
        Piece::Identity(own) => Statement::Identity(own),
        Piece::Sql(own) => Statement::Sql(own),
    });
    let mut all: Vec<Statement> = each.collect();
    match (all.pop(), all.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            all.extend(last);
            Statement::Changes(all)
        }
    }
}

/// A `create view` with its text, which is what is kept of it.
fn with_text(statement: Statement, text: impl FnOnce() -> String) -> Statement {
    match statement {
        Statement::Sql(sql) => match *sql {
            Sql::CreateView(view) => Statement::View {
                view: Box::new(view),
                text: text(),
            },
            other => Statement::Sql(Box::new(other)),
        },
        other => other,
    }
}

/// The part of `text` that `tokens` were made of.
pub(super) fn source(text: &str, tokens: &[TokenWithSpan]) -> String {
    let offset = |place: Location| {
        let lines = text
            .split_inclusive('\n')
            .take((place.line as usize).saturating_sub(1));
        let before: usize = lines.map(str::len).sum();
        let rest = text[before..]
            .chars()
            .take((place.column as usize).saturating_sub(1));
        before + rest.map(char::len_utf8).sum::<usize>()
    };
    let mut words = tokens
        .iter()
        .filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
    let Some(first) = words.next() else {
        return String::new();
    };
    let last = words.next_back().unwrap_or(first);
    text[offset(first.span.start)..offset(last.span.end)].to_string()
}

fn first_word(tokens: &[TokenWithSpan]) -> Option<Keyword> {
    tokens.iter().find_map(|t| match &t.token {
        Token::Word(word) => Some(Some(word.keyword)),
        Token::Whitespace(_) => None,
        _ => Some(None),
    })?
}

fn plain(tokens: Vec<TokenWithSpan>) -> Result<Statement> {
    syntax(tokens).and_then(sort)
}

/// The syntax tree of one statement.
pub(crate) fn syntax(tokens: Vec<TokenWithSpan>) -> Result<Extended> {
    let mut parsed = DFParserBuilder::new(tokens)
        .with_dialect(&DIALECT)
        .with_recursion_limit(depth::PARSER_RECURSION)
        .build()?
        .parse_statements()?;
    match (parsed.pop_front(), parsed.is_empty()) {
        (Some(statement), true) => Ok(statement),
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
            match *sql {
                Sql::Prepare {
                    name,
                    data_types,
                    statement,
                } => {
                    let prepared = Prepared::new(statement, data_types)?;
                    bound(prepared.with_nulls()?)?;
                    let name = column_name(&name);
                    return Ok(Statement::Prepare { name, prepared });
                }
                Sql::Execute { .. } => {
                    let (name, arguments) = prepared::execute(*sql)?;
                    let name = table_name(&name)?;
                    return Ok(Statement::Execute { name, arguments });
                }
                Sql::Deallocate { name, prepare: _ } => {
                    let all = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all");
                    let name = (!all).then(|| column_name(&name));
                    return Ok(Statement::Deallocate(name));
                }
                Sql::Query(query) => match steps::split(query)? {
                    Ok(split) => return in_steps(split),
                    Err(query) => *sql = table_as::of_into(query),
                },
                other => *sql = other,
            }
            let returning = returning::take(&mut sql)?;
            kept::keep(&mut sql);
            rewrite::statement(&mut sql)?;
            grammar::check(&*sql)?;
            let Some(mut query) = returning else {
                return Ok(Statement::Sql(sql));
            };
            rewrite::query(&mut query)?;
            grammar::check(&*query)?;
            Ok(Statement::Returning {
                statement: sql,
                query,
            })
        }
        Extended::Explain(own) => explain(own),
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

/// The parts of a `with` that changes tables, each as a statement.
fn in_steps(Split { before, last }: Split) -> Result<Statement> {
    let one = |sql: Sql| sort(Extended::Statement(Box::new(sql)));
    let touched = steps::touched(&last);
    let last = one(last)?;
    if before.is_empty() {
        return Ok(last);
    }
    let before = before.into_iter().map(|part| {
        Ok(Step {
            touched: steps::touched(&part.statement),
            name: part.name,
            columns: part.columns,
            statement: one(part.statement)?,
        })
    });
    Ok(Statement::Steps {
        before: before.collect::<Result<_>>()?,
        last: Box::new(last),
        touched,
    })
}

/// An `explain`, and what it explains.
fn explain(ExplainStatement { options, statement }: ExplainStatement) -> Result<Statement> {
    let (analyze, verbose, json) = explained::options(options)?;
    Ok(Statement::Explain {
        analyze,
        verbose,
        json,
        statement: Box::new(sort(*statement)?),
    })
}

/// The `explain` of another statement.
fn explaining(mut explain: Statement, explained: Statement) -> Statement {
    if let Statement::Explain { statement, .. } = &mut explain {
        **statement = explained;
    }
    explain
}

/// A prepared statement that has its parameters.
///
/// # Errors
/// Those of its grammar.
pub fn bound(statement: Box<Sql>) -> Result<Statement> {
    sort(Extended::Statement(statement))
}

/// A `copy` as a statement; its query is treated as others are. What a changing statement returns is copied after it has
/// run, in one transaction.
fn copied(mut copy: Copy) -> Result<Statement> {
    let Some(query) = copy.query_mut().cloned() else {
        return Ok(of_copy(copy));
    };
    let split = steps::split(query)?;
    let split = split.map_or_else(|query| Ok(Split::of(query)), steps::returned)?;
    let whole = |last: Statement| {
        if let Statement::Sql(sql) = last
            && let (Sql::Query(query), Some(own)) = (*sql, copy.query_mut())
        {
            *own = query;
            return Ok(of_copy(copy));
        }
        Err(steps::into_copied())
    };
    Ok(match in_steps(split)? {
        Statement::Steps {
            before,
            last,
            touched,
        } => Statement::Steps {
            before,
            last: Box::new(whole(*last)?),
            touched,
        },
        last => whole(last)?,
    })
}

fn of_copy(copy: Copy) -> Statement {
    match copy {
        Copy::To(copy) => Statement::CopyTo(copy),
        Copy::From(copy) => Statement::CopyFrom(copy),
        Copy::Through(copy) => Statement::Through(copy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy_options::{FileOptions, HeaderLine};
    use crate::script::split;

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

    /// The parser splits at tokens, the splitter as text arrives: both must find the same statements.
    #[test]
    fn the_splitter_finds_the_same_statements() {
        for text in [
            "select ';'; -- a;b\n select 2;;",
            "select 'a;''b;' as \"x;y\" /* d; /* e; */ f; */; select 2",
            r"select e'it\'s; ' as a; select 2",
            "select $t$ g; $h$ $t$; select $$;$$",
            " -- nothing\n;",
        ] {
            assert_eq!(parse(text).unwrap().len(), split(text).len(), "{text}");
        }
    }

    #[test]
    fn copy_takes_all_spellings() {
        let csv = FileOptions {
            format: Some("csv".into()),
            header: Some(HeaderLine::Names),
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
