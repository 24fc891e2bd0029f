//! As-of joins, which find for each row the last row of another relation until then, or the first from then on.

use algebra::filter::Op as Compare;

use crate::logical::aggregate::Key;
use crate::logical::relation::Rel;
use crate::vector::value::Var;

/// An as-of join: of the rows of `right` with the same keys as a row of `left`, the one whose number `of` is nearest to the number `at`
/// on one side of it. Numbers are of 64 bits, whole ones or floats, and both of one kind. What is NULL matches nothing.
#[derive(Clone, Debug)]
pub struct AsOf {
    /// The rows that look for another one.
    pub left: Box<Rel>,
    /// The rows that are looked for.
    pub right: Box<Rel>,
    /// Pairs (of `left`, of `right`) that must be equal and not NULL.
    pub equal: Vec<(Var, Var)>,
    /// The number of `right`.
    pub of: Var,
    /// How it must compare with `at`: the greatest number is taken that is less (or equal), or the least that is greater (or equal).
    pub op: Compare,
    /// The number of `left`.
    pub at: Var,
    /// What else must hold of the number that is found, with other numbers of `left`: how far off it may lie.
    pub bounds: Vec<(Compare, Var)>,
    /// Which of several rows with that number is taken: the first of this order, any if it does not say.
    pub ties: Vec<Key>,
    /// Whether rows of `left` without a match are kept, with NULLs.
    pub keeps: bool,
    /// For each vector of `right` that is read: that vector, and the one that holds its value, or NULL.
    pub outer: Vec<(Var, Var)>,
}
