//! `merge`: each row of a table is matched with the rows of a source, and the first clause that applies inserts, updates or
//! deletes it.
//!
//! The pairs are the rows of a join. Of each batch the clauses choose in turn; the expressions of a clause see the rows
//! that it is for. New rows are appended as they come, and those that they replace or that go are deleted after the last,
//! as by an `update`.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array, UInt64Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion_expr::LogicalPlan;
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use roaring::RoaringTreemap;
use sqlparser::ast::{Expr, Ident, Statement as Sql};
use store::Transaction;
use syntax::merge::{Action, Clause, Merge, When};
use syntax::overriding::Overriding;
use table::{Definition, Privileges, Table};

use crate::error::{Error, Result};
use crate::messages::nearest::unknown_column;
use crate::run::answer::Answer;
use crate::run::checks::Checks;
use crate::run::context::StatementContext;
use crate::run::generated::GeneratedColumns;
use crate::run::row_values::{RowValues, Rows};
use crate::run::{query, visible};
use crate::scan::provider::Provider;
use crate::statements::merge_returning::ReturnedRows;
use crate::statements::references::{self, Children, Parents};
use crate::statements::remove::remove_rows;
use crate::statements::scope::Scope;
use crate::statements::{compact, default};

/// Runs a `merge`.
pub(crate) async fn merge(
    scope: &mut Scope<'_>,
    statement: Merge,
    started: Instant,
) -> Result<Answer> {
    let name = statement.target.clone();
    let (writing, mut context) = scope.write("MERGE", &[&name], started).await?;
    let table = context.table(&name)?;
    let definition = table.definition();
    context.may(&name, needs(&statement))?;
    scope.claim(&references::reached(&context.tables, &name))?;
    let (plan, source) = planned(&mut context, &table, &statement).await?;
    let returning = match &statement.returning {
        Some(items) => {
            Some(ReturnedRows::new(&mut context, definition, &statement, items, &source).await?)
        }
        None => None,
    };
    let pairs = Pairs::new(&mut context, &table, statement, &source).await?;
    let pairs = Mutex::new(Pairs { returning, ..pairs });
    let checks = Checks::new(&mut context, definition).await?;
    let mut children = Children::new(definition);
    let rows = query::rows_to_write(&mut context, &plan).await?;
    let rows = rows.map_err(Error::from).map(|batch| {
        let rows = pairs.lock().take(&batch?)?;
        children.take(&rows)?;
        Ok(rows)
    });
    let remove = |tx: &mut Transaction| remove_rows(pairs.lock().gone.iter(), tx, &name).map(drop);
    let width = scope.instance.workers().width();
    let (mut writing, _) = writing
        .replace(definition, &checks, rows, width, remove)
        .await?;
    let Pairs {
        count,
        replaced,
        deleted,
        returning,
        ..
    } = pairs.into_inner();
    let none = Children::new(definition);
    writing = references::follow(&mut context, writing, &table, &children, replaced).await?;
    writing = references::follow(&mut context, writing, &table, &none, deleted).await?;
    writing = compact::after(scope, &context, writing, &table, count).await?;
    scope.keep(writing).await?;
    let answer = Answer::changed(Some(count), &context.clock);
    Ok(match returning {
        Some(returned) => {
            let schema = visible::schema(&returned.schema);
            let batches = returned.batches.iter();
            let batches = batches.map(|batch| visible::batch(batch, &schema));
            Answer {
                batches: batches.collect::<Result<_>>()?,
                schema,
                ..answer
            }
        }
        None => answer,
    })
}

/// The plan of the pairs, and the columns of the source with what is computed beside them.
async fn planned(
    context: &mut StatementContext,
    table: &Arc<Table>,
    statement: &Merge,
) -> Result<(LogicalPlan, SchemaRef)> {
    context.target = Some(Arc::new(Provider::new(Arc::clone(table), true)));
    let plan = context
        .plan(Sql::Query(statement.pairs.clone()), None)
        .await;
    context.target = None;
    let plan = plan?;
    let fields = plan.schema().fields().iter();
    let fields = fields.skip(table.definition().columns.len() + 1);
    let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
    let source = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
    Ok((plan, source))
}

/// The plan by which a `merge` finds its pairs.
///
/// # Errors
/// If whose statement it is may not do what it says; those of planning it.
pub(crate) async fn pairs(
    context: &mut StatementContext,
    statement: &Merge,
) -> Result<LogicalPlan> {
    context.may(&statement.target, needs(statement))?;
    let table = context.table(&statement.target)?;
    let (plan, _) = planned(context, &table, statement).await?;
    Ok(plan)
}

/// The columns that a `merge` returns; none if it returns no rows.
///
/// # Errors
/// Those of planning it.
pub(crate) async fn columns(
    context: &mut StatementContext,
    statement: &Merge,
) -> Result<Option<SchemaRef>> {
    let Some(items) = &statement.returning else {
        return Ok(None);
    };
    let table = context.table(&context.own(&statement.target))?;
    let (_, source) = planned(context, &table, statement).await?;
    let definition = table.definition();
    let returned = ReturnedRows::new(context, definition, statement, items, &source).await?;
    Ok(Some(visible::schema(&returned.schema)))
}

/// What a `merge` does with its target: it reads it, and what its clauses say.
fn needs(statement: &Merge) -> Privileges {
    let mut all = Privileges::SELECT;
    for clause in &statement.clauses {
        all = all.and(match clause.action {
            Action::Nothing => Privileges::default(),
            Action::Delete => Privileges::DELETE,
            Action::Update(_) => Privileges::UPDATE,
            Action::Insert { .. } => Privileges::INSERT,
        });
    }
    all
}

/// The pairs of rows, and what has become of those that came.
struct Pairs {
    definition: Definition,
    clauses: Vec<Compiled>,
    /// Whether some rows may have no row of the source, which the last column before those of subqueries tells then.
    alone: bool,
    /// How many subqueries of clauses are computed with the pairs.
    subqueries: usize,
    returning: Option<ReturnedRows>,
    /// The rows of the table that are replaced or deleted.
    gone: RoaringTreemap,
    replaced: Parents,
    deleted: Parents,
    count: u64,
}

/// A clause, ready to run.
struct Compiled {
    when: When,
    condition: Option<RowValues>,
    does: Does,
}

enum Does {
    Nothing,
    Delete,
    Update {
        columns: Vec<usize>,
        values: RowValues,
        generated: GeneratedColumns,
    },
    Insert {
        values: RowValues,
        generated: GeneratedColumns,
    },
}

impl Pairs {
    async fn new(
        context: &mut StatementContext,
        table: &Arc<Table>,
        statement: Merge,
        source: &SchemaRef,
    ) -> Result<Pairs> {
        let definition = table.definition();
        let generated = GeneratedColumns::new(context, definition).await?;
        let target = definition.schema();
        let names = (&statement.name, &statement.source);
        let subqueries = statement.subqueries;
        let own = source.fields().len() - subqueries;
        let computed: SchemaRef = Arc::new(Schema::new(source.fields()[own..].to_vec()));
        let apart = Ident::with_quote('"', "__subqueries");
        let mut clauses = Vec::new();
        for clause in statement.clauses {
            let seen = match clause.when {
                When::Matched => ((names.0, &target), Some((names.1, source))),
                When::NotMatched => ((names.1, source), None),
                When::NotMatchedBySource if subqueries > 0 => {
                    ((names.0, &target), Some((&apart, &computed)))
                }
                When::NotMatchedBySource => ((names.0, &target), None),
            };
            clauses.push(compiled(context, definition, &generated, seen, clause).await?);
        }
        let parents = || Parents::new(&context.tables, &definition.name);
        Ok(Pairs {
            alone: clauses.iter().any(|c| c.when == When::NotMatchedBySource),
            subqueries,
            returning: None,
            definition: definition.clone(),
            clauses,
            gone: RoaringTreemap::new(),
            replaced: parents(),
            deleted: parents(),
            count: 0,
        })
    }

    /// The rows that are written for a batch of pairs.
    fn take(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let width = self.definition.columns.len();
        let ids = batch.column(width).as_primitive_opt::<UInt64Type>();
        let ids = ids.cloned().ok_or_else(|| Error::Defect {
            message: "row ids are missing from the pairs".into(),
        })?;
        let last = (batch.num_columns() - self.subqueries).checked_sub(1);
        let present = last.and_then(|last| batch.columns().get(last));
        let present = present.filter(|_| self.alone);
        let present = present.and_then(|own| own.as_boolean_opt());
        let mut written = vec![RecordBatch::new_empty(self.definition.schema())];
        for when in [When::Matched, When::NotMatchedBySource, When::NotMatched] {
            let is_one = |row: &u32| {
                let row = *row as usize;
                let source = present.is_none_or(|present| present.is_valid(row));
                match when {
                    When::Matched => ids.is_valid(row) && source,
                    When::NotMatched => ids.is_null(row),
                    When::NotMatchedBySource => ids.is_valid(row) && !source,
                }
            };
            let mut left: Vec<u32> = (0..batch.num_rows() as u32).filter(is_one).collect();
            for at in 0..self.clauses.len() {
                if left.is_empty() || self.clauses[at].when != when {
                    continue;
                }
                let rows = self.seen(batch, when, &left)?;
                let chosen = chosen(self.clauses[at].condition.as_ref(), &rows)?;
                let taken = picked(&left, &chosen, true);
                left = picked(&left, &chosen, false);
                if !taken.is_empty() {
                    let rows = self.seen(batch, when, &taken)?;
                    let new = self.done(at, &rows, &taken, &ids)?;
                    self.returned(at, &rows, new.as_ref())?;
                    written.extend(new);
                }
            }
        }
        Ok(concat_batches(&written[0].schema(), &written)?)
    }

    /// The columns that clauses for these rows see, at `places`.
    fn seen(&self, batch: &RecordBatch, when: When, places: &[u32]) -> Result<RecordBatch> {
        let (width, all) = (self.definition.columns.len(), batch.num_columns());
        let columns: Vec<usize> = match when {
            When::Matched => (0..all).filter(|at| *at != width).collect(),
            When::NotMatched => (width + 1..all).collect(),
            When::NotMatchedBySource => (0..width).chain(all - self.subqueries..all).collect(),
        };
        let places = UInt32Array::from(places.to_vec());
        Ok(take_record_batch(&batch.project(&columns)?, &places)?)
    }

    /// Keeps what a clause has done with these rows for `returning`. `new` are those that it has written.
    fn returned(&mut self, at: usize, rows: &RecordBatch, new: Option<&RecordBatch>) -> Result<()> {
        let width = self.definition.columns.len();
        let clause = &self.clauses[at];
        let action = match clause.does {
            Does::Nothing => return Ok(()),
            Does::Delete => "DELETE",
            Does::Update { .. } => "UPDATE",
            Does::Insert { .. } => "INSERT",
        };
        let Some(returning) = &mut self.returning else {
            return Ok(());
        };
        let old = || rows.columns()[..width].to_vec();
        let target = new.map_or_else(old, |new| new.columns().to_vec());
        let source = match clause.when {
            When::Matched => rows.columns()[width..].to_vec(),
            When::NotMatched => rows.columns().to_vec(),
            When::NotMatchedBySource => Vec::new(),
        };
        returning.take(target, source, action, rows.num_rows())
    }

    /// Does what a clause says with the rows that it has chosen. Returns those that are written.
    fn done(
        &mut self,
        at: usize,
        rows: &RecordBatch,
        places: &[u32],
        ids: &UInt64Array,
    ) -> Result<Option<RecordBatch>> {
        let ids = || places.iter().map(|row| ids.value(*row as usize));
        match &self.clauses[at].does {
            Does::Nothing => Ok(None),
            Does::Delete => {
                once(&mut self.gone, ids())?;
                self.deleted.delete(ids());
                self.count += places.len() as u64;
                Ok(None)
            }
            Does::Update {
                columns,
                values,
                generated,
            } => {
                once(&mut self.gone, ids())?;
                let mut new = rows.columns()[..self.definition.columns.len()].to_vec();
                for (column, value) in columns.iter().zip(values.evaluate(rows)?) {
                    new[*column] = value;
                }
                let new = complete(&self.definition, new, generated)?;
                self.replaced.replace(&self.definition, ids(), &new)?;
                self.count += places.len() as u64;
                Ok(Some(new))
            }
            Does::Insert { values, generated } => {
                self.count += places.len() as u64;
                complete(&self.definition, values.evaluate(rows)?, generated).map(Some)
            }
        }
    }
}

/// Rows of these columns with what is computed of them, as the table has them.
fn complete(
    definition: &Definition,
    columns: Vec<ArrayRef>,
    generated: &GeneratedColumns,
) -> Result<RecordBatch> {
    let fields = definition.columns.iter();
    let fields = fields.map(|own| Field::new(&own.name, own.data_type.clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let rows = generated.fill(RecordBatch::try_new(schema, columns)?)?;
    Ok(table::normalise(&rows, definition)?)
}

/// Counts rows of the table as gone.
fn once(gone: &mut RoaringTreemap, ids: impl Iterator<Item = u64>) -> Result<()> {
    for id in ids {
        if !gone.insert(id) {
            return Err(Error::coded(
                "21000",
                "MERGE command cannot affect row a second time: Ensure that not more than one source row matches any one target row.",
            ));
        }
    }
    Ok(())
}

/// Of which rows a condition is true.
fn chosen(condition: Option<&RowValues>, rows: &RecordBatch) -> Result<Vec<bool>> {
    let Some(condition) = condition else {
        return Ok(vec![true; rows.num_rows()]);
    };
    let values = condition.evaluate(rows)?;
    let values = values.first().and_then(|values| values.as_boolean_opt());
    let is_true = |row: usize| values.is_some_and(|own| own.is_valid(row) && own.value(row));
    Ok((0..rows.num_rows()).map(is_true).collect())
}

fn picked(places: &[u32], chosen: &[bool], wanted: bool) -> Vec<u32> {
    let both = places.iter().zip(chosen);
    let picked = both.filter(|(_, chosen)| **chosen == wanted);
    picked.map(|(place, _)| *place).collect()
}

/// A clause, whose expressions see the rows `seen`.
async fn compiled(
    context: &mut StatementContext,
    definition: &Definition,
    generated: &GeneratedColumns,
    seen: (Rows<'_>, Option<Rows<'_>>),
    clause: Clause,
) -> Result<Compiled> {
    let (rows, other) = seen;
    let definition = &*context.with_domain_defaults(definition);
    let condition = match clause.condition {
        None => None,
        Some(condition) => {
            let own = vec![condition];
            Some(RowValues::conditions(context, rows, other, own, "WHEN").await?)
        }
    };
    let does = match clause.action {
        Action::Nothing => Does::Nothing,
        Action::Delete => Does::Delete,
        Action::Update(assignments) => {
            let (mut columns, mut items, mut types) = (Vec::new(), Vec::new(), Vec::new());
            for (column, mut value) in assignments {
                let at = position(definition, &column)?;
                default::assign(&mut value, definition, &column)?;
                columns.push(at);
                items.push(value);
                types.push(definition.columns[at].data_type.clone());
            }
            Does::Update {
                columns,
                values: RowValues::new(context, rows, other, items, &types).await?,
                generated: generated.clone(),
            }
        }
        Action::Insert {
            columns,
            overriding,
            values,
        } => {
            let items = inserted(definition, columns, overriding, values)?;
            let types = definition.columns.iter().map(|own| own.data_type.clone());
            let types: Vec<DataType> = types.collect();
            Does::Insert {
                values: RowValues::new(context, rows, other, items, &types).await?,
                generated: generated.clone(),
            }
        }
    };
    Ok(Compiled {
        when: clause.when,
        condition,
        does,
    })
}

fn position(definition: &Definition, column: &str) -> Result<usize> {
    let mut columns = definition.columns.iter();
    let found = columns.position(|own| own.name == column);
    found.ok_or_else(|| unknown_column(column, definition))
}

/// The values of all columns of a new row.
fn inserted(
    definition: &Definition,
    columns: Vec<String>,
    overriding: Option<Overriding>,
    values: Option<Vec<Expr>>,
) -> Result<Vec<Expr>> {
    let given = values.unwrap_or_default();
    let mut names = columns;
    if names.is_empty() {
        let all = definition.columns.iter().take(given.len());
        names = all.map(|own| own.name.clone()).collect();
    }
    if given.len() > names.len() {
        return Err(syntax("INSERT has more expressions than target columns"));
    }
    if given.len() < names.len() && !given.is_empty() {
        return Err(syntax("INSERT has more target columns than expressions"));
    }
    let default = || Expr::Identifier(Ident::new("default"));
    let mut items = vec![default(); definition.columns.len()];
    let mut seen = vec![false; items.len()];
    for (name, value) in names.iter().zip(given) {
        let at = position(definition, name)?;
        if std::mem::replace(&mut seen[at], true) {
            return Err(Error::coded(
                "42701",
                format!("column \"{name}\" specified more than once"),
            ));
        }
        if default::is_brought(&definition.columns[at], overriding, &value)? {
            items[at] = value;
        }
    }
    for (own, item) in definition.columns.iter().zip(&mut items) {
        default::fill(item, definition, &own.name)?;
    }
    Ok(items)
}

fn syntax(message: &str) -> Error {
    Error::Syntax {
        message: message.into(),
        position: None,
    }
}
