//! The rows of each group with the first few keys of an order.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::operators::aggregate::accumulator::{
    AccumulatedValues, Accumulator, other_state, pairs, same,
};
use crate::operators::aggregate::kept_columns::Cells;
use crate::operators::aggregate::kept_rows::{KeptRows, RowShape};
use crate::operators::aggregate::limits::{Candidates, Limits};
use crate::vector::batch::Batch;
use crate::vector::value::{Kind, Values, Var, Vector};

/// Bytes of the lists for each row, if they are all different.
const LISTED: usize = 48;

/// The rows of each group that are equal to one of its first `most` different ones in the order.
#[derive(Debug)]
pub(crate) struct DenseRows {
    most: usize,
    rows: KeptRows,
    /// Places that rows have left.
    free: Vec<u32>,
    /// For each group its rows by their order: lists of the places of those that are equal. Invariant: none is empty, and
    /// they are at most `most`.
    groups: Vec<Vec<Vec<u32>>>,
    /// For each group with `most` such lists, the [rank](KeptRows::rank) of the rows of the last one: rows beyond it need not
    /// be compared any further.
    limits: Limits,
    candidates: Candidates,
}

impl DenseRows {
    /// Without groups.
    pub fn new(shape: Arc<RowShape>, most: usize) -> DenseRows {
        DenseRows {
            most,
            rows: KeptRows::new(shape),
            free: vec![],
            groups: vec![],
            limits: Limits::default(),
            candidates: Candidates::default(),
        }
    }

    /// Takes the rows of `batch` that are among the first of their groups, without what they have beyond the order.
    fn choose(&mut self, groups: Option<&[u32]>, batch: &Batch) -> Result<()> {
        let shape = Arc::clone(&self.rows.shape);
        let rows = shape.of_batch(batch)?;
        let mut candidates = std::mem::take(&mut self.candidates);
        let first = self.rows.first_key(&rows.columns);
        candidates.find(first, groups, &self.limits, batch.rows);
        for (row, rank) in candidates.iter() {
            let group = groups.map_or(0, |groups| groups[row] as usize);
            // Rows before it may have changed the limit.
            if self.limits.allows(group, rank) && rows.counts(row) {
                self.offer(&rows.columns, row, group)?;
            }
        }
        self.candidates = candidates;
        Ok(())
    }

    /// Takes the row into its group, if it is one of the first.
    fn offer(&mut self, columns: &[impl Cells], row: usize, group: usize) -> Result<()> {
        let (rows, lists) = (&mut self.rows, &mut self.groups[group]);
        let order = |list: &Vec<u32>| rows.compare(columns, row, list[0] as usize);
        let at = lists.partition_point(|list| order(list).is_gt());
        let is_tie = lists.get(at).is_some_and(|list| order(list).is_eq());
        if at == self.most {
            return Ok(());
        }
        let place = self.free.pop().unwrap_or_else(|| rows.push());
        rows.take(columns, row, place as usize)?;
        if is_tie {
            lists[at].push(place);
        } else {
            lists.insert(at, vec![place]);
            if lists.len() > self.most {
                self.free.extend(lists.pop().unwrap_or_default());
            }
        }
        if let Some(last) = lists.get(self.most - 1) {
            self.limits.set(group, rows.rank(last[0] as usize), true);
        }
        Ok(())
    }
}

impl Accumulator for DenseRows {
    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        let shape = Arc::clone(&self.rows.shape);
        Ok(Box::new(DenseRows::new(shape, self.most)))
    }

    fn resize(&mut self, groups: usize) {
        self.groups.resize_with(groups, Vec::new);
        self.limits.resize(groups);
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
        let other: &DenseRows = same(other)?;
        let columns = other.rows.columns();
        for (from, to) in pairs(from, to) {
            for row in other.groups[from].iter().flatten() {
                self.offer(columns, *row as usize, to)?;
            }
        }
        self.rows.settle(columns)
    }

    fn kinds(&self) -> Vec<Kind> {
        let mut kinds = self.rows.shape.kinds();
        kinds.push(Kind::Bool);
        kinds
    }

    /// The rows at the places `some`, rather than those of groups. One more column says how many they are, even if
    /// nothing else is kept.
    fn state(&self, some: &[u32]) -> Result<Vec<Vector>> {
        let mut state = self.rows.vectors(some);
        state.push(Vector::new(Values::Bool(vec![true; some.len()])));
        Ok(state)
    }

    fn of_state(&self, mut state: Vec<Vector>) -> Result<Box<dyn Accumulator>> {
        let rows = state.pop().ok_or_else(other_state)?.len();
        let shape = Arc::clone(&self.rows.shape);
        Ok(Box::new(DenseRows {
            most: self.most,
            free: vec![],
            rows: KeptRows::of_vectors(shape, rows, state)?,
            groups: (0..rows as u32).map(|row| vec![vec![row]]).collect(),
            limits: Limits::open(rows),
            candidates: Candidates::default(),
        }))
    }

    fn memory(&self) -> usize {
        let lists = size_of::<Vec<Vec<u32>>>() * self.groups.capacity() + LISTED * self.rows.len();
        let lists = lists + 4 * self.free.capacity();
        self.rows.memory() + lists + self.limits.memory() + self.candidates.memory()
    }

    fn memory_of_values(&self) -> usize {
        self.rows.memory() + LISTED * self.rows.len()
    }

    fn found(&self) -> AccumulatedValues<'_> {
        AccumulatedValues::Counts
    }

    fn row_values(&self, var: Var, places: &[u32]) -> Result<Vector> {
        let column = self.rows.shape.column(var)?;
        Ok(self.rows.vector(column, places))
    }

    fn row_numbers(&self, groups: &[u32], places: &[u32]) -> Result<Vec<i64>> {
        let mut numbers = Vec::with_capacity(places.len());
        // The row before this one in its group, its place in the order, and its number.
        let mut last: Option<(u32, u32, i64)> = None;
        for (group, place) in groups.iter().zip(places) {
            let number = match last {
                Some((own, before, number)) if own == *group => {
                    let (before, place) = (before as usize, *place as usize);
                    let order = self.rows.compare(self.rows.columns(), before, place);
                    number + i64::from(order.is_ne())
                }
                _ => 1,
            };
            numbers.push(number);
            last = Some((*group, *place, number));
        }
        Ok(numbers)
    }

    fn entries(&self, groups: &[u32]) -> Option<(Vec<u32>, Vec<u32>)> {
        let rows = groups.iter().flat_map(|group| {
            let places = self.groups[*group as usize].iter().flatten();
            places.map(|place| (*group, *place))
        });
        Some(rows.unzip())
    }
}
