//! As-of joins: of the rows of the build side with the same keys, only the one whose number is nearest to that of the probing row, on
//! one side of it.

use algebra::filter::Op as Compare;

use crate::logical::relation::Key;
use crate::vector::value::Var;

/// Which row of the build side matches.
#[derive(Clone, Debug)]
pub(crate) struct Nearest {
    /// The number of the build side.
    pub of: Var,
    /// How it compares with that of the probing row: `of <= at` finds the greatest one that is at most `at`.
    pub op: Compare,
    /// The number of the probing row.
    pub at: Var,
    /// What else must hold of the number that is found, with other numbers of the probing row.
    pub bounds: Vec<(Compare, Var)>,
    /// Of several rows with the nearest number, the last of this order if the greatest is sought, else the first.
    pub ties: Vec<Key>,
}

impl Nearest {
    /// The vectors of the probing rows that it reads.
    pub fn reads(&self) -> impl Iterator<Item = Var> {
        let bounds = self.bounds.iter().map(|(_, var)| *var);
        std::iter::once(self.at).chain(bounds)
    }

    /// The place of the match of `at` among ascending numbers.
    pub fn place(&self, numbers: &[i64], at: i64) -> Option<usize> {
        let below = |inclusive: bool| {
            numbers.partition_point(|number| *number < at || inclusive && *number == at)
        };
        match self.op {
            Compare::Le => below(true).checked_sub(1),
            Compare::Lt => below(false).checked_sub(1),
            Compare::Ge => Some(below(false)).filter(|place| *place < numbers.len()),
            Compare::Gt => Some(below(true)).filter(|place| *place < numbers.len()),
            // The planner makes none of these.
            Compare::Eq | Compare::Ne => None,
        }
    }
}

/// Whether a number of the build side compares so with one of the probing row.
pub(crate) fn holds(op: Compare, of: i64, at: i64) -> bool {
    match op {
        Compare::Lt => of < at,
        Compare::Le => of <= at,
        Compare::Gt => of > at,
        Compare::Ge => of >= at,
        Compare::Eq => of == at,
        Compare::Ne => of != at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_on_its_side() {
        let numbers = [1, 3, 3, 7];
        let cases = [
            (Compare::Le, 3, Some(2)),
            (Compare::Lt, 3, Some(0)),
            (Compare::Ge, 3, Some(1)),
            (Compare::Gt, 3, Some(3)),
            (Compare::Le, 0, None),
            (Compare::Lt, 1, None),
            (Compare::Ge, 8, None),
            (Compare::Gt, 7, None),
            (Compare::Le, i64::MAX, Some(3)),
            (Compare::Ge, i64::MIN, Some(0)),
        ];
        for (op, at, place) in cases {
            let nearest = Nearest {
                of: 0,
                op,
                at: 1,
                bounds: vec![],
                ties: vec![],
            };
            assert_eq!(nearest.place(&numbers, at), place, "{op:?} {at}");
            let holds = place.is_none_or(|place| holds(op, numbers[place], at));
            assert!(holds, "{op:?} {at}");
        }
    }
}
