//! Which columns a statement reads of the table that it writes to: none, or some.

use std::ops::ControlFlow;

use crate::planner::Planner;
use datafusion_sql::parser::Statement as Extended;
use sqlparser::ast::{Expr, Insert, Statement as Sql, TableObject, Visit, Visitor};
use syntax::names::{known, table_name};
use syntax::walk::Walk;

use crate::error::Result;

/// The table that `statement` writes to, if it reads nothing of it; `target` is that of an `update` or `delete`.
///
/// # Errors
/// For names in other databases.
pub(super) fn only_written(
    planner: &Planner,
    statement: &Sql,
    target: Option<&str>,
) -> Result<Option<String>> {
    let Sql::Insert(Insert {
        table: TableObject::TableName(name),
        source,
        ..
    }) = statement
    else {
        return Ok(target
            .filter(|_| !reads_columns(statement))
            .map(str::to_owned));
    };
    let name = table_name(name)?;
    let Some(query) = source else {
        return Ok(Some(name));
    };
    let query = Extended::Statement(Box::new(Sql::Query(query.clone())));
    let mut read = planner.resolve_table_references(&query)?.into_iter();
    let own = |text: &str| text.rsplit(crate::error::WITHIN).next().map(str::to_owned);
    // What is called alike in whatever schema may be this one.
    let named = own(&name);
    Ok((!read.any(|read| own(&known(read.table())) == named)).then_some(name))
}

/// Whether an `update` or `delete` names columns anywhere but where it says what it sets.
fn reads_columns(statement: &Sql) -> bool {
    match statement {
        Sql::Update(update) => {
            update.from.is_some()
                || update.returning.is_some()
                || names_any(&update.selection)
                || update.assignments.iter().any(|own| names_any(&own.value))
        }
        Sql::Delete(delete) => {
            delete.using.is_some() || delete.returning.is_some() || names_any(&delete.selection)
        }
        _ => true,
    }
}

struct Columns;

impl Visitor for Columns {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(_)
            | Expr::CompoundIdentifier(_)
            | Expr::CompoundFieldAccess { .. }
            | Expr::Subquery(_)
            | Expr::InSubquery { .. }
            | Expr::Exists { .. } => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn names_any(tree: &impl Visit) -> bool {
    tree.walk(&mut Columns).is_break()
}

#[cfg(test)]
mod tests {
    use super::*;
    use syntax::parse::{Statement, parse};

    #[test]
    fn what_names_no_column_reads_none() {
        let reads = |text: &str| match parse(text).unwrap().pop().unwrap().statement {
            Statement::Sql(sql) => reads_columns(&sql),
            other => panic!("{other:?}"),
        };
        for text in ["delete from t", "update t set a = 1 + 2, b = 'x'"] {
            assert!(!reads(text), "{text}");
        }
        for text in [
            "delete from t where a = 1",
            "delete from t using u",
            "update t set a = b",
            "update t set a = 1 where b is null",
            "update t set a = (select 1)",
            "update t set a = u.b from u",
        ] {
            assert!(reads(text), "{text}");
        }
    }
}
