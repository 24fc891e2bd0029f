//! What rows that are gathered have in columns that they say nothing of.

use datafusion_common::tree_node::TreeNode;
use datafusion_expr::Expr;
use table::{Column, Definition};

use crate::bind::left_out::{Defaults, LeftOut};
use crate::bind::row_values::Given;
use crate::functions::clock;
use crate::run::context::StatementContext;

/// What the columns of a table have in the statements of this transaction, until one of them is none that is gathered.
pub(super) async fn defaults(context: &mut StatementContext, definition: &Definition) -> Defaults {
    let given = Given {
        local: context.local(),
        ..Given::NONE
    };
    let mut all = Vec::with_capacity(definition.columns.len());
    for column in &definition.columns {
        let own = match LeftOut::of(column) {
            // What would have to be converted is so once.
            LeftOut::Value(value) if value.value(given, &column.data_type).is_none() => {
                same(context, column).await.unwrap_or(LeftOut::Computed)
            }
            LeftOut::Beginning | LeftOut::Computed => {
                same(context, column).await.unwrap_or(LeftOut::Computed)
            }
            own => own,
        };
        all.push(own);
    }
    Defaults(all)
}

/// A default that is the same in all rows of a transaction, such as `now()`. Where it fails, rows that need it tell.
async fn same(context: &mut StatementContext, column: &Column) -> Option<LeftOut> {
    let text = column.default.as_deref()?;
    let default = context.default(&column.name, text, &column.data_type).await;
    if changes(&default.ok()?) {
        return None;
    }
    let value = context.default_value(column).await.ok()?;
    Some(LeftOut::Same(value))
}

/// Whether an expression may have another value in another statement of the transaction.
fn changes(default: &Expr) -> bool {
    let of_statement = default.exists(|part| {
        let Expr::ScalarFunction(call) = part else {
            return Ok(false);
        };
        Ok(call.func.name() == clock::OF_STATEMENT)
    });
    default.is_volatile() || of_statement.unwrap_or(true)
}
