//! Aggregate functions that the engine has no accumulator for.

use std::fmt;
use std::ops::Range;

use arrow::array::ArrayRef;

/// An aggregate function over Arrow arrays. All values of a group are kept, unless it [folds](AggregateCall::folds) them,
/// and the function gets them at once: it may be of any kind, but groups should not be large.
pub trait AggregateCall: Send + Sync + fmt::Debug {
    /// The result for each of some groups, as one array. Group `i` has the values of `values` at `groups[i]`, of which
    /// there may be none.
    ///
    /// # Errors
    /// Whatever the function gives.
    fn call(
        &self,
        values: &ArrayRef,
        groups: &[Range<usize>],
    ) -> Result<ArrayRef, Box<dyn std::error::Error + Send + Sync>>;

    /// Whether NULLs are no values to it: then they are not kept.
    fn ignores_nulls(&self) -> bool;

    /// Whether it gives of the results for parts of the values what it gives of all: then parts are folded now and then. The
    /// results have the type of the values then.
    fn folds(&self) -> bool;

    /// Its name in `explain`.
    fn name(&self) -> String;

    /// What it is as a quantile, if it is one: then it can be had of values that do not fit in memory.
    fn quantile(&self) -> Option<&dyn Quantile> {
        None
    }
}

/// A function that reads one or two of its values in ascending order.
pub trait Quantile {
    /// What is ranked of some values of a group, in Arrow's order: as many values, NULL for those that do not count.
    ///
    /// # Errors
    /// Whatever the function gives.
    fn ranked(
        &self,
        values: &ArrayRef,
    ) -> Result<ArrayRef, Box<dyn std::error::Error + Send + Sync>>;

    /// The two places, which may be one, that are read of `count` ranked values in ascending order; `None` if the result is that of
    /// no values.
    fn places(&self, count: usize) -> Option<(usize, usize)>;

    /// The result, one value, for the two ranked values at the [`places`](Quantile::places) of `count`.
    ///
    /// # Errors
    /// Whatever the function gives.
    fn result(
        &self,
        both: &ArrayRef,
        count: usize,
    ) -> Result<ArrayRef, Box<dyn std::error::Error + Send + Sync>>;
}
