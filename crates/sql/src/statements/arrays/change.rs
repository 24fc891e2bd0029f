//! `insert`, `update` and `delete` of cells.

use std::time::Instant;

use array::Writer;
use arrow::temporal_conversions::timestamp_us_to_datetime;
use futures::TryStreamExt;
use sqlparser::ast::{
    Delete, Ident, Insert, ObjectName, Statement as Sql, TableFactor, TableObject, Update,
};
use syntax::names::{exact, table_name};
use table::Definition;

use crate::error::{Error, Result};
use crate::resources::budget::{Held, footprint};
use crate::run::answer::Answer;
use crate::run::arrays::INTO;
use crate::run::context::StatementContext;
use crate::run::query;
use crate::scan::arrays::definition::ArrayTable;
use crate::statements::arrays::cells::Cells;
use crate::statements::scope::Scope;
use crate::statements::{assigned, default, dml};

/// Whether a statement changes cells of an array.
///
/// # Errors
/// Those of reading its definition.
pub(crate) fn changes_one(scope: &Scope<'_>, statement: &Sql) -> Result<bool> {
    match target(statement) {
        Some(name) => scope.has_array(&name),
        None => Ok(false),
    }
}

/// The table or array that a statement changes the rows of; what else it may be is found where that is refused.
fn target(statement: &Sql) -> Option<String> {
    match statement {
        Sql::Insert(Insert {
            table: TableObject::TableName(name),
            ..
        }) => table_name(name).ok(),
        Sql::Delete(delete) => dml::delete_target(delete).ok(),
        Sql::Update(Update { table, .. }) => match &table.relation {
            TableFactor::Table { name, .. } => table_name(name).ok(),
            _ => None,
        },
        _ => None,
    }
}

/// Changes cells of an array.
pub(crate) async fn change(
    scope: &mut Scope<'_>,
    statement: Sql,
    started: Instant,
) -> Result<Answer> {
    let name = target(&statement).unwrap_or_default();
    match statement {
        Sql::Insert(statement) => insert(scope, &name, statement, started).await,
        Sql::Update(statement) => update(scope, &name, statement, started).await,
        Sql::Delete(statement) => delete(scope, &name, statement, started).await,
        other => Err(Error::Defect {
            message: format!("{other} changes no array"),
        }),
    }
}

/// The array as a table, and that as a definition with the fill values as defaults.
fn described(context: &StatementContext, name: &str) -> Result<(ArrayTable, Definition)> {
    let array = context
        .array(name)?
        .ok_or_else(|| Error::coded("42P01", format!("there is no array \"{name}\"")))?;
    let mut definition = Definition::from_schema(name, &array.schema)?;
    let schema = array.array.schema();
    let attributes = schema.attributes();
    for (column, attribute) in definition
        .columns
        .iter_mut()
        .skip(array.rank())
        .zip(attributes)
    {
        let fill = attribute.fill_value();
        if let Some(time) = schema.metadata().time(attribute.name()) {
            let moment = time.of_scalar(fill).and_then(timestamp_us_to_datetime);
            column.default = moment.map(|of| format!("timestamp '{of}'"));
            continue;
        }
        column.default = (!fill.is_null()).then(|| match fill {
            // Infinity and NaN are texts in SQL.
            array::Scalar::Float(value) if !value.is_finite() => format!("'{value}'"),
            other => other.to_string(),
        });
    }
    Ok((array, definition))
}

/// `insert into array [(columns)] values ... | query`: cells by their coordinates, over those that are there.
async fn insert(
    scope: &mut Scope<'_>,
    name: &str,
    mut statement: Insert,
    started: Instant,
) -> Result<Answer> {
    if statement.on.is_some() {
        return Err(Error::unsupported(
            "`on conflict` is not supported for arrays: an `insert` writes over the cells that are there",
        ));
    }
    let (writing, mut context) = scope.write("INSERT", &[name], started).await?;
    let (array, definition) = described(&context, name)?;
    let named = default::fill_insert(&context, &mut statement, &definition).await?;
    let dimensions = array.array.schema().dimensions();
    if let Some(missing) = dimensions
        .iter()
        .find(|of| !named.iter().any(|n| n == of.name()))
    {
        return Err(Error::Constraint {
            code: "23000",
            message: format!(
                "a cell of array \"{name}\" has a coordinate along each dimension, and the `insert` has no column \"{}\"",
                missing.name()
            ),
        });
    }
    statement.table = TableObject::TableName(ObjectName::from(vec![Ident::with_quote(
        '"',
        exact(&format!("{name}{INTO}")),
    )]));
    let in_values = |e: Error| dml::null_in_values(e, &named, name);
    let plan = context.plan(Sql::Insert(statement), None).await;
    let rows = gathered(&mut context, dml::input(plan.map_err(in_values)?, true)?)
        .await
        .map_err(in_values)?;
    let mut writing = writing;
    let mut writer = Writer::of(writing.tx).threads(context.instance.workers().width());
    let all: Vec<usize> = (0..array.array.schema().attributes().len()).collect();
    let mut cells = Cells::new(&array, rows.batches)?;
    cells.grow(&mut writer)?;
    let count = cells.write(&mut writer, &all).await?;
    writing.tx = writer.into_transaction();
    scope.keep_arrays(writing, &[name]).await?;
    Ok(Answer::changed(Some(count), &context.clock))
}

/// `update array set attribute = expression, ... [where ...]`.
async fn update(
    scope: &mut Scope<'_>,
    name: &str,
    mut statement: Update,
    started: Instant,
) -> Result<Answer> {
    let (mut writing, mut context) = scope.write("UPDATE", &[name], started).await?;
    let (array, definition) = described(&context, name)?;
    assigned::fold_targets(&mut statement)?;
    let schema = array.array.schema();
    let mut set = Vec::new();
    for assignment in &statement.assignments {
        let column = assignment.target.to_string();
        let column = column.trim_matches('"');
        if schema.dimensions().iter().any(|of| of.name() == column) {
            return Err(Error::unsupported(format!(
                "\"{column}\" is a dimension, and a cell stays where it is: insert it elsewhere, and delete it here"
            )));
        }
        set.extend(
            schema
                .attributes()
                .iter()
                .position(|of| of.name() == column),
        );
    }
    default::fill_update(&mut statement, &definition)?;
    let plan = context.plan(Sql::Update(statement), Some(name)).await?;
    let rows = gathered(&mut context, dml::input(plan, true)?).await?;
    let mut writer = Writer::of(writing.tx).threads(context.instance.workers().width());
    let count = Cells::new(&array, rows.batches)?
        .write(&mut writer, &set)
        .await?;
    writing.tx = writer.into_transaction();
    scope.keep_arrays(writing, &[name]).await?;
    Ok(Answer::changed(Some(count), &context.clock))
}

/// `delete from array [where ...]`: of a sparse array, whose cells become absent.
async fn delete(
    scope: &mut Scope<'_>,
    name: &str,
    statement: Delete,
    started: Instant,
) -> Result<Answer> {
    let (mut writing, mut context) = scope.write("DELETE", &[name], started).await?;
    let (array, _) = described(&context, name)?;
    if array.array.schema().layout() == array::Layout::Dense {
        return Err(Error::unsupported(format!(
            "array \"{name}\" is dense, and has each of its cells: `update` sets them, and only cells of a `sparse` array can be deleted"
        )));
    }
    let plan = context.plan(Sql::Delete(statement), Some(name)).await?;
    let rows = gathered(&mut context, dml::input(plan, true)?).await?;
    let mut writer = Writer::of(writing.tx).threads(context.instance.workers().width());
    let count = Cells::new(&array, rows.batches)?.erase(&mut writer).await?;
    writing.tx = writer.into_transaction();
    scope.keep_arrays(writing, &[name]).await?;
    Ok(Answer::changed(Some(count), &context.clock))
}

/// The rows of a query, which are in memory together, so that each chunk is written once.
struct Gathered {
    batches: Vec<arrow::array::RecordBatch>,
    _held: Held,
}

/// Bytes in memory for each byte of rows: as they came, in one piece, and as the cells of a chunk.
const COPIES: u64 = 3;

async fn gathered(
    context: &mut StatementContext,
    plan: datafusion_expr::LogicalPlan,
) -> Result<Gathered> {
    let mut held = Held::of(&context.instance.budget);
    let mut rows = query::rows_to_write(context, &plan).await?;
    let mut batches = Vec::new();
    while let Some(batch) = rows.try_next().await? {
        held.more(footprint(&batch).saturating_mul(COPIES))
            .map_err(|e| Error::Memory {
                message: format!(
                    "the cells that a statement writes are in memory together: {e}; write them by several statements, or import a file"
                ),
            })?;
        batches.push(batch);
    }
    Ok(Gathered {
        batches,
        _held: held,
    })
}
