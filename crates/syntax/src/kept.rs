//! Expressions that a table keeps as texts: defaults, checks, and what generated columns have.
//!
//! They are taken out of a statement before it is rewritten, and parsed again, rewritten and checked wherever they are
//! used. What stands in their place meanwhile is a string with their text.

use messages::{Error, Result};
use sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, ColumnOption, ColumnOptionDef, Expr,
    Statement as Sql, TableConstraint, Value,
};

/// Puts texts in the places of the expressions that a table would keep.
pub(crate) fn keep(statement: &mut Sql) {
    match statement {
        Sql::CreateTable(create) => {
            let columns = create.columns.iter_mut();
            columns.for_each(|column| options(&mut column.options));
            create.constraints.iter_mut().for_each(constraint);
        }
        Sql::AlterTable(alter) => alter.operations.iter_mut().for_each(operation),
        Sql::CreateIndex(create) => {
            for column in &mut create.columns {
                let expr = &mut column.column.expr;
                if !matches!(expr, Expr::Identifier(_)) {
                    if let Expr::Nested(inner) = expr {
                        *expr = (**inner).clone();
                    }
                    as_text(expr);
                }
            }
            create.predicate.iter_mut().for_each(as_text);
        }
        _ => {}
    }
}

fn operation(operation: &mut AlterTableOperation) {
    match operation {
        AlterTableOperation::AddColumn { column_def, .. } => options(&mut column_def.options),
        AlterTableOperation::AlterColumn {
            op:
                AlterColumnOperation::SetDefault { value }
                | AlterColumnOperation::SetDataType {
                    using: Some(value), ..
                },
            ..
        } => as_text(value),
        AlterTableOperation::AddConstraint {
            constraint: added, ..
        } => constraint(added),
        _ => {}
    }
}

fn constraint(constraint: &mut TableConstraint) {
    if let TableConstraint::Check(check) = constraint {
        as_text(&mut check.expr);
    }
}

fn options(options: &mut [ColumnOptionDef]) {
    for option in options {
        match &mut option.option {
            ColumnOption::Default(value) => as_text(value),
            ColumnOption::Generated {
                generation_expr: Some(value),
                ..
            } => as_text(value),
            ColumnOption::Check(check) => as_text(&mut check.expr),
            _ => {}
        }
    }
}

fn as_text(expr: &mut Expr) {
    let text = Value::SingleQuotedString(expr.to_string());
    *expr = Expr::Value(text.with_empty_span());
}

/// The text that [`keep`] has put in the place of an expression.
///
/// # Errors
/// If it has not.
pub fn text(expr: &Expr) -> Result<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Ok(text.clone()),
            _ => Err(lost()),
        },
        _ => Err(lost()),
    }
}

fn lost() -> Error {
    Error::Defect {
        message: "an expression was not kept as a text".into(),
    }
}
