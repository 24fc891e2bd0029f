//! Common-aggregate sharing: `sum(x)` and `avg(x)` share one sum, and all functions of columns without NULLs share
//! the number of rows. So accumulators are kept apart from the functions that read them.

use std::sync::Arc;

use crate::logical::aggregate_call::AggregateCall;
use crate::logical::relation::{Fold, Function, RowOrder};
use crate::vector::value::{Type, Var};

/// What is accumulated for each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accumulated {
    pub what: Accumulation,
    /// The argument; `None` for all rows.
    pub arg: Option<Var>,
}

/// What an accumulator computes from the values of its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accumulation {
    /// The number of values that are not NULL.
    Count,
    /// The sum of the values.
    Sum,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The total of counts.
    CountTotal,
    /// The number of the values, their mean, and the sum of the squares of their differences from it.
    Deviations,
    /// The sums by which functions of pairs are computed.
    Pairs {
        /// The independent values.
        x: Var,
    },
    /// The distinct values with their number, and their sum if asked for.
    Distinct {
        /// Whether the sum is asked for.
        sum: bool,
    },
    /// All values, for the function of this number, and for others that want the same.
    Call(usize),
    /// The first rows of an order, with all their columns that are asked for.
    First(RowOrder),
}

impl Accumulation {
    /// Whether the accumulator reads whole rows rather than the values of one argument.
    pub(crate) fn is_of_rows(&self) -> bool {
        matches!(self, Accumulation::First(_) | Accumulation::Pairs { .. })
    }
}

/// The accumulators that the result of a function is computed from, by index in the list of accumulators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResultParts {
    /// The values; for a count, the counts.
    pub values: usize,
    /// The number of values. `None` if it is not needed: every group has a value, or the accumulator of the values
    /// knows which groups have one.
    pub counts: Option<usize>,
}

/// Whether two of the functions `calls` can read the same values of one argument: both want those that are NULL or neither, and
/// neither folds them to its own results. An order or a filter of its own is part of a function or its argument.
fn is_of_same_values(calls: &[Arc<dyn AggregateCall>], one: usize, other: usize) -> bool {
    let all = |call: usize| Some(calls.get(call)?.ignores_nulls()).filter(|_| !calls[call].folds());
    one == other || all(one).is_some() && all(one) == all(other)
}

/// The accumulators for `folds`, each once, and for each function the ones it reads. `empty` says that a group may
/// have no rows; then sums need a count to tell NULL from 0. `calls` are the functions that the engine has no accumulator for.
pub(crate) fn accumulated(
    folds: &[Fold],
    types: &dyn Fn(Var) -> Type,
    empty: bool,
    calls: &[Arc<dyn AggregateCall>],
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
        // A column without NULLs has as many values as there are rows.
        let nullable = arg.filter(|arg| types(*arg).nullable);
        let (values, counts) = match function {
            Function::Count => {
                let values = place(Accumulation::Count, nullable);
                (values, Some(values))
            }
            Function::Sum | Function::Avg => {
                let values = place(Accumulation::Sum, *arg);
                let counted = *function == Function::Avg || empty || nullable.is_some();
                let counts = counted.then(|| place(Accumulation::Count, nullable));
                (values, counts)
            }
            Function::Min => (place(Accumulation::Min, *arg), None),
            Function::Max => (place(Accumulation::Max, *arg), None),
            Function::First(order) | Function::RowNumber(order) => {
                (place(Accumulation::First(*order), None), None)
            }
            Function::CountDistinct | Function::SumDistinct | Function::AvgDistinct => {
                let sum = *function != Function::CountDistinct;
                let values = place(Accumulation::Distinct { sum }, *arg);
                (values, Some(values))
            }
            Function::CountTotal => {
                let values = place(Accumulation::CountTotal, *arg);
                (values, Some(values))
            }
            Function::AvgOfSums { counts } => {
                let values = place(Accumulation::Sum, *arg);
                let counts = place(Accumulation::CountTotal, Some(*counts));
                (values, Some(counts))
            }
            Function::VarSamp | Function::VarPop | Function::StddevSamp | Function::StddevPop => {
                (place(Accumulation::Deviations, *arg), None)
            }
            Function::OfPairs { x, .. } => (place(Accumulation::Pairs { x: *x }, *arg), None),
            Function::Call(call) => {
                let first = folds.iter().find_map(|other| match other.function {
                    Function::Call(first) if other.arg == *arg => {
                        is_of_same_values(calls, first, *call).then_some(first)
                    }
                    _ => None,
                });
                let what = Accumulation::Call(first.unwrap_or(*call));
                (place(what, *arg), None)
            }
        };
        parts.push(ResultParts { values, counts });
    }
    (all, parts)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use Function::{Avg, Call, Count, CountDistinct, Max, Sum, SumDistinct};
    use arrow::array::ArrayRef;
    use arrow::datatypes::DataType;

    /// A function that ignores NULLs or not, and folds or not.
    #[derive(Debug)]
    struct Of(bool, bool);

    impl AggregateCall for Of {
        fn call(
            &self,
            values: &ArrayRef,
            _groups: &[Range<usize>],
        ) -> Result<ArrayRef, Box<dyn std::error::Error + Send + Sync>> {
            Ok(Arc::clone(values))
        }

        fn ignores_nulls(&self) -> bool {
            self.0
        }

        fn folds(&self) -> bool {
            self.1
        }

        fn name(&self) -> String {
            "of".into()
        }
    }

    /// Vector 0 is never NULL, vector 1 may be.
    fn found(all: &[(Function, Option<Var>)], empty: bool) -> (usize, Vec<(usize, Option<usize>)>) {
        let types = |var| Type::of(&DataType::Int64, var == 1).unwrap();
        let fold = |(var, (function, arg)): (usize, &(Function, Option<Var>))| Fold {
            var: 10 + var,
            function: *function,
            arg: *arg,
        };
        let folds: Vec<Fold> = all.iter().enumerate().map(fold).collect();
        let of = [(false, false), (false, false), (true, false), (false, true)];
        let calls = of.map(|(ignores_nulls, folds)| {
            Arc::new(Of(ignores_nulls, folds)) as Arc<dyn AggregateCall>
        });
        let (all, parts) = accumulated(&folds, &types, empty, &calls);
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

    #[test]
    fn calls_of_one_argument_share_its_values() {
        let all = [
            (Call(0), Some(0)),
            (Call(1), Some(0)),
            (Call(1), Some(1)),
            (Call(0), Some(1)),
            // Without NULLs.
            (Call(2), Some(0)),
            (Call(2), Some(0)),
            // Its values become its results.
            (Call(3), Some(0)),
            (Call(3), Some(0)),
            (Call(0), Some(0)),
            // No functions of the query.
            (Call(8), Some(0)),
            (Call(9), Some(0)),
        ];
        let (count, parts) = found(&all, false);
        let parts: Vec<usize> = parts.into_iter().map(|(values, _)| values).collect();
        assert_eq!((count, parts), (6, vec![0, 0, 1, 1, 2, 2, 3, 3, 0, 4, 5]));
    }

    #[test]
    fn merged_averages_share_the_sums_and_totals_of_others() {
        let average = Function::AvgOfSums { counts: 0 };
        let all = [
            (Sum, Some(1)),
            (average, Some(1)),
            (Function::CountTotal, Some(0)),
            (Function::VarPop, Some(1)),
            (Function::StddevSamp, Some(1)),
        ];
        // Accumulated: sum 1, count 1, total 0, deviations of 1.
        let groups = vec![
            (0, Some(1)),
            (0, Some(2)),
            (2, Some(2)),
            (3, None),
            (3, None),
        ];
        assert_eq!(found(&all, false), (4, groups));
    }
}
