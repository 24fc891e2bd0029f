//! `describe` of a query or a file, and `summarize`.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use messages::{Error, Result};
use sqlparser::ast::{Query, Statement as Sql};
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::names::looks_like_file;
use crate::words::{is_word, leading};

/// What is told of the columns of a query.
#[derive(Clone, Debug)]
pub struct ColumnsOf {
    /// The query.
    pub query: Box<Query>,
    /// What is told.
    pub told: Told,
}

/// What is told of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Their names and types: `describe`.
    Types,
    /// What values they have, too: `summarize`.
    Values,
}

/// Values that are told of each column: the names of the columns of the answer.
pub const VALUES: [&str; 8] = [
    "min",
    "max",
    "approx_unique",
    "avg",
    "std",
    "q25",
    "q50",
    "q75",
];

/// The columns of the answer to such a statement.
pub fn schema(told: Told) -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let fields = match told {
        Told::Types => ["column", "type", "nullable", "key"].map(text).to_vec(),
        Told::Values => {
            let mut fields = vec![text("column_name"), text("column_type")];
            fields.extend(VALUES.map(|name| match name {
                "approx_unique" => Field::new(name, DataType::Int64, true),
                name => text(name),
            }));
            fields.push(Field::new("count", DataType::Int64, true));
            fields.push(Field::new("null_percentage", DataType::Float64, true));
            fields
        }
    };
    Arc::new(Schema::new(fields))
}

/// What such a statement tells, and the tokens of its query; none of another statement. `describe t` is another one: it
/// tells the keys, too.
pub(crate) fn strip(tokens: &[TokenWithSpan]) -> Option<(Told, Vec<TokenWithSpan>)> {
    let told = match leading(tokens).next()?.as_str() {
        "describe" | "desc" => Told::Types,
        "summarize" | "summarise" => Told::Values,
        _ => return None,
    };
    let mut whole = tokens
        .iter()
        .filter(|own| !matches!(own.token, Token::Whitespace(_) | Token::EOF));
    let first = whole.next()?;
    let rest: Vec<&TokenWithSpan> = whole.collect();
    let next = rest.first()?;
    let is_query = ["select", "with", "from", "values"]
        .iter()
        .any(|word| is_word(&next.token, word))
        || next.token == Token::LParen
        || told == Told::Values && is_word(&next.token, "table");
    let called = rest.get(1).is_some_and(|own| own.token == Token::LParen);
    let named = match &next.token {
        Token::SingleQuotedString(_) => true,
        Token::Word(word) => told == Told::Values || called || looks_like_file(&word.value),
        _ => false,
    };
    if !is_query && !named {
        return None;
    }
    let mut query = Vec::with_capacity(2 * rest.len() + 6);
    let mut push = |token: Token, span| {
        for part in [token, Token::Whitespace(Whitespace::Space)] {
            query.push(TokenWithSpan::new(part, span));
        }
    };
    if !is_query {
        push(Token::make_keyword("SELECT"), first.span);
        push(Token::Mul, first.span);
        push(Token::make_keyword("FROM"), first.span);
    }
    for own in rest {
        push(own.token.clone(), own.span);
    }
    Some((told, query))
}

/// What is told of the columns of what was parsed.
///
/// # Errors
/// If it is no query.
pub(crate) fn of(told: Told, parsed: Sql) -> Result<ColumnsOf> {
    match parsed {
        Sql::Query(query) => Ok(ColumnsOf { query, told }),
        _ => Err(Error::Syntax {
            message: "expected a table, a file or a query".into(),
            position: None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::DIALECT;

    fn stripped(text: &str) -> Option<(Told, String)> {
        let tokens = Tokenizer::new(&DIALECT, text)
            .tokenize_with_location()
            .unwrap();
        let (told, query) = strip(&tokens)?;
        let query: String = query.iter().map(|own| own.token.to_string()).collect();
        Some((told, query.trim().to_owned()))
    }

    #[test]
    fn what_is_described_is_a_query() {
        let types = |query: &str| Some((Told::Types, query.to_owned()));
        let values = |query: &str| Some((Told::Values, query.to_owned()));
        assert_eq!(stripped("describe 'x.csv'"), types("SELECT * FROM 'x.csv'"));
        assert_eq!(stripped("desc select 1"), types("select 1"));
        assert_eq!(stripped("summarize t"), values("SELECT * FROM t"));
        assert_eq!(stripped("SUMMARIZE s.t"), values("SELECT * FROM s . t"));
        assert_eq!(stripped("summarize table t"), values("table t"));
        assert_eq!(
            stripped("describe read_csv('a')"),
            types("SELECT * FROM read_csv ( 'a' )")
        );
        for other in ["describe t", "describe s.t", "select 1", "describe"] {
            assert_eq!(stripped(other), None, "{other}");
        }
    }
}
