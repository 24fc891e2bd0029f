//! `insert`, `delete`, `update`.
//!
//! DataFusion plans the query inside each of them; its rows are written here. A statement that fails in the middle
//! leaves nothing behind: its transaction is dropped.

use std::sync::Arc;
use std::time::Instant;

use crate::resources::stream::RowStream;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{SchemaRef, UInt64Type};
use datafusion_execution::SendableRecordBatchStream;
use datafusion_expr::{LogicalPlan, LogicalPlanBuilder, col};
use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use roaring::RoaringTreemap;
use sqlparser::ast::{
    Delete, FromTable, Insert, OnConflictAction, OnInsert, Query, Statement as Sql, TableFactor,
    TableObject, TableWithJoins, Update,
};
use store::Transaction;
use syntax::names::{known, table_name, written};
use table::{Definition, Privileges, ROW_COLUMN};

use crate::error::{Error, Result};
use crate::run::answer::Answer;
use crate::run::checks::Checks;
use crate::run::context::StatementContext;
use crate::run::generated::GeneratedColumns;
use crate::run::query;
use crate::statements::assigned::fold_targets;
use crate::statements::beside::{self, Beside};
use crate::statements::conflict::Conflict;
use crate::statements::references::{self, Children, Parents};
use crate::statements::remove::remove_rows;
use crate::statements::scope::Scope;
use crate::statements::written::Written;
use crate::statements::{compact, constant_rows, ddl, default, in_order, keyed, using, ways};

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
    may_return(&context, &name, &returning)?;
    let named = default::fill_insert(&context, &mut statement, table.definition()).await?;
    let in_values = |e: Error| null_in_values(e, &named, &name);
    let definition = table.definition();
    let checks = Checks::new(&mut context, definition).await?;
    let generated = GeneratedColumns::new(&mut context, definition).await?;
    let conflict = match statement.on.take() {
        Some(on) => {
            may_update(&context, &name, &on)?;
            scope.claim(&references::reached(&context.tables, &name))?;
            Some(Conflict::new(&mut context, &table, (&checks, &generated), on).await?)
        }
        None => None,
    };
    let constants = if scope.always_plans() {
        None
    } else {
        constant_rows::of_insert(&context, &statement, definition, &named)?
    };
    let rows: SendableRecordBatchStream = match constants {
        Some(rows) => at_hand(&mut context, rows.schema(), Some(rows)),
        None => inserted(&mut context, Sql::Insert(statement), definition)
            .await
            .map_err(in_values)?,
    };
    let mut written = Written::new(&context, definition, returning);
    let width = scope.instance.workers().width();
    let mut children = Children::new(definition);
    let rows = rows.map(|batch| generated.fill(batch?));
    let mut take = |batch: RecordBatch| {
        children.take(&batch)?;
        written.take(batch)
    };
    let may_replace = conflict.is_some();
    let appended = match conflict {
        None => {
            let rows = rows.map(|batch| take(batch?));
            let appended = writing.append(definition, &checks, rows, width).await;
            appended.map(|(writing, count)| (writing, count, Parents::default()))
        }
        Some(conflict) => conflict.append(writing, rows, take, width).await,
    };
    let (writing, count, parents) = appended.map_err(in_values)?;
    written.place(&writing.tx, count)?;
    let mut writing = references::follow(&mut context, writing, &table, &children, parents).await?;
    if may_replace {
        writing = compact::after(scope, &context, writing, &table, count).await?;
    }
    written.finish(scope, context, writing, count).await
}

/// Rows that no plan makes.
fn at_hand(
    context: &mut StatementContext,
    schema: SchemaRef,
    rows: Option<RecordBatch>,
) -> SendableRecordBatchStream {
    context.clock.planned();
    let rows = stream::iter(rows.map(Ok));
    Box::pin(RowStream::new(schema, rows))
}

/// That rows which are written may be read, if the statement returns them.
fn may_return(
    context: &StatementContext,
    name: &str,
    returning: &Option<Box<Query>>,
) -> Result<()> {
    match returning {
        Some(_) => context.may(name, Privileges::SELECT),
        None => Ok(()),
    }
}

/// That rows in the way of others may be changed.
fn may_update(context: &StatementContext, name: &str, on: &OnInsert) -> Result<()> {
    match on {
        OnInsert::OnConflict(conflict) if conflict.action == OnConflictAction::DoNothing => Ok(()),
        _ => context.may(name, Privileges::UPDATE.and(Privileges::SELECT)),
    }
}

/// Names the column in DataFusion's refusal of a NULL in `values`, which only has the column's number.
pub(super) fn null_in_values(e: Error, named: &[String], table: &str) -> Error {
    let text = e.to_string();
    let number = text
        .strip_prefix("column 'column")
        .filter(|_| text.contains("declared as non-nullable"))
        .and_then(|rest| rest.split('\'').next()?.parse::<usize>().ok());
    match number.and_then(|n| named.get(n.checked_sub(1)?)) {
        Some(column) => Error::Constraint {
            code: "23502",
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
    may_return(&context, &name, &returning)?;
    scope.claim(&references::reached(&context.tables, &name))?;
    let mut written = Written::new(&context, table.definition(), returning).of_deleted();
    let mut parents = Parents::new(&context.tables, &name);
    if statement.using.is_some() && written.is_wanted() {
        let own = table.definition();
        let (mut beside, plan) = Beside::delete(&context, statement, own, &name).await?;
        let mut rows = query::rows_to_write(&mut context, &plan).await?;
        let mut ids = RowIds::default();
        while let Some(batch) = rows.try_next().await? {
            let first = beside::first_of_each(&batch, |id| ids.0.insert(id), own.columns.len())?;
            let taken = beside.take(&first)?;
            let rows = taken.project(&(0..own.columns.len()).collect::<Vec<_>>())?;
            written.take_deleted(rows, &taken)?;
        }
        drop(rows);
        parents.delete(ids.0.iter());
        let count = ids.delete(&mut writing.tx, &name)?;
        let none = Children::new(own);
        let writing = references::follow(&mut context, writing, &table, &none, parents).await?;
        let writing = compact::after(scope, &context, writing, &table, count).await?;
        return written
            .finish_beside(scope, context, writing, (count, beside))
            .await;
    }
    let all = statement.selection.is_none() && statement.using.is_none();
    let whole = all && !written.is_wanted() && !parents.is_wanted();
    let count = if whole {
        ddl::empty(&context, &mut writing, &name)?
    } else {
        let mut ids = RowIds::default();
        let mut rows = match statement.using {
            Some(_) => using::rows(&mut context, statement, &name).await?,
            None if using::is_aliased(&statement) => {
                let own = table.definition().columns.iter();
                let own = own.filter(|_| written.is_wanted());
                let columns: Vec<&str> = own.map(|column| column.name.as_str()).collect();
                using::named_rows(&mut context, statement, &name, &columns).await?
            }
            None => {
                let wanted = written.is_wanted();
                match keyed::deleted(scope, &mut context, (&table, &statement), wanted).await? {
                    Some(found) => at_hand(&mut context, found.schema, found.row),
                    None => {
                        let statement = Sql::Delete(statement);
                        rows_of(&mut context, statement, Some(&name), wanted).await?
                    }
                }
            }
        };
        while let Some(batch) = rows.try_next().await? {
            let others = ids.strip(&batch)?;
            written.take_deleted(others, &batch)?;
        }
        drop(rows);
        parents.delete(ids.0.iter());
        ids.delete(&mut writing.tx, &name)?
    };
    let none = Children::new(table.definition());
    let writing = references::follow(&mut context, writing, &table, &none, parents).await?;
    let writing = compact::after(scope, &context, writing, &table, count).await?;
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
    may_return(&context, &name, &returning)?;
    ways::of_update(&mut statement, table.definition())?;
    fold_targets(&mut statement)?;
    let filled = context.with_domain_defaults(table.definition());
    default::fill_update(&mut statement, &filled)?;
    let (beside, rows) = if beside::is_wanted(&statement) {
        let wanted = (&name[..], returning.is_some());
        let own = table.definition();
        let (beside, plan) = Beside::update(&context, statement, own, wanted).await?;
        let rows = query::rows_to_write(&mut context, &plan).await?;
        (Some(beside), rows)
    } else {
        let keyed = keyed::updated(scope, &mut context, (&table, &statement)).await?;
        let rows = match keyed {
            Some(found) => at_hand(&mut context, found.schema, found.row),
            None => rows_of(&mut context, Sql::Update(statement), Some(&name), true).await?,
        };
        (None, rows)
    };
    let beside = Mutex::new(beside);
    scope.claim(&references::reached(&context.tables, &name))?;
    let ids = Mutex::new(RowIds::default());
    let mut parents = Parents::new(&context.tables, &name);
    let mut children = Children::new(table.definition());
    let checks = Checks::new(&mut context, table.definition()).await?;
    let generated = GeneratedColumns::new(&mut context, table.definition()).await?;
    let mut written = Written::new(&context, table.definition(), returning);
    let rows = rows.map(|batch| {
        let mut batch = batch?;
        let mut assigned = false;
        if let Some(beside) = beside.lock().as_mut() {
            batch = beside.take(&batch)?;
            assigned = beside.assigned;
        }
        let (rows, own) = ids.lock().split(&batch, assigned)?;
        let rows = generated.fill(rows)?;
        children.take(&rows)?;
        parents.replace(table.definition(), own.iter().copied(), &rows)?;
        written.take(rows)
    });
    let remove = |tx: &mut Transaction| ids.lock().delete(tx, &name).map(drop);
    let width = scope.instance.workers().width();
    let (writing, count) = writing
        .replace(table.definition(), &checks, rows, width, remove)
        .await?;
    written.place(&writing.tx, count)?;
    let writing = references::follow(&mut context, writing, &table, &children, parents).await?;
    let writing = compact::after(scope, &context, writing, &table, count).await?;
    match beside.into_inner() {
        Some(beside) => {
            let answer = written.finish_beside(scope, context, writing, (count, beside));
            answer.await
        }
        None => written.finish(scope, context, writing, count).await,
    }
}

/// The rows that the query inside a statement returns; of a `delete` that is not `whole`, only their ids.
async fn rows_of(
    context: &mut StatementContext,
    statement: Sql,
    target: Option<&str>,
    whole: bool,
) -> Result<SendableRecordBatchStream> {
    let plan = input(context.plan(statement, target).await?, whole)?;
    query::rows_to_write(context, &plan).await
}

/// The rows that an `insert` writes, in the order of its table.
async fn inserted(
    context: &mut StatementContext,
    statement: Sql,
    definition: &Definition,
) -> Result<SendableRecordBatchStream> {
    let plan = input(context.plan(statement, None).await?, true)?;
    let plan = in_order::planned(plan, definition)?;
    query::rows_to_write(context, &plan).await
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
        datafusion_expr::WriteOp::Delete if !whole => Ok(LogicalPlanBuilder::from(input)
            .project([col(ROW_COLUMN)])?
            .build()?),
        _ => Ok(input),
    }
}

/// The table a `delete` is for, by its name in the catalog.
pub(crate) fn delete_target(statement: &Delete) -> Result<String> {
    delete_written(statement).map(|name| known(&name))
}

/// The table a `delete` is for, as it [writes](written) it.
pub(crate) fn delete_written(statement: &Delete) -> Result<String> {
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &statement.from;
    match from.as_slice() {
        [
            TableWithJoins {
                relation: TableFactor::Table { name, .. },
                joins,
            },
        ] if joins.is_empty() => written(name),
        _ => Err(Error::unsupported(
            "`delete` takes one table: use `where ... in (select ...)`",
        )),
    }
}

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

    /// The same for rows that must each come once, also of those with queries that are `assigned`; returns the ids, too.
    fn split(
        &mut self,
        batch: &RecordBatch,
        assigned: bool,
    ) -> Result<(RecordBatch, ScalarBuffer<u64>)> {
        let last = batch.num_columns().saturating_sub(1);
        if self.take(batch, last)? < batch.num_rows() {
            return Err(Error::coded(
                "21000",
                if assigned {
                    "more than one row returned by a subquery used as an expression"
                } else {
                    "a row matches more than once; make the `from` clause or the condition unique"
                },
            ));
        }
        let ids = batch.column(last).as_primitive::<UInt64Type>().values();
        Ok((batch.project(&(0..last).collect::<Vec<_>>())?, ids.clone()))
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
        remove_rows(self.0.iter(), tx, name)
    }
}
