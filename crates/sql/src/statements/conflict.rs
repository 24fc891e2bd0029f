//! `insert ... on conflict (columns) do nothing | do update set ... where ...`.
//!
//! The rows that are to be inserted are searched in the index of the key, as many at once as there is memory for. Those that no row has the key of
//! are inserted. For the others, `do update` computes new rows from the old ones and from those that were to be inserted
//! (`excluded`), which replace the old ones as those of an `update` do.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use arrow::datatypes::{Field, Schema};
use futures::{Stream, StreamExt};
use memory::Budget;
use roaring::RoaringTreemap;
use sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, DoUpdate, Expr, Ident, ObjectNamePart,
    OnConflict, OnConflictAction, OnInsert, Value,
};
use store::Transaction;
use syntax::grammar;
use syntax::names::{base, column_name};
use table::{Definition, Key, Keys, Table};
use tokio::sync::Mutex;

use crate::error::{Error, Result};
use crate::messages::nearest::unknown_column;
use crate::resources::budget::Held;
use crate::run::checks::Checks;
use crate::run::context::StatementContext;
use crate::run::generated::GeneratedColumns;
use crate::run::row_values::RowValues;
use crate::statements::default;
use crate::statements::larger::larger;
use crate::statements::references::Parents;
use crate::statements::remove::remove_rows;
use crate::statements::write::Writing;

/// What an `insert` does with rows whose keys are there already.
pub(crate) struct Conflict {
    table: Arc<Table>,
    /// The keys that are looked at, and those of the statement's own rows.
    keys: Vec<(Key, HashSet<Box<[u8]>>)>,
    update: Option<Update>,
    checks: Checks,
    held: Held,
    budget: Arc<Budget>,
    /// Of keys that are not in `held` yet.
    bytes: u64,
    /// The rows that are replaced.
    replaced: RoaringTreemap,
    parents: Parents,
}

/// What `do update` does.
struct Update {
    /// The columns that are assigned.
    columns: Vec<usize>,
    /// Their values, and behind them the condition, if there is one.
    values: RowValues,
    has_condition: bool,
    generated: GeneratedColumns,
}

impl Conflict {
    /// For an `insert` into `table`.
    ///
    /// # Errors
    /// If no key that holds is meant, or the assignments do not go with the table.
    pub(crate) async fn new(
        context: &mut StatementContext,
        table: &Arc<Table>,
        (checks, generated): (&Checks, &GeneratedColumns),
        on: OnInsert,
    ) -> Result<Conflict> {
        let OnInsert::OnConflict(OnConflict {
            conflict_target: target,
            action,
        }) = on
        else {
            return Err(Error::unsupported(
                "`on duplicate key update` is not supported: use `on conflict (columns) do update`",
            ));
        };
        let definition = table.definition();
        let keys = keys(definition, target.as_ref())?;
        let update = match action {
            OnConflictAction::DoNothing => None,
            OnConflictAction::DoUpdate(_) if target.is_none() => {
                return Err(Error::coded(
                    "42601",
                    "ON CONFLICT DO UPDATE requires inference specification or constraint name: write `on conflict (columns) do update`",
                ));
            }
            OnConflictAction::DoUpdate(update) => {
                Some(Update::new(context, definition, generated, update).await?)
            }
        };
        Ok(Conflict {
            table: Arc::clone(table),
            keys: keys.into_iter().map(|key| (key, HashSet::new())).collect(),
            update,
            checks: checks.clone(),
            held: Held::of(&context.instance.budget),
            budget: Arc::clone(context.budget()),
            bytes: 0,
            replaced: RoaringTreemap::new(),
            parents: Parents::new(&context.tables, &definition.name),
        })
    }

    /// Writes `rows` to the table as `written` hands them on, and says how many were inserted or took the place of others.
    ///
    /// # Errors
    /// Those of the rows, of [`Writing::replace`], and of [`take`](Conflict::take).
    pub(crate) async fn append(
        self,
        writing: Writing,
        rows: impl Stream<Item = Result<RecordBatch>> + Send,
        mut written: impl FnMut(RecordBatch) -> Result<RecordBatch> + Send,
        width: usize,
    ) -> Result<(Writing, u64, Parents)> {
        let table = Arc::clone(&self.table);
        let definition = table.definition();
        let as_stored = |batch: Result<RecordBatch>| -> Result<RecordBatch> {
            Ok(table::normalise(&batch?, definition)?)
        };
        let rows = larger(rows.map(as_stored), Arc::clone(&self.budget));
        let own = Mutex::new(self);
        let taken = rows.then(|batch| async { own.lock().await.take(&batch?).await });
        let taken = Box::pin(taken.map(|batch| written(batch?)));
        let remove = |tx: &mut Transaction| {
            let own = own.try_lock().map_err(|_| Error::Defect {
                message: "rows are still being inserted".into(),
            })?;
            remove_rows(own.replaced.iter(), tx, &definition.name).map(drop)
        };
        // The checks were made before it was asked which rows are there.
        let none = Checks::default();
        let done = writing.replace(definition, &none, taken, width, remove);
        let (writing, count) = done.await?;
        Ok((writing, count, own.into_inner().parents))
    }

    /// The rows that are written for `rows`, which are as the table has them: those that are inserted, and those
    /// that take the place of others.
    ///
    /// # Errors
    /// For a row that a check refuses; for one that would be changed twice; those of the expressions, and of reading.
    async fn take(&mut self, rows: &RecordBatch) -> Result<RecordBatch> {
        let rows = self.checks.test(rows.clone())?;
        let mut found = Vec::with_capacity(self.keys.len());
        for (key, _) in &self.keys {
            let columns = key.columns.iter().map(|c| rows.column(*c).clone());
            let columns: Vec<ArrayRef> = columns.collect();
            found.push((self.table.find(key, &columns).await?, Keys::of(&columns)?));
        }
        let (mut insert, mut others) = (Vec::with_capacity(rows.num_rows()), Vec::new());
        for row in 0..rows.num_rows() {
            let old = found.iter().find_map(|(old, _)| old[row]);
            insert.push(self.is_new(row, &found, old)?);
            others.extend(old.map(|old| (row as u32, old)));
        }
        self.hold()?;
        let inserted = filter_record_batch(&rows, &BooleanArray::from(insert))?;
        let Some(update) = &self.update else {
            return Ok(inserted);
        };
        if others.is_empty() {
            return Ok(inserted);
        }
        let (places, ids): (Vec<u32>, Vec<u64>) = others.into_iter().unzip();
        let excluded = take_record_batch(&rows, &UInt32Array::from(places))?;
        let (updated, ids) = update.rows(&self.table, &excluded, ids).await?;
        let updated = self.checks.test(updated)?;
        let definition = self.table.definition();
        self.parents
            .replace(definition, ids.iter().copied(), &updated)?;
        self.replaced.extend(ids);
        Ok(concat_batches(&inserted.schema(), [&inserted, &updated])?)
    }

    /// Whether a row is inserted: neither `old` nor a row of the statement itself has one of its keys.
    fn is_new(
        &mut self,
        row: usize,
        found: &[(Vec<Option<u64>>, Keys)],
        old: Option<u64>,
    ) -> Result<bool> {
        let own = found.iter().map(|(_, keys)| keys.get(row));
        let mut own = own.zip(&mut self.keys);
        // Of a row that is left out no key counts; one that is changed must not be changed again.
        if self.update.is_none() && old.is_some() {
            return Ok(false);
        }
        if own.any(|(key, (_, seen))| key.is_some_and(|key| seen.contains(key))) {
            if self.update.is_some() {
                return Err(Error::coded(
                    "21000",
                    "ON CONFLICT DO UPDATE command cannot affect row a second time: Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
                ));
            }
            return Ok(false);
        }
        for ((_, keys), (_, seen)) in found.iter().zip(&mut self.keys) {
            if let Some(key) = keys.get(row) {
                self.bytes += 48 + key.len() as u64;
                seen.insert(key.into());
            }
        }
        Ok(old.is_none())
    }

    /// Counts the keys that are kept.
    fn hold(&mut self) -> Result<()> {
        let more = std::mem::take(&mut self.bytes);
        self.held.more(more).map_err(|e| Error::Memory {
            message: format!("`on conflict` keeps the keys of the statement in memory: {e}"),
        })
    }
}

/// The keys that a target means: all that hold if there is none.
fn keys(definition: &Definition, target: Option<&ConflictTarget>) -> Result<Vec<Key>> {
    let found = match target {
        None => return Ok(definition.keys.clone()),
        Some(ConflictTarget::OnConstraint(name)) => {
            let name = name.0.last().and_then(ObjectNamePart::as_ident);
            let name = name.map(column_name).unwrap_or_default();
            let found = definition.keys.iter().find(|key| key.name == name);
            if found.is_none() {
                return Err(Error::coded(
                    "42704",
                    format!(
                        "constraint \"{name}\" for table \"{}\" does not exist",
                        definition.name
                    ),
                ));
            }
            found
        }
        Some(ConflictTarget::Columns(idents)) => {
            let mut columns = Vec::new();
            for ident in idents {
                columns.push(position(definition, ident)?);
            }
            let same = |key: &&Key| {
                columns.iter().all(|column| key.columns.contains(column))
                    && key.columns.iter().all(|column| columns.contains(column))
            };
            definition.keys.iter().find(same)
        }
    };
    match found {
        Some(key) => Ok(vec![key.clone()]),
        None => Err(Error::coded(
            "42P10",
            format!(
                "there is no unique or exclusion constraint matching the ON CONFLICT specification: table \"{}\" has no key of these columns that holds",
                definition.name
            ),
        )),
    }
}

fn position(definition: &Definition, ident: &Ident) -> Result<usize> {
    let name = column_name(ident);
    let found = definition.columns.iter().position(|c| c.name == name);
    found.ok_or_else(|| unknown_column(&name, definition))
}

impl Update {
    async fn new(
        context: &mut StatementContext,
        definition: &Definition,
        generated: &GeneratedColumns,
        update: DoUpdate,
    ) -> Result<Update> {
        let definition = &*context.with_domain_defaults(definition);
        let (mut columns, mut items, mut types) = (Vec::new(), Vec::new(), Vec::new());
        for Assignment { target, mut value } in update.assignments {
            let AssignmentTarget::ColumnName(name) = &target else {
                return Err(Error::unsupported(
                    "`set (a, b) = ...` is not supported: assign each column by itself",
                ));
            };
            let Some(ident) = name.0.last().and_then(ObjectNamePart::as_ident) else {
                return Err(Error::coded("42703", format!("{name} is no column")));
            };
            grammar::assigned(name, Some(base(&definition.name)))?;
            let column = position(definition, ident)?;
            if columns.contains(&column) {
                return Err(Error::coded(
                    "42601",
                    format!("column \"{}\" is assigned twice", ident.value),
                ));
            }
            default::assign(&mut value, definition, &column_name(ident))?;
            columns.push(column);
            types.push(definition.columns[column].data_type.clone());
            items.push(value);
        }
        let has_condition = update.selection.is_some();
        items.extend(update.selection);
        if items.is_empty() {
            items.push(Expr::Value(Value::Boolean(true).with_empty_span()));
        }
        let name = Ident::with_quote('"', &definition.name);
        let schema = definition.schema();
        let excluded = Ident::new("excluded");
        let other = Some((&excluded, &schema));
        let values = RowValues::new(context, (&name, &schema), other, items, &types).await?;
        Ok(Update {
            columns,
            values,
            has_condition,
            generated: generated.clone(),
        })
    }

    /// The new rows in the place of those of `ids`, and the ids of those that are replaced; `excluded` are the rows that
    /// were to be inserted, in the same order.
    async fn rows(
        &self,
        table: &Arc<Table>,
        excluded: &RecordBatch,
        ids: Vec<u64>,
    ) -> Result<(RecordBatch, Vec<u64>)> {
        let all: Vec<usize> = (0..excluded.num_columns()).collect();
        let old = table.fetch(&all, &ids).await?;
        let both = beside(&old, excluded)?;
        let mut values = self.values.evaluate(&both)?;
        let mut columns = old.columns().to_vec();
        let condition = if self.has_condition {
            values.pop()
        } else {
            None
        };
        for (column, value) in self.columns.iter().zip(values) {
            columns[*column] = value;
        }
        let fields = table.schema();
        // A NULL that must not be is refused when the rows are written, with its own words.
        let fields = fields
            .fields()
            .iter()
            .map(|f| f.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        let new = self
            .generated
            .fill(RecordBatch::try_new(schema, columns)?)?;
        let new = table::normalise(&new, table.definition())?;
        let Some(condition) = condition else {
            return Ok((new, ids));
        };
        let condition = condition
            .as_boolean_opt()
            .ok_or_else(|| Error::coded("42804", "argument of WHERE must be type boolean"))?;
        let holds = |row: usize| condition.is_valid(row) && condition.value(row);
        let mask: BooleanArray = (0..new.num_rows()).map(|row| Some(holds(row))).collect();
        let kept = ids.iter().enumerate().filter(|(row, _)| holds(*row));
        let kept = kept.map(|(_, id)| *id).collect();
        Ok((filter_record_batch(&new, &mask)?, kept))
    }
}

/// The columns of both.
fn beside(left: &RecordBatch, right: &RecordBatch) -> Result<RecordBatch> {
    let (schema, other) = (left.schema(), right.schema());
    let fields: Vec<Arc<Field>> = schema
        .fields()
        .iter()
        .chain(other.fields())
        .cloned()
        .collect();
    let columns = left
        .columns()
        .iter()
        .chain(right.columns())
        .cloned()
        .collect();
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}
