//! Aggregate functions, and orders of rows.

use crate::vector::value::Var;

/// An aggregate function and its argument.
#[derive(Clone, Debug)]
pub struct Fold {
    /// The result.
    pub var: Var,
    /// The function.
    pub function: Function,
    /// Its argument; `None` for counting rows.
    pub arg: Option<Var>,
}

/// An aggregate function. Unless it is said, it ignores NULLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The number of values, or of rows if there is no argument.
    Count,
    /// The sum; NULL if there are no values.
    Sum,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The sum divided by the count: a float, or a decimal truncated to its scale.
    Avg,
    /// The number of distinct values.
    CountDistinct,
    /// The sum of the distinct values.
    SumDistinct,
    /// The average of the distinct values.
    AvgDistinct,
    /// The value, or the NULL, in the first row of an order. If the order keeps several rows, all functions of the
    /// aggregation must have that order, and a group has a row for each of them.
    First(RowOrder),
    /// The number of the row in an order: 1 for the first. It may be a rank, which [`RowNumbers`] says. The function has no
    /// argument.
    RowNumber(RowOrder),
    /// The total of counts of parts of the rows; 0 if there are none.
    CountTotal,
    /// The average of all values, from sums of parts of them; NULL if there are no values.
    AvgOfSums {
        /// How many values each sum is of.
        counts: Var,
    },
    /// The variance of a sample; NULL for fewer than two values.
    VarSamp,
    /// The variance of a population; NULL if there are no values.
    VarPop,
    /// The square root of the variance of a sample.
    StddevSamp,
    /// The square root of the variance of a population.
    StddevPop,
    /// A function of pairs of floats; rows in which either is NULL are ignored. The argument is the dependent one, `y`.
    OfPairs {
        /// What is computed.
        function: PairFunction,
        /// The independent one.
        x: Var,
    },
    /// A function that the engine has no accumulator for: an index into [`Query::aggregates`](crate::Query::aggregates).
    Call(usize),
}

/// What is computed of pairs of an independent number `x` and a dependent one `y`. All but the count are NULL of no pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairFunction {
    /// How many pairs there are.
    Count,
    /// The mean of `x`.
    MeanX,
    /// The mean of `y`.
    MeanY,
    /// The sum of the squares of the differences of `x` from their mean.
    SquaresX,
    /// The same of `y`.
    SquaresY,
    /// The sum of the products of both differences.
    Products,
    /// The covariance of a population.
    CovarPop,
    /// The covariance of a sample; NULL of one pair.
    CovarSamp,
    /// The correlation; NULL if all `x` or all `y` are equal.
    Correlation,
    /// The slope of the line of least squares; NULL if all `x` are equal.
    Slope,
    /// Where this line meets the axis of `y`; NULL if all `x` are equal.
    Intercept,
    /// The square of the correlation; NULL if all `x` are equal, or else 1 if all `y` are.
    Determination,
}

impl Function {
    /// The order of rows, if the function has one.
    pub fn order(&self) -> Option<&RowOrder> {
        match self {
            Function::First(order) | Function::RowNumber(order) => Some(order),
            _ => None,
        }
    }

    /// Whether a group may have several rows.
    pub(crate) fn is_of_many(&self) -> bool {
        self.order().is_some_and(RowOrder::is_of_many)
    }

    /// For a function of distinct values: the one of all values that is the same if no value comes twice.
    pub(crate) fn of_distinct(&self) -> Option<Function> {
        match self {
            Function::CountDistinct => Some(Function::Count),
            Function::SumDistinct => Some(Function::Sum),
            Function::AvgDistinct => Some(Function::Avg),
            _ => None,
        }
    }
}

impl Fold {
    /// Calls `f` with each vector that the function reads.
    pub(crate) fn each_var(&self, f: &mut dyn FnMut(Var)) {
        self.arg.iter().for_each(|arg| f(*arg));
        if let Some(order) = self.function.order() {
            order.each_var(f);
        }
        if let Function::AvgOfSums { counts } = self.function {
            f(counts);
        }
        if let Function::OfPairs { x, .. } = self.function {
            f(x);
        }
    }

    /// The vectors that the function reads.
    pub(crate) fn reads(&self) -> Vec<Var> {
        let mut vars = Vec::new();
        self.each_var(&mut |var| vars.push(var));
        vars
    }
}

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
    numbers: RowNumbers,
}

/// What the numbers of rows in an order are, of which only the first few are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowNumbers {
    /// Each row has its own.
    Rows,
    /// Rows that are equal have one: one more than the number of rows before them.
    Ranks,
    /// Rows that are equal have one, and the next ones the next number.
    DenseRanks,
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
            numbers: RowNumbers::Rows,
        })
    }

    /// The same order, of which all rows are kept that are equal to the last one: those with the first ranks.
    pub fn with_ties(self) -> RowOrder {
        RowOrder {
            numbers: RowNumbers::Ranks,
            ..self
        }
    }

    /// The same order, of which all rows are kept that have one of the first few keys: those with the first dense ranks.
    pub fn with_dense_ranks(self) -> RowOrder {
        RowOrder {
            numbers: RowNumbers::DenseRanks,
            ..self
        }
    }

    /// The keys, most significant first.
    pub fn keys(&self) -> &[Key] {
        &self.keys[..self.count]
    }

    /// The vector that is true in the rows that count; `None` if all do.
    pub fn only(&self) -> Option<Var> {
        self.only
    }

    /// What its rows are numbered by.
    pub fn numbers(&self) -> RowNumbers {
        self.numbers
    }

    /// Whether several rows of a group may be kept.
    pub(crate) fn is_of_many(&self) -> bool {
        self.most > 1 || self.numbers != RowNumbers::Rows
    }

    /// How many rows of a group are kept, besides those equal to the last one; of dense ranks, how many different ones.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Calls `f` with each vector that decides which rows are kept.
    pub(crate) fn each_var(&self, f: &mut dyn FnMut(Var)) {
        self.keys().iter().for_each(|key| f(key.var));
        self.only.iter().for_each(|var| f(*var));
    }
}
