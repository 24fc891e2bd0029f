//! Accumulators: what is found of each group so far, one entry per group number.

use std::any::Any;
use std::fmt;

use crate::error::{Error, Result};
use crate::vector::value::{Kind, Vector};

/// What is accumulated of the rows of groups, for all groups of one worker.
///
/// Groups have numbers from 0 on. Where `groups` are absent, all rows are of group 0.
pub(crate) trait Accumulator: fmt::Debug + Send + Sync + Any {
    /// The same, without groups.
    ///
    /// # Errors
    /// Never, as long as groups have numbers.
    fn fresh(&self) -> Result<Box<dyn Accumulator>>;

    /// Makes room for `groups` groups. The first time, memory that is never touched costs nothing.
    fn resize(&mut self, groups: usize);

    /// Adds `rows` rows, which are of these groups and have these values.
    ///
    /// # Errors
    /// [`Error::Overflow`]; an internal error for values of another kind.
    fn add(&mut self, groups: Option<&[u32]>, rows: usize, arg: Option<&Vector>) -> Result<()>;

    /// Adds what `other`, which accumulates the same, has of group `from[i]` to group `to[i]` here.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    fn merge(&mut self, other: &dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()>;

    /// The kinds of the vectors that [`state`](Accumulator::state) gives; none where there is no state but
    /// [`distinct_values`](Accumulator::distinct_values).
    fn kinds(&self) -> Vec<Kind>;

    /// The state of `some` groups as vectors, so that it can be spilled.
    ///
    /// # Errors
    /// Those of Arrow.
    fn state(&self, some: &[u32]) -> Result<Vec<Vector>>;

    /// The accumulator of as many groups as `state` has rows.
    ///
    /// # Errors
    /// An internal error if the vectors are not of [`kinds`](Accumulator::kinds).
    fn of_state(&self, state: Vec<Vector>) -> Result<Box<dyn Accumulator>>;

    /// Bytes it takes, room for groups that have not come yet included.
    fn memory(&self) -> usize;

    /// Bytes among them that grow with values, not with groups.
    fn memory_of_values(&self) -> usize {
        0
    }

    /// If each value counts once: the pairs of a group and one of its values.
    ///
    /// # Errors
    /// Those of Arrow.
    fn distinct_values(&self) -> Result<Option<(Vec<u32>, Vector)>> {
        Ok(None)
    }

    /// Forgets which values there were, but not what was found of them: none of them will come again.
    fn forget_values(&mut self) {}

    /// What was found, for [`result`](super::result::result).
    fn found(&self) -> Found<'_>;

    /// How many values there were in each group, if that is known.
    fn counts(&self) -> Option<&[i64]> {
        None
    }
}

/// What was found, by group.
#[derive(Clone, Copy)]
pub(crate) enum Found<'a> {
    Counts,
    Int(&'a [i64]),
    Wide(&'a [i128]),
    Float(&'a [f64]),
    /// The least or greatest, and whether there was a value.
    ExtremeInt(&'a [i64], &'a [bool]),
    ExtremeWide(&'a [i128], &'a [bool]),
    ExtremeFloat(&'a [f64], &'a [bool]),
    ExtremeCode(&'a [u32], &'a [bool]),
    ExtremeString(&'a [Box<[u8]>], &'a [bool]),
}

/// `other` as what it is, an accumulator of the same as the one that asks.
pub(crate) fn same<A: Accumulator>(other: &dyn Accumulator) -> Result<&A> {
    let other: &dyn Any = other;
    other
        .downcast_ref()
        .ok_or_else(|| Error::internal("accumulators of different kinds"))
}

/// Makes `cells` as many as there are groups; the first time by `zero`.
pub(crate) fn grow<T: Clone>(
    cells: &mut Vec<T>,
    groups: usize,
    zero: fn(usize) -> Vec<T>,
    value: T,
) {
    if cells.is_empty() {
        *cells = zero(groups);
    } else {
        cells.resize(groups, value);
    }
}

/// Pairs of the groups `from` of one and `to` of another accumulator.
pub(crate) fn pairs(from: &[u32], to: &[u32]) -> impl Iterator<Item = (usize, usize)> {
    from.iter()
        .map(|g| *g as usize)
        .zip(to.iter().map(|g| *g as usize))
}

/// A vector of the state has another kind.
pub(crate) fn other_state() -> Error {
    Error::internal("a state of other vectors")
}

/// A sum, or an average, does not fit.
pub(crate) fn overflow() -> Error {
    Error::Overflow {
        what: "a sum or an average".into(),
    }
}
