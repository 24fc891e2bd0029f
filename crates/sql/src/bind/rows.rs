//! Rows of tables as values, and fields of structs, as calls of functions.

use datafusion_common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion_expr::planner::RawBinaryExpr;
use datafusion_expr::{Expr, ExprSchemable};
use sqlparser::ast::BinaryOperator;
use syntax::returning::NUMBER;

use crate::functions::lists::names::{FIELD, STRUCT, WHOLE, WHOLE_OUTER};
use crate::functions::special;
use crate::messages::hidden::is_hidden;
use crate::messages::tags::shown;

fn constant(text: &str) -> Expr {
    Expr::Literal(ScalarValue::Utf8(Some(text.to_owned())), None)
}

/// A field of a struct, or of a struct in it.
///
/// # Errors
/// If the functions are not there: a defect.
pub(crate) fn field(value: Expr, names: &[String]) -> Result<Expr> {
    let function = special(FIELD)?;
    let taken = names.iter().fold(value, |value, name| {
        function.call(vec![value, constant(name)])
    });
    Ok(taken)
}

/// Whether an operator stands for the row of a table.
pub(crate) fn is_whole(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::Custom(name) if name == WHOLE || name == WHOLE_OUTER)
}

/// What a name stands for that may be a column's, and is a table's: the column if there is one, otherwise the row of the
/// table.
///
/// # Errors
/// If there is neither.
pub(crate) fn whole(expr: RawBinaryExpr, schema: &DFSchema) -> Result<Expr> {
    let RawBinaryExpr { op, left, right } = expr;
    let Expr::Literal(ScalarValue::Utf8(Some(name)), _) = right else {
        return plan_err!("the row of a table has its name");
    };
    if left.get_type(schema).is_ok() {
        return Ok(left);
    }
    let own = schema.iter().filter(|(table, field)| {
        let hidden = is_hidden(field.name()) || field.name() == NUMBER;
        table.is_some_and(|table| table.table() == name) && !hidden
    });
    let mut args = Vec::new();
    for (table, field) in own {
        args.push(constant(shown(field.name())));
        args.push(Expr::from((table, field)));
    }
    if args.is_empty() {
        // The planner says that there is no such column.
        return Ok(left);
    }
    if op == BinaryOperator::Custom(WHOLE_OUTER.into()) {
        return plan_err!(
            "not supported: the row of {name}, which an outer join may leave without one: name its columns"
        );
    }
    Ok(special(STRUCT)?.call(args))
}
