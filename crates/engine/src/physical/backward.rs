//! Backward reduction of a join: when the keys that the rows of a relation have are worth a look at it before a relation
//! below it is read.
//!
//! A relation drops the rows that no relation below it matches: reduction forward, from the leaves of the tree to the
//! root. A large relation below one of which few rows are left would still make a join table of all of its own. So the
//! keys of what is left are collected first, by the predicates of the upper relation and by the join tables below it that
//! are complete, and the lower relation is reduced by them.

use crate::logical::relation::Rel;
use crate::physical::classes::Classes;
use crate::vector::value::Var;

/// A relation is reduced by what lets at most this share of rows through.
pub(crate) const REDUCING: f64 = 0.5;

/// What a row costs in a join table, in rows that a scan tests.
const BUILT: f64 = 8.0;
/// What a row costs in a scan whose predicates read more than stored numbers and codes.
const COMPUTED: f64 = 4.0;
/// What a row costs that is kept to be read again, in rows that a scan tests: more than it takes, as more rows are left than predicates
/// that go together let expect.
const KEPT: f64 = 64.0;
/// The estimated gain is so many times the cost. Estimates err.
const GAIN: f64 = 2.0;

/// What reduces the rows of a relation: the vectors of it that must be among some keys, the share of rows that are, and that among
/// the rows that others have for the same keys.
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    pub keys: Vec<Var>,
    pub share: f64,
    pub among: f64,
}

/// The shares of rows of a relation that its reductions leave: of those whose vectors are all equal to some of `keys`,
/// which reach the relation below it by themselves, and of the others.
pub(crate) fn shares(all: &[Reduction], keys: &[Var], equal: &Classes) -> (f64, f64) {
    let (mut passed_on, mut others) = (1.0f64, 1.0f64);
    for reduction in all {
        let is_same = |var: &Var| keys.iter().any(|key| key == var || equal.has((*key, *var)));
        if !reduction.keys.is_empty() && reduction.keys.iter().all(is_same) {
            passed_on = passed_on.min(reduction.among);
        } else {
            others *= reduction.share.min(1.0);
        }
    }
    (passed_on, others)
}

/// What it takes, by row of the `parent`, to keep the rows that its predicates and reductions, with these [`shares`], leave of it,
/// instead of reading it once more.
pub(crate) fn cost_of_keeping(parent: (f64, f64), (passed_on, others): (f64, f64)) -> f64 {
    KEPT * (parent.0 / parent.1.max(1.0)).min(1.0) * passed_on * others
}

/// Two relations of a join, one below the other, each with the rows that its predicates leave and all of its rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub parent: (f64, f64),
    pub child: (f64, f64),
    /// How many rows of the child that its predicates leave a row of the parent finds.
    pub matches: f64,
    /// What it takes to read a row of the parent again, and one of the child: its keys are tested before what is computed.
    pub again: f64,
    pub reads: f64,
}

impl Pair {
    /// The share of the child's rows that the keys of the parent are expected to leave, if it is worth it to collect
    /// these first. `passed_on` and `others` are the [`shares`] of the parent's rows.
    pub fn gains(&self, (passed_on, others): (f64, f64)) -> Option<f64> {
        let own = (self.parent.0 / self.parent.1.max(1.0)).min(1.0) * others;
        let found = self.parent.1 * own * self.matches;
        let share = (found / self.child.0.max(1.0)).min(1.0);
        let tested = (self.reads - 1.0) * self.child.1;
        let gain = (BUILT * self.child.0 + tested) * passed_on * (1.0 - share);
        let cost = self.again * self.parent.1 + BUILT * self.parent.1 * own * passed_on;
        (own <= REDUCING && gain >= GAIN * cost).then_some(share)
    }
}

/// A relation whose few values of a key reduce another one, where neither is below the other in the tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sideways {
    /// What it takes to read the relation with the values, and all below it, once more, in rows that a scan tests.
    pub cost: f64,
    /// How many rows with a value are left.
    pub values: f64,
    /// The share of the other relation's rows that they are expected to leave.
    pub share: f64,
    /// The rows that the other relation has before.
    pub rows: f64,
    /// The rows of the parent that looks for them, if there is one.
    pub parent: Option<f64>,
}

impl Sideways {
    /// Whether it is worth it to collect the values first. Fewer rows come to a join table, and fewer rows of its parent through it.
    pub fn is_worth_it(&self) -> bool {
        let saved = match self.parent {
            Some(parent) => BUILT * self.rows + parent,
            None => self.rows,
        };
        let gain = saved * (1.0 - self.share);
        self.share <= REDUCING && gain >= GAIN * (self.cost + BUILT * self.values)
    }
}

/// What it takes to read a row of a relation once more, in rows that a scan tests; `None` if it cannot be read again
/// without computing all of it again.
pub(crate) fn cost_again(rel: &Rel) -> Option<f64> {
    match rel {
        Rel::Scan(scan) => {
            let is_stored = |filter: &table::Filter| !matches!(filter.form, table::Form::Any);
            let all = scan.filters.iter().all(is_stored);
            Some(if all { 1.0 } else { COMPUTED })
        }
        Rel::Values { .. } | Rel::Shared { .. } => Some(1.0),
        Rel::Filter { input, predicate } if !predicate.is_volatile() => {
            Some(cost_again(input)?.max(COMPUTED))
        }
        Rel::Map { input, exprs } if !exprs.iter().any(|(_, e)| e.is_volatile()) => {
            Some(cost_again(input)?.max(COMPUTED))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(parent: (f64, f64), child: (f64, f64)) -> Pair {
        Pair {
            parent,
            child,
            matches: child.0 / parent.1.min(child.1),
            again: 1.0,
            reads: 1.0,
        }
    }

    #[test]
    fn keys_are_collected_where_they_save_more_than_they_cost() {
        // A tenth of the posts, and the comments of all posts.
        let posts = pair((1_000.0, 10_000.0), (20_000.0, 20_000.0));
        assert!(posts.gains((1.0, 1.0)).is_some_and(|share| share < 0.11));
        // All posts.
        let posts = pair((10_000.0, 10_000.0), (20_000.0, 20_000.0));
        assert_eq!(posts.gains((1.0, 1.0)), None);
        // But few that another relation leaves.
        assert!(posts.gains((1.0, 0.05)).is_some());
        // What reduces both anyway is no reason.
        assert_eq!(posts.gains((0.05, 1.0)), None);
        // A fourth of the customers, and those of many combinations of marks that a computed predicate leaves.
        let mut marks = pair((100_000.0, 100_000.0), (50_000.0, 2_000_000.0));
        assert_eq!(marks.gains((1.0, 0.25)), None);
        marks.reads = COMPUTED;
        assert!(marks.gains((1.0, 0.25)).is_some());
        // A few countries below many sales.
        let sales = pair((1_000.0, 1_000_000.0), (50.0, 50.0));
        assert_eq!(sales.gains((1.0, 1.0)), None);
    }

    #[test]
    fn few_values_reduce_what_an_equality_across_the_tree_compares_with_them() {
        // The nations of a region, and the customers of orders, whose nation is that of a supplier.
        let nations = Sideways {
            cost: 30.0,
            values: 5.0,
            share: 0.2,
            rows: 150_000.0,
            parent: Some(200_000.0),
        };
        assert!(nations.is_worth_it());
        // Of all regions, and where there are few customers.
        let all = Sideways {
            share: 1.0,
            ..nations
        };
        let few = Sideways {
            rows: 5.0,
            parent: Some(9.0),
            ..nations
        };
        assert!(!all.is_worth_it() && !few.is_worth_it());
    }

    #[test]
    fn reductions_by_equal_keys_pass_on() {
        let mut equal = Classes::default();
        equal.join((1, 2));
        let reduction = |keys: &[Var], share| Reduction {
            keys: keys.to_vec(),
            share,
            among: share,
        };
        let all = [
            reduction(&[1], 0.5),
            reduction(&[2], 0.25),
            reduction(&[3], 0.5),
            reduction(&[], 0.5),
        ];
        assert_eq!(shares(&all, &[2], &equal), (0.25, 0.25));
        assert_eq!(shares(&all, &[3], &equal), (0.5, 0.0625));
    }
}
