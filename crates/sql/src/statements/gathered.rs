//! Rows that a transaction has taken and not written yet: those of [inserts of one row](RowInsert).
//!
//! To plan such an insert, and to write its row into the tail of its table, takes many times as long as to take the row. So in
//! a transaction of several statements it is looked at alone: that it has the types of its columns, passes the checks, and
//! that no row has its keys. It is written with those that follow it, before any other statement of the transaction
//! enters, before a savepoint and before the commit (`gathering`), and before a row that may refer to them. Who reads finds it there, and what is undone with it is
//! dropped with it.
//!
//! A row that would have to be converted, or that is refused, is left to the insert itself: it gives the error. Where it has
//! numbers of sequences already it is taken, and written at once.

use std::sync::Arc;

use arrow::array::RecordBatch;
use catalog::search_path::Setting;
use table::{Definition, KeySet, Table};

use crate::bind::left_out::Defaults;
use crate::bind::read_values::is_local;
use crate::bind::row_values::{Cell, whole};
use crate::error::{Error, Result};
use crate::functions::sequences::Numbers;
use crate::resources::budget::{Held, footprint};
use crate::run::checks::Checks;
use crate::run::context::StatementContext;
use crate::statements::gathered_columns::Columns;
use crate::statements::gathered_defaults::defaults;
use crate::statements::gathered_references::Reference;

/// Rows that become one batch at a time.
const TOGETHER: usize = 1024;
/// Or so many bytes of texts.
const TOGETHER_BYTES: usize = 1 << 20;
/// Most rows of a table that wait: a block of it.
const MOST_ROWS: usize = 65_536;
/// Most bytes of them.
const MOST_BYTES: u64 = 16 << 20;
/// What a name meant when the first row came.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Meant {
    /// The table as statements write it.
    pub(super) written: Arc<str>,
    /// Where names are looked up.
    pub(super) path: Setting,
    /// Whose rights were looked at.
    pub(super) role: Option<Arc<str>>,
}

/// Rows for a table.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(super) meant: Meant,
    table: Arc<Table>,
    pub(super) checks: Checks,
    pub(super) defaults: Arc<Defaults>,
    /// The sequences that defaults ask.
    numbers: Option<Arc<dyn Numbers>>,
    /// Whether how rows are read is for the session to say, which may say otherwise for each: some have dates or times.
    pub(super) local: bool,
    /// Whether each row is looked at by itself: the table has checks, keys or foreign keys.
    each: bool,
    references: Vec<Reference>,
    /// The keys of the rows, for each key that holds.
    seen: Vec<KeySet>,
    /// The last rows.
    last: Columns,
    batches: Vec<RecordBatch>,
    /// All rows.
    pub(super) rows: usize,
    /// The last of them is refused when it is written.
    refused: bool,
    bytes: u64,
    held: Held,
}

impl Gathered {
    /// No rows yet for a table, by a statement that may write to it.
    ///
    /// # Errors
    /// Those of reading its checks.
    pub(super) async fn new(
        meant: Meant,
        (table, references): (Arc<Table>, Vec<Reference>),
        context: &mut StatementContext,
    ) -> Result<Gathered> {
        let definition = table.definition();
        let checks = Checks::new(context, definition).await?;
        Ok(Gathered {
            meant,
            checks,
            each: !definition.checks.is_empty()
                || !definition.keys.is_empty()
                || !references.is_empty(),
            references,
            local: definition
                .columns
                .iter()
                .any(|own| is_local(&own.data_type)),
            seen: vec![KeySet::default(); definition.keys.len()],
            last: Columns::new(table.schema()),
            defaults: Arc::new(defaults(context, definition).await),
            numbers: context.numbers_of_kept(),
            held: Held::of(context.budget()),
            table,
            batches: Vec::new(),
            rows: 0,
            refused: false,
            bytes: 0,
        })
    }

    pub(super) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub(super) fn definition(&self) -> &Definition {
        self.table.definition()
    }

    /// Takes a row; false if it is refused, or is of a key that another has.
    ///
    /// # Errors
    /// Those of reading the index, and of asking sequences.
    pub(super) async fn take(&mut self, mut row: Vec<Cell<'_>>) -> Result<bool> {
        if self.last.lacks(&row) {
            return Ok(false);
        }
        let Some(asked) = self.number(&mut row)? else {
            return Ok(false);
        };
        if self.each && !self.passes(row.clone()).await? {
            if !asked {
                return Ok(false);
            }
            // The insert itself would ask for other numbers, of which it may be that they pass.
            self.refused = true;
        }
        self.last.push(row)?;
        self.rows += 1;
        Ok(true)
    }

    /// Puts the next numbers of sequences into a row, and says whether it needs any; none if a column has not the range for
    /// its number.
    fn number(&self, row: &mut [Cell<'_>]) -> Result<Option<bool>> {
        let mut asked = false;
        let columns = &self.definition().columns;
        for (cell, column) in row.iter_mut().zip(columns) {
            let Cell::Next(name) = cell else {
                continue;
            };
            let next = match &self.numbers {
                Some(numbers) => numbers.next(name, 1)?,
                None => Vec::new(),
            };
            let number = next.first().copied();
            let Some(number) = number.and_then(|own| whole(own, &column.data_type)) else {
                return Ok(None);
            };
            *cell = number;
            asked = true;
        }
        Ok(Some(asked))
    }

    /// Whether a row passes the checks, has keys that no other has, and refers to what is there.
    async fn passes(&mut self, row: Vec<Cell<'_>>) -> Result<bool> {
        let mut one = Columns::new(self.table.schema());
        one.push(row)?;
        let row = table::normalise(&one.finish()?, self.table.definition());
        let row = row.map_err(Error::from);
        let Ok(row) = row.and_then(|row| self.checks.test(row)) else {
            return Ok(false);
        };
        let keys = &self.table.definition().keys;
        for (key, seen) in keys.iter().zip(&mut self.seen) {
            let values = row.project(&key.columns)?.columns().to_vec();
            let is_there = self.table.find(key, &values).await?;
            let is_new = seen.take(&values)?;
            if is_there.iter().any(Option::is_some) || is_new.contains(&Some(false)) {
                return Ok(false);
            }
        }
        for reference in &mut self.references {
            if !reference.holds(&row).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether its rows may refer to those of this table.
    pub(super) fn refers_to(&self, name: &str) -> bool {
        self.references.iter().any(|own| own.is_to(name))
    }

    /// Makes one batch of the last rows if they are many, and says whether there is room for more: none if the rows are to be
    /// written.
    ///
    /// # Errors
    /// None but those of Arrow.
    pub(super) fn has_room(&mut self) -> Result<bool> {
        if self.refused {
            return Ok(false);
        }
        if self.last.rows() < TOGETHER && self.last.bytes() < TOGETHER_BYTES {
            return Ok(true);
        }
        let more = self.together()?;
        let fits = self.held.more(more).is_ok();
        self.bytes += more;
        let seen = self.seen.iter().map(KeySet::bytes);
        let keys: u64 = seen
            .chain(self.references.iter().map(Reference::bytes))
            .sum();
        Ok(fits && self.rows < MOST_ROWS && self.bytes + keys < MOST_BYTES)
    }

    /// Makes one batch of the last rows, and says how many bytes it takes.
    fn together(&mut self) -> Result<u64> {
        if self.last.rows() == 0 {
            return Ok(0);
        }
        let batch = self.last.finish()?;
        let bytes = footprint(&batch);
        self.batches.push(batch);
        Ok(bytes)
    }

    /// All rows, in the order in which they came.
    pub(super) fn rows(&mut self) -> Result<Vec<RecordBatch>> {
        self.together()?;
        Ok(std::mem::take(&mut self.batches))
    }
}
