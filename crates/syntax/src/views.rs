//! `create view`: what is kept of one is its text, which is parsed again wherever it is named.

use std::ops::ControlFlow;

use messages::{Error, Result};
use sqlparser::ast::{CreateView, Expr, Ident, JoinConstraint, Query, Select, SelectItem, Visitor};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::dialect::DIALECT;
use crate::names::{check_column, column_name};
use crate::parse::{Statement, parse, source};
use crate::rewrite::constraint;
use crate::walk::Walk;
use crate::words;

/// A view, as its text says.
pub struct View {
    /// What it selects.
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
pub fn of_text(text: &str) -> Result<View> {
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

/// Whether the text of a view names one of these columns, of whichever table, or all columns of one.
///
/// # Errors
/// If it is none any more.
pub fn reads(text: &str, columns: &[String]) -> Result<bool> {
    struct Reads<'c>(&'c [String]);

    impl Visitor for Reads<'_> {
        type Break = ();

        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            let star = select.projection.iter().any(|item| {
                matches!(
                    item,
                    SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
                )
            });
            let joins = select.from.iter().flat_map(|from| &from.joins);
            let shared = joins.filter_map(|join| constraint(&join.join_operator));
            let joined = shared.into_iter().any(|shared| match shared {
                JoinConstraint::Natural => true,
                JoinConstraint::Using(names) => names.iter().any(|name| {
                    let last = name.0.last().and_then(|part| part.as_ident());
                    last.is_some_and(|last| self.0.contains(&column_name(last)))
                }),
                _ => false,
            });
            if star || joined {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let name = match expr {
                Expr::Identifier(name) => Some(name),
                Expr::CompoundIdentifier(parts) => parts.last(),
                _ => None,
            };
            match name {
                Some(name) if self.0.contains(&column_name(name)) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }

    Ok(of_text(text)?.query.walk(&mut Reads(columns)).is_break())
}

/// The query in the text of a view or a materialized view, as it was written, with a semicolon.
pub fn query_text(text: &str) -> String {
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
