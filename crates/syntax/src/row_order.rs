//! `create table t (...) order by (a, b)`: the order in which rows lie that are written together.

use messages::nearest::unknown_column;
use messages::{Error, Result};
use sqlparser::ast::{Expr, OneOrManyWithParens};
use table::Definition;

use crate::names::column_name;

/// The columns of `order by`, by their positions in the table.
///
/// # Errors
/// For what is no column of the table, or is named twice.
pub fn columns(
    order: Option<&OneOrManyWithParens<Expr>>,
    definition: &Definition,
) -> Result<Vec<usize>> {
    let mut columns = Vec::new();
    for own in order.map_or(&[][..], |own| &own[..]) {
        let Expr::Identifier(ident) = own else {
            return Err(Error::unsupported(format!(
                "`order by {own}` is not supported in `create table`: it takes names of columns"
            )));
        };
        let name = column_name(ident);
        let at = definition.columns.iter().position(|own| own.name == name);
        let at = at.ok_or_else(|| unknown_column(&name, definition))?;
        if columns.contains(&at) {
            return Err(Error::coded(
                "42701",
                format!("column \"{name}\" specified more than once"),
            ));
        }
        columns.push(at);
    }
    Ok(columns)
}
