//! Orders of rows.

use crate::vector::value::Var;

/// A sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The vector.
    pub var: Var,
    /// Whether greater values come first.
    pub descending: bool,
    /// Whether NULLs come before all other values.
    pub nulls_first: bool,
}

/// Which rows of a group an aggregate keeps: the first few of an order. Of rows that are equal in the order, any may be
/// the first; all functions with the same order take their values from the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowOrder {
    /// Those behind the first `count` mean nothing.
    keys: [Key; RowOrder::MOST_KEYS],
    count: usize,
    only: Option<Var>,
    most: usize,
    ties: bool,
}

impl RowOrder {
    /// Most keys of an order.
    pub const MOST_KEYS: usize = 8;

    /// The first `most` rows in the order of `keys` (most significant first; without any, the order is arbitrary).
    /// With `only`, a vector of booleans, rows where that is not true do not count. `None` for more keys than an order
    /// can have, or no rows.
    pub fn new(keys: &[Key], only: Option<Var>, most: usize) -> Option<RowOrder> {
        let none = Key {
            var: 0,
            descending: false,
            nulls_first: false,
        };
        let mut own = [none; RowOrder::MOST_KEYS];
        own.get_mut(..keys.len())?.copy_from_slice(keys);
        (most > 0).then_some(RowOrder {
            keys: own,
            count: keys.len(),
            only,
            most,
            ties: false,
        })
    }

    /// The same order, of which all rows are kept that are equal to the last one: those with the first ranks.
    pub fn with_ties(self) -> RowOrder {
        RowOrder { ties: true, ..self }
    }

    /// The keys, most significant first.
    pub fn keys(&self) -> &[Key] {
        &self.keys[..self.count]
    }

    /// The vector that is true in the rows that count; `None` if all do.
    pub fn only(&self) -> Option<Var> {
        self.only
    }

    /// Whether all rows are kept that are equal to the last one.
    pub fn ties(&self) -> bool {
        self.ties
    }

    /// Whether several rows of a group may be kept.
    pub(crate) fn is_of_many(&self) -> bool {
        self.most > 1 || self.ties
    }

    /// How many rows of a group are kept, besides those equal to the last one.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Calls `f` with each vector that decides which rows are kept.
    pub(crate) fn each_var(&self, f: &mut dyn FnMut(Var)) {
        self.keys().iter().for_each(|key| f(key.var));
        self.only.iter().for_each(|var| f(*var));
    }
}
