//! Accumulators: the state of aggregate functions, one entry per group.

use std::any::Any;
use std::fmt;

use algebra::filter::gather;
use arrow::datatypes::i256;

use crate::error::{Error, Result};
use crate::operators::aggregate::pair_sums::PairSums;
use crate::vector::batch::Batch;
use crate::vector::value::{Kind, Type, Var, Vector};

/// The state of one aggregation for all groups of a worker.
///
/// Groups are numbered from 0. If `groups` is absent, all rows belong to group 0.
pub(crate) trait Accumulator: fmt::Debug + Send + Sync + Any {
    /// An empty accumulator of the same kind.
    ///
    /// # Errors
    /// An internal error if the accumulator cannot be made, which does not happen for one that exists.
    fn fresh(&self) -> Result<Box<dyn Accumulator>>;

    /// Grows to `groups` groups. The first call allocates zeroed memory, which costs nothing until it is touched. After
    /// [`hand_over`](Accumulator::hand_over) of all groups it may also be 0.
    fn resize(&mut self, groups: usize);

    /// Adds `rows` values of `arg`, the i-th to group `groups[i]`.
    ///
    /// # Errors
    /// [`Error::Overflow`]; an internal error for values of another kind.
    fn add(&mut self, groups: Option<&[u32]>, rows: usize, arg: Option<&Vector>) -> Result<()>;

    /// Adds the rows of `batch`, the i-th to group `groups[i]`, to an accumulator of rows.
    ///
    /// # Errors
    /// An internal error for other accumulators.
    fn add_rows(&mut self, _groups: Option<&[u32]>, _batch: &Batch) -> Result<()> {
        Err(not_of_rows())
    }

    /// The first part of [`add_rows`](Accumulator::add_rows), for which the batch need only have the vectors that decide
    /// which rows are kept. Returns these rows, which ascend; the batch of only these is then to be given to
    /// [`settle_rows`](Accumulator::settle_rows). `None` if they are many: then it is to be given the same batch.
    ///
    /// # Errors
    /// An internal error for other accumulators.
    fn choose_rows(&mut self, _groups: Option<&[u32]>, _batch: &Batch) -> Result<Option<Vec<u32>>> {
        Err(not_of_rows())
    }

    /// The second part of [`add_rows`](Accumulator::add_rows): copies what is kept of the chosen rows.
    ///
    /// # Errors
    /// An internal error for other accumulators.
    fn settle_rows(&mut self, _batch: &Batch) -> Result<()> {
        Err(not_of_rows())
    }

    /// Merges group `from[i]` of `other`, an accumulator of the same kind, into group `to[i]`.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    fn merge(&mut self, other: &dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()>;

    /// Moves the groups `some`, each of them once, to an accumulator of their own, in this order. What stands for them here means
    /// nothing any more: once all groups were moved, [`resize`](Accumulator::resize) to 0 is to follow, which keeps the memory for
    /// groups that come later.
    ///
    /// # Errors
    /// An internal error for an accumulator that does not have one cell for each group: of rows, or of distinct or collected values.
    fn hand_over(&mut self, _some: &[u32]) -> Result<Box<dyn Accumulator>> {
        Err(Error::internal("groups without cells are not handed over"))
    }

    /// The kinds of the vectors of [`state`](Accumulator::state). Empty if the only state is
    /// [`each_value`](Accumulator::each_value).
    fn kinds(&self) -> Vec<Kind>;

    /// The state of the groups `some` as vectors, for spilling.
    ///
    /// # Errors
    /// Those of Arrow.
    fn state(&self, some: &[u32]) -> Result<Vec<Vector>>;

    /// An accumulator with a group for each row of `state`.
    ///
    /// # Errors
    /// An internal error if the vectors are not of [`kinds`](Accumulator::kinds).
    fn of_state(&self, state: Vec<Vector>) -> Result<Box<dyn Accumulator>>;

    /// Bytes allocated.
    fn memory(&self) -> usize;

    /// The bytes among them that grow with the values rather than with the groups.
    fn memory_of_values(&self) -> usize {
        0
    }

    /// The bytes that finishing it takes for a moment beside these.
    fn memory_to_finish(&self) -> usize {
        0
    }

    /// For an accumulator of distinct or of all values: gives `take` all pairs of a group and one of its values, some at a time.
    ///
    /// # Errors
    /// Those of `take` and of Arrow.
    fn each_value(&self, _take: &mut dyn FnMut(&[u32], &Vector) -> Result<()>) -> Result<()> {
        Ok(())
    }

    /// Drops the set of distinct values but keeps their count and sum. The same values must not be added again.
    fn forget_values(&mut self) {}

    /// Whether it finds what the functions `calls` give by [passes](super::selection) over all values, instead of keeping these: if so,
    /// [`add`](Accumulator::add) is to get all of them, again for each pass that [`end_pass`](Accumulator::end_pass) asks for.
    fn select(&mut self, _calls: &[usize]) -> bool {
        false
    }

    /// Ends a pass; whether there must be another one.
    ///
    /// # Errors
    /// Those of Arrow.
    fn end_pass(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// The accumulated values, for [`result`](super::result::result).
    fn found(&self) -> AccumulatedValues<'_>;

    /// The values of `var` in the kept rows at `places`, of an accumulator of rows.
    ///
    /// # Errors
    /// An internal error for other accumulators, and for a vector that is not kept.
    fn row_values(&self, _var: Var, _places: &[u32]) -> Result<Vector> {
        Err(not_of_rows())
    }

    /// The number in the order of each kept row, of an accumulator of rows: as [`entries`](Accumulator::entries) gives
    /// groups and places.
    ///
    /// # Errors
    /// An internal error for other accumulators.
    fn row_numbers(&self, _groups: &[u32], _places: &[u32]) -> Result<Vec<i64>> {
        Err(not_of_rows())
    }

    /// For an accumulator that may keep several rows of a group: of each row of `groups`, its group and its place, the
    /// rows of a group behind each other in their order. [`state`](Accumulator::state) then takes places.
    fn entries(&self, _groups: &[u32]) -> Option<(Vec<u32>, Vec<u32>)> {
        None
    }

    /// What the function `call` gives for `groups` of an accumulator of [all values](super::collected), as values of type `ty`.
    ///
    /// # Errors
    /// Those of the function; an internal error for other accumulators, or if there is no such function.
    fn called(&self, _call: usize, _groups: &[u32], _ty: &Type) -> Result<Vector> {
        Err(Error::internal("a call of values that were not kept"))
    }

    /// The number of values of each group, if it is known.
    fn counts(&self) -> Option<&[i64]> {
        None
    }
}

/// Accumulated values by group.
#[derive(Clone, Copy)]
pub(crate) enum AccumulatedValues<'a> {
    Counts,
    Int(&'a [i64]),
    Wide(&'a [i128]),
    Long(&'a [i256]),
    Float(&'a [f64]),
    /// The least or greatest value, and whether the group has a value.
    ExtremeInt(&'a [i64], &'a [bool]),
    ExtremeWide(&'a [i128], &'a [bool]),
    ExtremeFloat(&'a [f64], &'a [bool]),
    ExtremeCode(&'a [u32], &'a [bool]),
    ExtremeString(&'a [Box<[u8]>], &'a [bool]),
    /// The number of values, and the sum of the squares of their differences from their mean.
    Deviations(&'a [i64], &'a [f64]),
    /// The sums of pairs.
    Pairs(&'a [PairSums]),
}

/// Downcasts `other` to the type of the accumulator it is merged into.
pub(crate) fn same<A: Accumulator>(other: &dyn Accumulator) -> Result<&A> {
    let other: &dyn Any = other;
    other
        .downcast_ref()
        .ok_or_else(|| Error::internal("accumulators of different kinds"))
}

/// The cells of the groups `some`.
pub(crate) fn cells_of<T: Copy>(cells: &[T], some: &[u32]) -> Vec<T> {
    let mut own = Vec::new();
    gather(cells, some, &mut own);
    own
}

/// Resizes `cells` to one per group: as long as they have no memory by `zero`, later with copies of `value`.
pub(crate) fn grow<T: Clone>(
    cells: &mut Vec<T>,
    groups: usize,
    zero: fn(usize) -> Vec<T>,
    value: T,
) {
    if cells.capacity() == 0 {
        *cells = zero(groups);
    } else {
        cells.resize(groups, value);
    }
}

/// The pairs (`from[i]`, `to[i]`).
pub(crate) fn pairs(from: &[u32], to: &[u32]) -> impl Iterator<Item = (usize, usize)> {
    from.iter()
        .map(|g| *g as usize)
        .zip(to.iter().map(|g| *g as usize))
}

/// The error for a state of wrong vectors.
pub(crate) fn other_state() -> Error {
    Error::internal("an accumulator over other vectors")
}

fn not_of_rows() -> Error {
    Error::internal("rows for an accumulator of values")
}

/// The error for a sum or an average that does not fit.
pub(crate) fn overflow() -> Error {
    Error::Overflow {
        what: "a sum or an average".into(),
    }
}
