//! What functions of the same groups have in common: `sum(x)` and `avg(x)` one sum, and all functions of what is
//! never NULL the number of rows.

use crate::logical::relation::{Fold, Function};
use crate::vector::value::{Type, Var};

/// Whose state a function's result is made of, by place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedState {
    pub values: usize,
    pub counts: usize,
}

/// For each of `folds`, the first that has the same sums, and the first that counts the same rows; itself where there is
/// none before it. With `empty` groups every sum is counted.
pub(crate) fn shared_states(
    folds: &[Fold],
    types: &dyn Fn(Var) -> Type,
    empty: bool,
) -> Vec<SharedState> {
    let nullable = |fold: &Fold| fold.arg.filter(|arg| types(*arg).nullable);
    let sums = |fold: &Fold| matches!(fold.function, Function::Sum | Function::Avg);
    let counted = |fold: &Fold| match fold.function {
        Function::Count | Function::Avg => true,
        Function::Sum => empty || nullable(fold).is_some(),
        _ => false,
    };
    let share = |(place, fold): (usize, &Fold)| {
        let before = || folds[..place].iter();
        let same_sum = |other: &Fold| sums(other) && other.arg == fold.arg;
        let same_rows = |other: &Fold| counted(other) && nullable(other) == nullable(fold);
        let values = before().position(same_sum).filter(|_| sums(fold));
        let counts = before().position(same_rows).filter(|_| counted(fold));
        SharedState {
            values: values.unwrap_or(place),
            counts: counts.unwrap_or(place),
        }
    };
    folds.iter().enumerate().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::DataType;

    /// Vector 0 is never NULL, vector 1 may be.
    fn found(all: &[(Function, Option<Var>)], empty: bool) -> Vec<(usize, usize)> {
        let types = |var| Type::of(&DataType::Int64, var == 1).unwrap();
        let fold = |(var, (function, arg)): (usize, &(Function, Option<Var>))| Fold {
            var: 10 + var,
            function: *function,
            arg: *arg,
        };
        let folds: Vec<Fold> = all.iter().enumerate().map(fold).collect();
        let shared_states = shared_states(&folds, &types, empty).into_iter();
        shared_states.map(|one| (one.values, one.counts)).collect()
    }

    #[test]
    fn sums_and_counts_of_the_same_rows_are_shared() {
        use Function::{Avg, Count, Max, Sum, SumDistinct};
        let all = [
            (Sum, Some(0)),
            (Sum, Some(1)),
            (Avg, Some(0)),
            (Count, None),
            (Avg, Some(1)),
            (Count, Some(0)),
            (Count, Some(1)),
            (Max, Some(0)),
            (SumDistinct, Some(0)),
        ];
        let groups = [
            (0, 0),
            (1, 1),
            (0, 2),
            (3, 2),
            (1, 1),
            (5, 2),
            (6, 1),
            (7, 7),
            (8, 8),
        ];
        assert_eq!(found(&all, false), groups);
        // The only group may be empty: its sums are NULL then, so that each is counted.
        let one = [
            (0, 0),
            (1, 1),
            (0, 0),
            (3, 0),
            (1, 1),
            (5, 0),
            (6, 1),
            (7, 7),
            (8, 8),
        ];
        assert_eq!(found(&all, true), one);
    }
}
