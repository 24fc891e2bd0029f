//! The first row of each group in an order: all its columns are found together.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::operators::aggregate::accumulator::{
    AccumulatedValues, Accumulator, grow, other_state, pairs, same,
};
use crate::operators::aggregate::kept_rows::{KeptRows, RowShape};
use crate::operators::aggregate::limits::{Candidates, Limits};
use crate::vector::batch::Batch;
use crate::vector::value::{Kind, Values, Var, Vector};

/// The first row of each group.
#[derive(Debug)]
pub(crate) struct FirstRow {
    /// The place of a row is the number of its group.
    rows: KeptRows,
    /// Whether the group has a row.
    seen: Vec<bool>,
    /// For each group with a row the [rank](KeptRows::rank) of one that it had: rows beyond it need not be compared. Without
    /// groups until the first batch needs it.
    limits: Limits,
    candidates: Candidates,
}

impl FirstRow {
    /// Without groups.
    pub fn new(shape: Arc<RowShape>) -> FirstRow {
        FirstRow {
            rows: KeptRows::new(shape),
            seen: vec![],
            limits: Limits::default(),
            candidates: Candidates::default(),
        }
    }
}

impl FirstRow {
    /// Takes the rows of `batch` that come before those of their groups, without what they have beyond the order.
    fn choose(&mut self, groups: Option<&[u32]>, batch: &Batch) -> Result<()> {
        let shape = Arc::clone(&self.rows.shape);
        let rows = shape.of_batch(batch)?;
        let columns = &rows.columns;
        if rows.all_count() && self.rows.take_firsts(columns, groups, &mut self.seen) {
            return Ok(());
        }
        let equals = !shape.is_of_one_key();
        let mut candidates = std::mem::take(&mut self.candidates);
        self.limits.resize(self.seen.len());
        let first = self.rows.first_key(columns);
        candidates.find(first, groups, &self.limits, batch.rows);
        for (row, rank) in candidates.iter() {
            let group = groups.map_or(0, |groups| groups[row] as usize);
            // Rows before it may have changed the limit.
            if !self.limits.allows(group, rank) || !rows.counts(row) {
                continue;
            }
            if !self.seen[group] || self.rows.compare(columns, row, group).is_lt() {
                self.seen[group] = true;
                self.rows.take(columns, row, group)?;
            }
            self.limits.set(group, self.rows.rank(group), equals);
        }
        self.candidates = candidates;
        Ok(())
    }
}

impl Accumulator for FirstRow {
    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(FirstRow::new(Arc::clone(&self.rows.shape))))
    }

    fn resize(&mut self, groups: usize) {
        self.rows.resize(groups);
        grow(&mut self.seen, groups, |n| vec![false; n], false);
    }

    fn add(&mut self, _: Option<&[u32]>, _: usize, _: Option<&Vector>) -> Result<()> {
        Err(Error::internal("values where rows were expected"))
    }

    fn add_rows(&mut self, groups: Option<&[u32]>, batch: &Batch) -> Result<()> {
        self.choose(groups, batch)?;
        self.settle_rows(batch)
    }

    fn choose_rows(&mut self, groups: Option<&[u32]>, batch: &Batch) -> Result<Option<Vec<u32>>> {
        self.choose(groups, batch)?;
        Ok(self.rows.pick_pending(batch.rows))
    }

    fn settle_rows(&mut self, batch: &Batch) -> Result<()> {
        let columns = self.rows.shape.columns_of(batch)?;
        self.rows.settle(&columns)
    }

    fn merge(&mut self, other: &dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other: &FirstRow = same(other)?;
        let columns = other.rows.columns();
        for (from, to) in pairs(from, to).filter(|(from, _)| other.seen[*from]) {
            if !self.seen[to] || self.rows.compare(columns, from, to).is_lt() {
                self.seen[to] = true;
                self.rows.take(columns, from, to)?;
            }
        }
        self.rows.settle(columns)
    }

    fn kinds(&self) -> Vec<Kind> {
        let mut kinds = self.rows.shape.kinds();
        kinds.push(Kind::Bool);
        kinds
    }

    fn state(&self, some: &[u32]) -> Result<Vec<Vector>> {
        let mut state = self.rows.vectors(some);
        let seen = some.iter().map(|group| self.seen[*group as usize]);
        state.push(Vector::new(Values::Bool(seen.collect())));
        Ok(state)
    }

    fn of_state(&self, mut state: Vec<Vector>) -> Result<Box<dyn Accumulator>> {
        let Some(Values::Bool(seen)) = state.pop().map(|vector| vector.values) else {
            return Err(other_state());
        };
        let shape = Arc::clone(&self.rows.shape);
        Ok(Box::new(FirstRow {
            rows: KeptRows::of_vectors(shape, seen.len(), state)?,
            seen,
            limits: Limits::default(),
            candidates: Candidates::default(),
        }))
    }

    fn memory(&self) -> usize {
        let limits = self.limits.memory() + self.candidates.memory();
        self.rows.memory() + self.seen.capacity() + limits
    }

    fn memory_of_values(&self) -> usize {
        self.rows.string_bytes()
    }

    fn found(&self) -> AccumulatedValues<'_> {
        AccumulatedValues::Counts
    }

    fn row_numbers(&self, groups: &[u32], _: &[u32]) -> Result<Vec<i64>> {
        Ok(vec![1; groups.len()])
    }

    fn row_values(&self, var: Var, places: &[u32]) -> Result<Vector> {
        let column = self.rows.shape.column(var)?;
        let mut vector = self.rows.vector(column, places);
        if places.iter().any(|group| !self.seen[*group as usize]) {
            let rows = vector.len();
            let valid = vector.valid.get_or_insert_with(|| vec![true; rows]);
            for (valid, group) in valid.iter_mut().zip(places) {
                *valid &= self.seen[*group as usize];
            }
        }
        Ok(vector)
    }
}
