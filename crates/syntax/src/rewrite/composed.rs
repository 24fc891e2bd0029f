//! Queries and expressions that rewrites compose as texts, with names in the places of parts that they put in afterwards.

use messages::{Error, Result};
use sqlparser::ast::{Expr, Query};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Tokenizer;

use crate::dialect::{DIALECT, parser};

fn reader(text: &str) -> Result<Parser<'static>> {
    let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
    let tokens = tokens.map_err(|e| Error::from(ParserError::from(e)))?;
    Ok(parser(tokens))
}

/// The query of a text.
///
/// # Errors
/// If it is none: a defect.
pub(super) fn query(text: &str) -> Result<Box<Query>> {
    Ok(reader(text)?.parse_query()?)
}

/// The expression of a text.
///
/// # Errors
/// If it is none: a defect.
pub(super) fn expression(text: &str) -> Result<Expr> {
    Ok(reader(text)?.parse_expr()?)
}
