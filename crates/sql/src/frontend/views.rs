//! `create view`: what is kept of one is its text, which is parsed again wherever it is named.

use datafusion::sql::sqlparser::ast::{CreateView, Ident, Query};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::error::{Error, Result};
use crate::frontend::dialect::DIALECT;
use crate::frontend::parse::{Statement, parse, source};
use crate::frontend::words;
use crate::names::{check_column, column_name};

/// A view, as its text says.
pub(crate) struct View {
    pub query: Box<Query>,
    /// The names of its columns, if it gives them others than the query does.
    pub columns: Vec<String>,
    /// How deep the tree of the query may be.
    pub depth: usize,
}

/// The view of a text that was kept.
///
/// # Errors
/// If it is none any more.
pub(crate) fn of_text(text: &str) -> Result<View> {
    let mut statements = parse(text)?;
    if let (Some(parsed), true) = (statements.pop(), statements.is_empty())
        && let Statement::View { view, .. } = parsed.statement
    {
        return Ok(View {
            columns: columns(&view)?,
            query: view.query,
            depth: parsed.depth,
        });
    }
    Err(Error::Defect {
        message: "the text of a view is none".into(),
    })
}

/// The query in the text of a view or a materialized view, as it was written, with a semicolon.
pub(crate) fn query_text(text: &str) -> String {
    let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
    let tokens = tokens.unwrap_or_default();
    let mut depth = 0;
    let begins = |token: &TokenWithSpan| {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::Word(word) if depth == 0 && word.quote_style.is_none() => {
                return word.value.eq_ignore_ascii_case("as");
            }
            _ => {}
        }
        false
    };
    let made = words::leading(&tokens).next().as_deref() == Some("create");
    let query = match tokens.iter().position(begins) {
        Some(at) if made => source(text, &tokens[at + 1..]),
        _ => text.trim().to_owned(),
    };
    format!("{};", query.trim_end_matches(';').trim_end())
}

fn columns(view: &CreateView) -> Result<Vec<String>> {
    let names = view.columns.iter().map(|column| name(&column.name));
    names.collect()
}

fn name(ident: &Ident) -> Result<String> {
    let name = column_name(ident);
    check_column(&name)?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::query_text;

    #[test]
    fn a_view_tells_its_query() {
        for (text, wanted) in [
            ("create view v as select 1 as a", "select 1 as a;"),
            (
                "create or replace view \"as\" (a, b) as select 1, 2 ;",
                "select 1, 2;",
            ),
            ("select 1 as a", "select 1 as a;"),
        ] {
            assert_eq!(query_text(text), wanted);
        }
    }
}
