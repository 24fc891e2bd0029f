//! `create view`: what is kept of one is its text, which is parsed again wherever it is named.

use datafusion::sql::sqlparser::ast::{CreateView, Ident, Query};

use crate::error::{Error, Result};
use crate::frontend::parse::{Statement, parse};
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

fn columns(view: &CreateView) -> Result<Vec<String>> {
    let names = view.columns.iter().map(|column| name(&column.name));
    names.collect()
}

fn name(ident: &Ident) -> Result<String> {
    let name = column_name(ident);
    check_column(&name)?;
    Ok(name)
}
