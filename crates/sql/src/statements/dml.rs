//! `insert`, `delete`, `update`.
//!
//! DataFusion plans the query inside each of them; its rows are written here. A statement that fails in the middle
//! leaves nothing behind: its transaction is dropped.

use std::iter::Peekable;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, col};
use datafusion::physical_plan::execute_stream;
use datafusion::sql::sqlparser::ast::{
    AssignmentTarget, Delete, FromTable, Insert, ObjectName, ObjectNamePart, Query,
    Statement as Sql, TableFactor, TableObject, TableWithJoins, Update,
};
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use roaring::RoaringTreemap;
use store::Transaction;
use table::ROW_COLUMN;

use crate::error::{Error, Result};
use crate::names::{column_name, table_name};
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::query;
use crate::statements::scope::Scope;
use crate::statements::written::Written;
use crate::statements::{ddl, default};

/// `insert into table [(columns)] values ... | query`.
pub(crate) async fn insert(
    scope: &mut Scope<'_>,
    mut statement: Insert,
    returning: Option<Box<Query>>,
    started: Instant,
) -> Result<Answer> {
    let name = match &statement.table {
        TableObject::TableName(name) => table_name(name)?,
        _ => return Err(Error::unsupported("`insert` needs the name of a table")),
    };
    let (writing, mut context) = scope.write("INSERT", &[&name], started).await?;
    let table = context.table(&name)?;
    let named = default::named(&statement, table.definition());
    default::fill_insert(&mut statement, table.definition(), &named)?;
    let in_values = |e: Error| null_in_values(e, &named, &name);
    let rows = rows_of(&mut context, Sql::Insert(statement), None, true)
        .await
        .map_err(in_values)?;
    let mut written = Written::new(&context, table.definition(), returning);
    let width = scope.instance.workers().width();
    let appended = writing
        .append(
            &name,
            table.definition(),
            rows.map(|batch| written.take(batch?)),
            width,
        )
        .await;
    let (writing, count) = appended.map_err(in_values)?;
    written.finish(scope, context, writing, count).await
}

/// Names the column in DataFusion's refusal of a NULL in `values`, which only has the column's number.
fn null_in_values(e: Error, named: &[String], table: &str) -> Error {
    let text = e.to_string();
    let number = text
        .strip_prefix("column 'column")
        .filter(|_| text.contains("declared as non-nullable"))
        .and_then(|rest| rest.split('\'').next()?.parse::<usize>().ok());
    match number.and_then(|n| named.get(n.checked_sub(1)?)) {
        Some(column) => Error::Constraint {
            message: format!(
                "NULL in column '{column}' of table '{table}', which is declared NOT NULL"
            ),
        },
        None => e,
    }
}

/// `delete from table [where ...]`.
pub(crate) async fn delete(
    scope: &mut Scope<'_>,
    statement: Delete,
    returning: Option<Box<Query>>,
    started: Instant,
) -> Result<Answer> {
    let name = delete_target(&statement)?;
    let (mut writing, mut context) = scope.write("DELETE", &[&name], started).await?;
    let table = context.table(&name)?;
    let mut written = Written::new(&context, table.definition(), returning);
    let count = if statement.selection.is_none() && !written.is_wanted() {
        ddl::empty(&context, &mut writing, &name)?
    } else {
        let mut ids = RowIds::default();
        let statement = Sql::Delete(statement);
        let mut rows = rows_of(&mut context, statement, Some(&name), written.is_wanted()).await?;
        while let Some(batch) = rows.try_next().await? {
            let others = ids.strip(&batch)?;
            written.take(others)?;
        }
        drop(rows);
        ids.delete(&mut writing.tx, &name)?
    };
    written.finish(scope, context, writing, count).await
}

/// `update table set column = expression, ... [where ...]`: appends the new rows as they come, and then deletes those
/// that they replace. Only the numbers of the rows stay in memory until the end.
pub(crate) async fn update(
    scope: &mut Scope<'_>,
    mut statement: Update,
    returning: Option<Box<Query>>,
    started: Instant,
) -> Result<Answer> {
    let name = match &statement.table.relation {
        TableFactor::Table { name, .. } => table_name(name)?,
        _ => return Err(Error::unsupported("`update` needs the name of a table")),
    };
    let (writing, mut context) = scope.write("UPDATE", &[&name], started).await?;
    let table = context.table(&name)?;
    fold_targets(&mut statement)?;
    default::fill_update(&mut statement, table.definition())?;
    let rows = rows_of(&mut context, Sql::Update(statement), Some(&name), true).await?;
    let ids = Mutex::new(RowIds::default());
    let mut written = Written::new(&context, table.definition(), returning);
    let rows = rows.map(|batch| written.take(ids.lock().split(&batch?)?));
    let remove = |tx: &mut Transaction| ids.lock().delete(tx, &name).map(drop);
    let width = scope.instance.workers().width();
    let (writing, count) = writing
        .replace(&name, table.definition(), rows, width, remove)
        .await?;
    written.finish(scope, context, writing, count).await
}

/// The rows that the query inside a statement returns; of a `delete` that is not `whole`, only their ids.
async fn rows_of(
    context: &mut StatementContext,
    statement: Sql,
    target: Option<&str>,
    whole: bool,
) -> Result<SendableRecordBatchStream> {
    let plan = input(context.plan(statement, target).await?, whole)?;
    if target.is_none() {
        return query::rows(context, &plan).await;
    }
    let physical = context.physical(&plan).await?;
    context.clock.planned();
    Ok(execute_stream(physical, context.task())?)
}

/// The query inside a planned statement; for a `delete` that is not `whole`, only its row ids.
pub(crate) fn input(plan: LogicalPlan, whole: bool) -> Result<LogicalPlan> {
    let LogicalPlan::Dml(statement) = plan else {
        return Err(Error::Defect {
            message: format!("expected a statement that writes, found {}", plan.display()),
        });
    };
    let input = Arc::unwrap_or_clone(statement.input);
    match statement.op {
        datafusion::logical_expr::WriteOp::Delete if !whole => Ok(LogicalPlanBuilder::from(input)
            .project([col(ROW_COLUMN)])?
            .build()?),
        _ => Ok(input),
    }
}

/// The table a `delete` is for.
pub(crate) fn delete_target(statement: &Delete) -> Result<String> {
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &statement.from;
    match from.as_slice() {
        [
            TableWithJoins {
                relation: TableFactor::Table { name, .. },
                joins,
            },
        ] if joins.is_empty() => table_name(name),
        _ => Err(Error::unsupported(
            "`delete` takes one table: use `where ... in (select ...)`",
        )),
    }
}

/// Folds the names of assigned columns to lower case, which DataFusion does not do.
pub(crate) fn fold_targets(statement: &mut Update) -> Result<()> {
    for assignment in &mut statement.assignments {
        let AssignmentTarget::ColumnName(ObjectName(parts)) = &mut assignment.target else {
            return Err(Error::unsupported(
                "`set (a, b) = ...` is not supported: assign each column by itself",
            ));
        };
        if let Some(ObjectNamePart::Identifier(ident)) = parts.last_mut() {
            ident.value = column_name(ident);
        }
    }
    let mut names: Vec<String> = statement
        .assignments
        .iter()
        .map(|a| a.target.to_string())
        .collect();
    names.sort();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::invalid(format!(
            "column {} is assigned twice",
            pair[0]
        ))),
        None => Ok(()),
    }
}

/// How many rows are deleted at once, about: their numbers take 8 MiB.
const AT_ONCE: usize = 1 << 20;

/// The numbers of the rows that a statement removes.
#[derive(Default)]
struct RowIds(RoaringTreemap);

impl RowIds {
    /// Takes the ids of `batch`, its last column, and returns the others.
    fn strip(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let last = batch.num_columns().saturating_sub(1);
        self.take(batch, last)?;
        Ok(batch.project(&(0..last).collect::<Vec<_>>())?)
    }

    /// The same for rows that must each come once.
    fn split(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let last = batch.num_columns().saturating_sub(1);
        if self.take(batch, last)? < batch.num_rows() {
            return Err(Error::invalid(
                "a row matches more than once; make the `from` clause or the condition unique",
            ));
        }
        Ok(batch.project(&(0..last).collect::<Vec<_>>())?)
    }

    /// Takes the ids in column `at`, and says how many are new.
    fn take(&mut self, batch: &RecordBatch, at: usize) -> Result<usize> {
        let ids = batch
            .columns()
            .get(at)
            .and_then(|column| column.as_primitive_opt::<UInt64Type>())
            .filter(|ids| ids.null_count() == 0)
            .ok_or_else(|| Error::Defect {
                message: format!("{ROW_COLUMN} is missing from the rows to change"),
            })?;
        Ok(ids.values().iter().filter(|id| self.0.insert(**id)).count())
    }

    /// Deletes the rows, and says how many of them were not deleted already.
    fn delete(&self, tx: &mut Transaction, name: &str) -> Result<u64> {
        let (mut ids, mut deleted) = (self.0.iter().peekable(), 0);
        loop {
            let some = together(&mut ids, AT_ONCE);
            if some.is_empty() {
                return Ok(deleted);
            }
            deleted += table::delete(tx, name, &some)?;
        }
    }
}

/// The next `most` of `ids`, which ascend, and the rest of the last one's block or chunk of the tail: the rows of a
/// chunk get other numbers once some of them are deleted.
fn together(ids: &mut Peekable<impl Iterator<Item = u64>>, most: usize) -> Vec<u64> {
    let mut some: Vec<u64> = Vec::new();
    loop {
        let whole = |id: &u64| some.last().is_none_or(|last| last >> 16 == id >> 16);
        match ids.next_if(|id| some.len() < most || whole(id)) {
            Some(id) => some.push(id),
            None => return some,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_block_are_deleted_together() {
        let block = |number: u64, rows: u64| (0..rows).map(move |row| number << 16 | row);
        let all: Vec<u64> = block(1, 5).chain(block(2, 9)).chain(block(7, 1)).collect();
        let mut ids = all.iter().copied().peekable();
        assert_eq!(together(&mut ids, 3), all[..5]);
        assert_eq!(together(&mut ids, 9), all[5..14]);
        assert_eq!(together(&mut ids, 9), all[14..]);
        assert!(together(&mut ids, 9).is_empty());
    }
}
