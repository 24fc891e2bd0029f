//! `insert`, `delete`, `update`.
//!
//! DataFusion plans the query inside each of them; the rows it returns are written here. A statement that
//! fails in the middle leaves nothing behind: its transaction is dropped.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, col};
use datafusion::physical_plan::execute_stream;
use datafusion::sql::sqlparser::ast::{
    AssignmentTarget, Delete, FromTable, Insert, ObjectName, ObjectNamePart, Statement as Sql,
    TableFactor, TableObject, TableWithJoins, Update,
};
use futures::TryStreamExt;
use roaring::RoaringTreemap;

use crate::engine::Engine;
use crate::names::{column_name, table_name};
use crate::scope::Scope;
use crate::write::Writing;
use crate::{Answer, Error, ROW_ID, Result, ddl, query};

/// `insert into table [(columns)] values ... | query`.
pub(crate) async fn insert(
    engine: &Arc<Engine>,
    statement: Insert,
    started: Instant,
) -> Result<Answer> {
    let name = match &statement.table {
        TableObject::TableName(name) => table_name(name)?,
        _ => return Err(Error::unsupported("`insert` needs the name of a table")),
    };
    let writing = Writing::begin(engine).await?;
    let mut scope = Scope::new(engine, writing.tx.base(), started)?;
    let table = scope.table(&name)?;
    let named: Vec<String> = match statement.columns.as_slice() {
        [] => table
            .definition()
            .columns
            .iter()
            .map(|c| c.name.clone())
            .collect(),
        columns => columns.iter().map(ObjectName::to_string).collect(),
    };
    let in_values = |e: Error| null_in_values(e, &named, &name);
    let rows = rows_of(&mut scope, Sql::Insert(statement), None)
        .await
        .map_err(in_values)?
        .map_err(Error::from);
    let appended = writing
        .append(&name, table.definition(), rows, engine.workers().width())
        .await;
    let (writing, count) = appended.map_err(in_values)?;
    writing.commit().await?;
    Ok(Answer::changed(Some(count), &scope.clock))
}

/// A NULL in `values` is refused by DataFusion, which numbers the columns; says which column it was.
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
    engine: &Arc<Engine>,
    statement: Delete,
    started: Instant,
) -> Result<Answer> {
    let name = delete_target(&statement)?;
    let mut writing = Writing::begin(engine).await?;
    let mut scope = Scope::new(engine, writing.tx.base(), started)?;
    scope.table(&name)?;
    let count = if statement.selection.is_none() {
        ddl::empty(&scope, &mut writing, &name)?
    } else {
        let rows = rows_of(&mut scope, Sql::Delete(statement), Some(&name)).await?;
        let mut ids = RowIds::default();
        ids.collect(rows).await?;
        ids.delete(&mut writing, &name)?
    };
    writing.commit().await?;
    Ok(Answer::changed(Some(count), &scope.clock))
}

/// `update table set column = expression, ... [where ...]`: deletes the rows and appends the new ones.
pub(crate) async fn update(
    engine: &Arc<Engine>,
    mut statement: Update,
    started: Instant,
) -> Result<Answer> {
    let name = match &statement.table.relation {
        TableFactor::Table { name, .. } => table_name(name)?,
        _ => return Err(Error::unsupported("`update` needs the name of a table")),
    };
    let mut writing = Writing::begin(engine).await?;
    let mut scope = Scope::new(engine, writing.tx.base(), started)?;
    let table = scope.table(&name)?;
    fold_targets(&mut statement)?;
    let rows = rows_of(&mut scope, Sql::Update(statement), Some(&name)).await?;
    let mut ids = RowIds::default();
    let new = ids.split(rows).await?;
    let count = ids.delete(&mut writing, &name)?;
    let normal: Vec<RecordBatch> = new
        .iter()
        .map(|batch| table::normalise(batch, table.definition()))
        .collect::<std::result::Result<_, _>>()?;
    writing.insert(&name, &normal).await?.commit().await?;
    Ok(Answer::changed(Some(count), &scope.clock))
}

/// The rows that the query inside a statement returns.
async fn rows_of(
    scope: &mut Scope,
    statement: Sql,
    target: Option<&str>,
) -> Result<SendableRecordBatchStream> {
    let plan = input(scope.plan(statement, target).await?)?;
    if target.is_none() {
        return query::rows(scope, &plan).await;
    }
    let physical = scope.physical(&plan).await?;
    scope.clock.planned();
    Ok(execute_stream(physical, scope.task())?)
}

/// The query inside a planned statement; for `delete`, only its row ids.
pub(crate) fn input(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Dml(statement) = plan else {
        return Err(Error::Defect {
            message: format!("expected a statement that writes, found {}", plan.display()),
        });
    };
    let input = Arc::unwrap_or_clone(statement.input);
    match statement.op {
        datafusion::logical_expr::WriteOp::Delete => Ok(LogicalPlanBuilder::from(input)
            .project([col(ROW_ID)])?
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

/// Folds the names of assigned columns to lower case, which DataFusion leaves to us.
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

/// The rows that a statement removes.
#[derive(Default)]
struct RowIds(RoaringTreemap);

impl RowIds {
    /// Takes the ids of `rows`, their only column.
    async fn collect(&mut self, mut rows: SendableRecordBatchStream) -> Result<()> {
        while let Some(batch) = rows.try_next().await? {
            let at = batch.num_columns().saturating_sub(1);
            self.take(&batch, at)?;
        }
        Ok(())
    }

    /// Takes the ids of `rows`, their last column, and returns the others.
    async fn split(&mut self, mut rows: SendableRecordBatchStream) -> Result<Vec<RecordBatch>> {
        let mut others = Vec::new();
        while let Some(batch) = rows.try_next().await? {
            let last = batch.num_columns().saturating_sub(1);
            let added = self.take(&batch, last)?;
            if added < batch.num_rows() {
                return Err(Error::invalid(
                    "a row matches more than once; make the `from` clause or the condition unique",
                ));
            }
            let columns: Vec<usize> = (0..last).collect();
            others.push(batch.project(&columns)?);
        }
        Ok(others)
    }

    /// Takes the ids in column `at`, and says how many are new.
    fn take(&mut self, batch: &RecordBatch, at: usize) -> Result<usize> {
        let ids = batch
            .columns()
            .get(at)
            .and_then(|column| column.as_primitive_opt::<UInt64Type>())
            .filter(|ids| ids.null_count() == 0)
            .ok_or_else(|| Error::Defect {
                message: format!("{ROW_ID} is missing from the rows to change"),
            })?;
        Ok(ids.values().iter().filter(|id| self.0.insert(**id)).count())
    }

    fn delete(&self, writing: &mut Writing<'_>, name: &str) -> Result<u64> {
        if self.0.is_empty() {
            return Ok(0);
        }
        let ids: Vec<u64> = self.0.iter().collect();
        Ok(table::delete(&mut writing.tx, name, &ids)?)
    }
}
