//! The rows that a statement writes, kept for its `returning`.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::datatypes::SchemaRef;
use datafusion_expr::TableSource;
use sqlparser::ast::{Query, Statement as Sql};
use store::Transaction;
use syntax::key_query::columns_of_rows;
use table::Definition;

use crate::error::{Error, Result};
use crate::resources::budget::{Held, footprint};
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::{query, system_columns, visible};
use crate::scan::rows::RowTable;
use crate::scan::written_rows::{WrittenRows, with_places};
use crate::statements::beside::Beside;
use crate::statements::lookup::chosen;
use crate::statements::scope::Scope;
use crate::statements::write::Writing;

/// The rows of a statement, if it has a `returning`.
pub(crate) struct Written {
    query: Option<Box<Query>>,
    definition: Definition,
    /// Whether rows are kept with their numbers.
    has_places: bool,
    batches: Vec<RecordBatch>,
    held: Held,
}

impl Written {
    /// Rows of the table of `definition` for `query`.
    pub(crate) fn new(
        context: &StatementContext,
        definition: &Definition,
        query: Option<Box<Query>>,
    ) -> Written {
        Written {
            has_places: query
                .as_deref()
                .is_some_and(|query| system_columns::reads_written_places(query, definition)),
            query,
            definition: definition.clone(),
            batches: Vec::new(),
            held: Held::of(context.budget()),
        }
    }

    /// The same of rows that are deleted, which come with their numbers.
    pub(crate) fn of_deleted(mut self) -> Written {
        let query = self.query.as_deref();
        self.has_places = query.is_some_and(system_columns::reads_places);
        self
    }

    /// Keeps rows that are deleted, if they are wanted; `numbered` are these with their numbers as the last column.
    ///
    /// # Errors
    /// As [`Written::take`].
    pub(crate) fn take_deleted(&mut self, rows: RecordBatch, numbered: &RecordBatch) -> Result<()> {
        self.take(rows)?;
        if self.has_places
            && let Some(kept) = self.batches.pop()
        {
            let numbers = numbered.columns().last().cloned();
            let numbers = numbers.ok_or_else(|| misplaced(&self.definition))?;
            self.batches.push(with_numbers(&kept, numbers)?);
        }
        Ok(())
    }

    /// Numbers the rows that were kept, if a `returning` asks where they are: to be called when they have been appended to the
    /// table, `count` of them, and before anything else changes it.
    ///
    /// # Errors
    /// Those of the table; [`Error::Defect`] if it has other rows than those that were kept.
    pub(crate) fn place(&mut self, tx: &Transaction, count: u64) -> Result<()> {
        if !self.has_places {
            return Ok(());
        }
        let ids = table::last_rows(tx, &self.definition.name, count)?;
        let kept = self.batches.iter().map(RecordBatch::num_rows);
        if kept.sum::<usize>() != ids.len() {
            return Err(misplaced(&self.definition));
        }
        let mut ids = ids.into_iter();
        for batch in &mut self.batches {
            let own = ids.by_ref().take(batch.num_rows());
            let numbers = UInt64Array::from_iter_values(own);
            *batch = with_numbers(batch, Arc::new(numbers))?;
        }
        Ok(())
    }

    /// Whether the statement has a `returning`.
    pub(crate) fn is_wanted(&self) -> bool {
        self.query.is_some()
    }

    /// Keeps rows if they are wanted, and hands them on.
    ///
    /// # Errors
    /// If they do not fit the table; [`Error::Memory`].
    pub(crate) fn take(&mut self, rows: RecordBatch) -> Result<RecordBatch> {
        if self.is_wanted() {
            let kept = table::normalise(&rows, &self.definition)?;
            self.held
                .more(footprint(&kept))
                .map_err(|e| Error::Memory {
                    message: format!("`returning` keeps the rows of the statement in memory: {e}"),
                })?;
            self.batches.push(kept);
        }
        Ok(rows)
    }

    /// The same for rows of several tables.
    ///
    /// # Errors
    /// As [`Written::finish`].
    pub(super) async fn finish_beside(
        self,
        scope: &mut Scope<'_>,
        mut context: StatementContext,
        writing: Writing,
        (count, beside): (u64, Beside),
    ) -> Result<Answer> {
        let Some(mut query) = self.query else {
            scope.keep(writing).await?;
            return Ok(Answer::changed(Some(count), &context.clock));
        };
        let rows = (self.batches, self.has_places);
        beside.give(&mut context, &mut query, rows)?;
        let mut answer = query::run(context, Sql::Query(query)).await?;
        scope.keep(writing).await?;
        answer.changed = Some(count);
        Ok(answer)
    }

    /// Keeps what the statement has written, and answers with its `returning`, or with the number of rows alone.
    ///
    /// # Errors
    /// Those of the query, and of the store.
    pub(crate) async fn finish(
        self,
        scope: &mut Scope<'_>,
        mut context: StatementContext,
        writing: Writing,
        count: u64,
    ) -> Result<Answer> {
        let Some(query) = &self.query else {
            scope.keep(writing).await?;
            return Ok(Answer::changed(Some(count), &context.clock));
        };
        let columns = if scope.always_plans() {
            None
        } else {
            columns(query, &self.definition)?
        };
        if let Some(columns) = columns {
            let mut answer = self.answer(&context, &columns)?;
            scope.keep(writing).await?;
            answer.changed = Some(count);
            return Ok(answer);
        }
        let query = query.clone();
        context.written = Some(rows(&self.definition, self.has_places, self.batches)?);
        let mut answer = query::run(context, Sql::Query(query)).await?;
        scope.keep(writing).await?;
        answer.changed = Some(count);
        Ok(answer)
    }

    /// The rows of these columns, as a plan of the `returning` would give them.
    fn answer(
        self,
        context: &StatementContext,
        (positions, schema): &(Vec<usize>, SchemaRef),
    ) -> Result<Answer> {
        let seen = visible::schema(schema);
        let filled = self.batches.iter().filter(|batch| batch.num_rows() > 0);
        let batches = filled.map(|batch| {
            let columns = positions.iter().map(|at| Arc::clone(batch.column(*at)));
            let own = RecordBatch::try_new(Arc::clone(schema), columns.collect())?;
            if Arc::ptr_eq(&seen, schema) {
                Ok(own)
            } else {
                visible::batch(&own, &seen)
            }
        });
        let batches = batches.collect::<Result<Vec<_>>>()?;
        let answer = Answer::rows_of(seen, batches, &context.clock);
        // Whoever is no client of a server takes them at once.
        let held = context.is_served().then_some(self.held);
        Ok(answer.holding(held))
    }
}

/// Rows with their numbers as the last column.
fn with_numbers(rows: &RecordBatch, numbers: ArrayRef) -> Result<RecordBatch> {
    let mut columns = rows.columns().to_vec();
    columns.push(numbers);
    let schema = with_places(&rows.schema());
    Ok(RecordBatch::try_new(schema, columns)?)
}

fn misplaced(definition: &Definition) -> Error {
    Error::Defect {
        message: format!(
            "the rows that were written to {} are not there",
            definition.name
        ),
    }
}

/// The rows of a table that a statement has written, for its `returning`: with their numbers if these are there.
///
/// # Errors
/// If they are of other columns.
pub(super) fn rows(
    definition: &Definition,
    has_places: bool,
    batches: Vec<RecordBatch>,
) -> Result<Arc<dyn TableSource>> {
    let mut schema = definition.schema();
    if has_places {
        schema = with_places(&schema);
    }
    Ok(Arc::new(WrittenRows {
        table: definition.name.clone(),
        has_places,
        rows: RowTable::in_memory(schema, batches),
    }))
}

/// The positions of the columns of a table of which a `returning` is nothing but columns, and its schema; none of another, which
/// is planned.
///
/// # Errors
/// Those of Arrow.
pub(super) fn columns(
    query: &Query,
    definition: &Definition,
) -> Result<Option<(Vec<usize>, SchemaRef)>> {
    columns_of_rows(query, definition)
        .map(|columns| chosen(definition.schema(), columns))
        .transpose()
}
