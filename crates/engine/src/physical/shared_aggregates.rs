//! What the functions of an aggregate have in common: `sum(x)` and `avg(x)` one sum, and all functions of what is
//! never NULL the number of rows. So a function is not accumulated itself, but made of what is.

use crate::logical::relation::{Fold, Function};
use crate::vector::value::{Type, Var};

/// What is accumulated of the rows of each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accumulated {
    pub what: What,
    /// Of this vector; absent for all rows.
    pub arg: Option<Var>,
}

/// See [`Accumulated`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// How many values are not NULL.
    Count,
    /// Their sum.
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The different ones, and how many they are, or how many and their sum.
    Distinct {
        /// Whether their sum is wanted.
        sum: bool,
    },
}

/// What the result of a function is made of, by place in the list of what is accumulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResultParts {
    /// The values: of a count, its counts.
    pub values: usize,
    /// How many values there were. Absent where that is not asked: there is always one, or the values themselves know.
    pub counts: Option<usize>,
}

/// What is accumulated for `folds`, each thing once, and what each result is made of. If `empty`, groups may be
/// without rows, so that sums must know whether there was a value.
pub(crate) fn accumulated(
    folds: &[Fold],
    types: &dyn Fn(Var) -> Type,
    empty: bool,
) -> (Vec<Accumulated>, Vec<ResultParts>) {
    let mut all: Vec<Accumulated> = Vec::new();
    let mut place = |what, arg| {
        let one = Accumulated { what, arg };
        all.iter()
            .position(|other| *other == one)
            .unwrap_or_else(|| {
                all.push(one);
                all.len() - 1
            })
    };
    let mut parts = Vec::with_capacity(folds.len());
    for Fold { function, arg, .. } in folds {
        // Of what is never NULL, all rows are counted.
        let nullable = arg.filter(|arg| types(*arg).nullable);
        parts.push(match function {
            Function::Count => {
                let values = place(What::Count, nullable);
                ResultParts {
                    values,
                    counts: Some(values),
                }
            }
            Function::Sum | Function::Avg => {
                let values = place(What::Sum, *arg);
                let counted = *function == Function::Avg || empty || nullable.is_some();
                let counts = counted.then(|| place(What::Count, nullable));
                ResultParts { values, counts }
            }
            Function::Min | Function::Max => {
                let least = *function == Function::Min;
                let values = place(if least { What::Min } else { What::Max }, *arg);
                ResultParts {
                    values,
                    counts: None,
                }
            }
            Function::CountDistinct | Function::SumDistinct | Function::AvgDistinct => {
                let sum = *function != Function::CountDistinct;
                let values = place(What::Distinct { sum }, *arg);
                ResultParts {
                    values,
                    counts: Some(values),
                }
            }
        });
    }
    (all, parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Function::{Avg, Count, CountDistinct, Max, Sum, SumDistinct};
    use arrow::datatypes::DataType;

    /// Vector 0 is never NULL, vector 1 may be.
    fn found(all: &[(Function, Option<Var>)], empty: bool) -> (usize, Vec<(usize, Option<usize>)>) {
        let types = |var| Type::of(&DataType::Int64, var == 1).unwrap();
        let fold = |(var, (function, arg)): (usize, &(Function, Option<Var>))| Fold {
            var: 10 + var,
            function: *function,
            arg: *arg,
        };
        let folds: Vec<Fold> = all.iter().enumerate().map(fold).collect();
        let (all, parts) = accumulated(&folds, &types, empty);
        let parts = parts.into_iter().map(|one| (one.values, one.counts));
        (all.len(), parts.collect())
    }

    #[test]
    fn sums_and_counts_of_the_same_rows_are_shared() {
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
            (CountDistinct, Some(0)),
            (CountDistinct, Some(0)),
        ];
        // Accumulated: sum 0, sum 1, count 1, count of rows, max 0, two kinds of different values.
        let groups = vec![
            (0, None),
            (1, Some(2)),
            (0, Some(3)),
            (3, Some(3)),
            (1, Some(2)),
            (3, Some(3)),
            (2, Some(2)),
            (4, None),
            (5, Some(5)),
            (6, Some(6)),
            (6, Some(6)),
        ];
        assert_eq!(found(&all, false), (7, groups));
        // The only group may be empty: its sums are NULL then, so that each is counted.
        let (_, one) = found(&all, true);
        assert_eq!(one[0], (0, Some(1)));
        assert_eq!(one[2], (0, Some(1)));
    }
}
