//! The tokens of a statement as the parser reads them: what it does not know is written otherwise, or marked.

use sqlparser::parser::ParserError;
use sqlparser::tokenizer::TokenWithSpan;

use crate::dialect::DIALECT;
use crate::{
    constraint_comments, constraints, distinct, operators, overriding, rewrite, table_as, ways,
};

/// The tokens as the parser reads them.
///
/// # Errors
/// Those of parts that stand where they may not.
pub(crate) fn rewritten(
    tokens: &[TokenWithSpan],
) -> std::result::Result<Vec<TokenWithSpan>, ParserError> {
    let tokens = constraint_comments::as_columns(tokens.to_vec());
    let tokens = rewrite::grouped(rewrite::operators(tokens));
    let tokens = rewrite::fetched(tokens);
    let tokens = rewrite::locks(rewrite::unnest(tokens));
    let tokens = rewrite::array_types(tokens);
    let tokens = rewrite::quotes(rewrite::continued(table_as::logged(tokens))?);
    let tokens = rewrite::subscripts(ways::inserts(rewrite::using_alias(rewrite::as_of_joins(
        tokens,
    ))));
    let tokens = rewrite::laterals(rewrite::questions(operators::mark(tokens)));
    let tokens = rewrite::numbers(&tokens)?;
    let tokens = rewrite::all_parts(rewrite::bare_select(tokens));
    let tokens = rewrite::structs(rewrite::without_materialized(tokens));
    let tokens = rewrite::framed(rewrite::substrings(rewrite::rows_from(tokens)));
    let tokens = rewrite::insert_alias(rewrite::key_columns(tokens))?;
    distinct::mark(
        &DIALECT,
        rewrite::explained(rewrite::tables(rewrite::abort(overriding::mark(
            constraints::quoted(constraints::mark(tokens)),
        )))),
    )
}
