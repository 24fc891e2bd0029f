//! Relations: the logical form that languages lower to.
//!
//! A relation is a set of rows; its columns are vectors, numbered through the whole query ([`Var`]). In the terms
//! of linear algebra (the LAQ paper), a scan gives bitmap matrices and decimal vectors, a filter a filtered bit
//! vector, a join is a `dot`, and grouping is `krao` of the keys with a fold along them.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use table::{Filter, Table};

use crate::expr::{Expr, Literal};
use crate::logical::aggregate_call::AggregateCall;
use crate::logical::external::ExternalScan;
use crate::vector::value::{Type, Var};

pub use crate::logical::order::{Key, RowOrder};

/// A whole query.
#[derive(Debug, Default)]
pub struct Query {
    /// Name and type of each vector.
    pub vars: Vec<Column>,
    /// Scalar subqueries, in the order they must run; [`crate::Node::Parameter`] is an index into them.
    pub parameters: Vec<(Rel, Var)>,
    /// Aggregate functions of others; [`Function::Call`] is an index into them.
    pub aggregates: Vec<Arc<dyn AggregateCall>>,
}

/// Name and type of a vector.
#[derive(Clone, Debug)]
pub struct Column {
    /// For messages and `explain`.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

impl Query {
    /// Adds a vector and returns its number.
    pub fn add(&mut self, name: impl Into<String>, ty: Type) -> Var {
        self.vars.push(Column {
            name: name.into(),
            ty,
        });
        self.vars.len() - 1
    }

    /// The type of a vector.
    pub fn ty(&self, var: Var) -> &Type {
        &self.vars[var].ty
    }

    /// Narrows the bounds of a vector's type to what its values are known to keep. Its kind stays as it is.
    pub fn narrow(&mut self, var: Var, bounds: (i128, i128)) {
        let own = &mut self.vars[var].ty;
        let narrow = own.clone().within(bounds);
        if narrow.kind == own.kind {
            *own = narrow;
        }
    }

    /// An expression that reads the vector.
    pub fn expr(&self, var: Var) -> Expr {
        Expr::var(var, self.vars[var].ty.clone())
    }
}

/// The answer of a query: vectors as columns of a schema.
#[derive(Clone, Debug)]
pub struct Output {
    /// One per column of the schema.
    pub vars: Vec<Var>,
    /// Names and types of the columns.
    pub schema: SchemaRef,
}

/// A relation.
#[derive(Clone, Debug)]
pub enum Rel {
    /// Rows of a table.
    Scan(Scan),
    /// Rows given in the query.
    Values {
        /// One per column of the batch.
        vars: Vec<Var>,
        /// The rows.
        batch: RecordBatch,
    },
    /// Rows of an external source.
    Read(ExternalScan),
    /// The rows for which the predicate is true.
    Filter {
        /// The rows to filter.
        input: Box<Rel>,
        /// The predicate.
        predicate: Expr,
    },
    /// The same rows with additional vectors.
    Map {
        /// The rows.
        input: Box<Rel>,
        /// The new vectors; each may read those before it.
        exprs: Vec<(Var, Expr)>,
    },
    /// The inner join of any number of relations.
    Join {
        /// The relations, at least one.
        inputs: Vec<Rel>,
        /// Pairs of vectors of two inputs that must be equal and not NULL.
        equal: Vec<(Var, Var)>,
        /// Further join predicates.
        residual: Vec<Expr>,
    },
    /// Semi join: the rows of `input` with a match in `other`; or anti join: those without one.
    Semi {
        /// The rows that are kept or dropped.
        input: Box<Rel>,
        /// The rows to match.
        other: Box<Rel>,
        /// Pairs (of `input`, of `other`) that must be equal and not NULL.
        equal: Vec<(Var, Var)>,
        /// Further join predicates.
        residual: Vec<Expr>,
        /// Whether it is an anti join.
        anti: bool,
    },
    /// Left outer join: all matching pairs, and the rows of `left` without a match, with NULLs.
    Left {
        /// The preserved side.
        left: Box<Rel>,
        /// The side that may be NULL.
        right: Box<Rel>,
        /// Pairs (of `left`, of `right`) that must be equal and not NULL.
        equal: Vec<(Var, Var)>,
        /// Further join predicates.
        residual: Vec<Expr>,
        /// For each vector of `right` that is read: that vector, and the one that holds its value or NULL.
        outer: Vec<(Var, Var)>,
    },
    /// Full outer join: all matching pairs, and the rows of both sides without a match, with NULLs.
    Full {
        /// One side.
        left: Box<Rel>,
        /// The other side.
        right: Box<Rel>,
        /// Pairs (of `left`, of `right`) that must be equal and not NULL.
        equal: Vec<(Var, Var)>,
        /// Further join predicates.
        residual: Vec<Expr>,
        /// For each vector of either side that is read: that vector, and the one that holds its value or NULL.
        outer: Vec<(Var, Var)>,
    },
    /// Aggregation: one row per group; with functions of the first few rows of an order, one for each of those.
    Fold {
        /// The rows to group.
        input: Box<Rel>,
        /// The grouping keys, in which NULLs are equal. Without keys there is exactly one group, even of no rows.
        keys: Vec<Var>,
        /// The aggregate functions.
        folds: Vec<Fold>,
    },
    /// The same rows with what window functions give for each. Rows of equal partition keys, in which NULLs are equal,
    /// are a partition. Several functions over the same partitions and order share one relation, and so one sort.
    ///
    /// Keys that are floats must have one zero and one NaN.
    Window {
        /// The rows.
        input: Box<Rel>,
        /// The partition keys.
        partition: Vec<Var>,
        /// The order of the rows of a partition; without any, all rows of a partition are peers.
        order: Vec<Key>,
        /// The functions.
        functions: Vec<WindowFold>,
    },
    /// The rows in an order, limited, or both.
    Sort {
        /// The rows to sort.
        input: Box<Rel>,
        /// The sort keys, most significant first; without any, the order is arbitrary.
        keys: Vec<Key>,
        /// How many rows to skip.
        skip: usize,
        /// Most rows to return after those.
        fetch: Option<usize>,
    },
    /// The rows of all inputs (UNION ALL).
    Union {
        /// Each input with its vectors, in the order of `vars`.
        inputs: Vec<(Rel, Vec<Var>)>,
        /// The vectors of the result.
        vars: Vec<Var>,
    },
    /// A relation that several others read and that is computed once.
    Shared {
        /// The shared relation.
        input: Arc<Rel>,
        /// For each vector of `input`, its number here.
        vars: Vec<(Var, Var)>,
    },
    /// The rows of a relation that have a match in a join table; only the planner makes these.
    #[doc(hidden)]
    Reduced(Reduced),
}

/// A relation restricted to the rows that have a match in a join table (semi-join reduction). Only the planner can
/// make it, because it names a stage of the program.
#[derive(Clone, Debug)]
pub struct Reduced {
    pub(crate) input: Box<Rel>,
    /// The stage that builds the join table.
    pub(crate) stage: usize,
    /// The vectors to probe with, in the order of the join table's keys.
    pub(crate) keys: Vec<Var>,
}

/// Rows of a table.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The table.
    pub table: Arc<Table>,
    /// Its name in the query.
    pub alias: String,
    /// Vectors and the positions of their columns in the table.
    pub columns: Vec<(Var, usize)>,
    /// Predicates on stored values. A row must pass all.
    pub filters: Vec<Filter>,
    /// The predicates in readable form.
    pub shown: Vec<String>,
    /// Estimated number of rows that pass.
    pub expected: f64,
}

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
    /// The number of the row in an order: 1 for the first. Where rows are kept that are equal to the last one, it is the
    /// rank: one more than the number of rows before it that are not equal to it. The function has no argument.
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
    /// A function that the engine has no accumulator for: an index into [`Query::aggregates`].
    Call(usize),
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
    }

    /// The vectors that the function reads.
    pub(crate) fn reads(&self) -> Vec<Var> {
        let mut vars = Vec::new();
        self.each_var(&mut |var| vars.push(var));
        vars
    }
}

impl Rel {
    /// Calls `f` with each vector of this relation.
    pub fn each_var(&self, f: &mut dyn FnMut(Var)) {
        match self {
            Rel::Scan(scan) => scan.columns.iter().for_each(|(var, _)| f(*var)),
            Rel::Read(reading) => reading.columns.iter().for_each(|(var, _)| f(*var)),
            Rel::Values { vars, .. } | Rel::Union { vars, .. } => {
                vars.iter().for_each(|var| f(*var))
            }
            Rel::Filter { input, .. } | Rel::Sort { input, .. } => input.each_var(f),
            Rel::Reduced(reduced) => reduced.input.each_var(f),
            Rel::Semi { input, .. } => input.each_var(f),
            Rel::Map { input, exprs } => {
                input.each_var(f);
                exprs.iter().for_each(|(var, _)| f(*var));
            }
            Rel::Join { inputs, .. } => inputs.iter().for_each(|input| input.each_var(f)),
            Rel::Left { left, outer, .. } => {
                left.each_var(f);
                outer.iter().for_each(|(_, var)| f(*var));
            }
            Rel::Full { outer, .. } => outer.iter().for_each(|(_, var)| f(*var)),
            Rel::Shared { vars, .. } => vars.iter().for_each(|(_, var)| f(*var)),
            Rel::Fold { keys, folds, .. } => {
                keys.iter().for_each(|var| f(*var));
                folds.iter().for_each(|fold| f(fold.var));
            }
            Rel::Window {
                input, functions, ..
            } => {
                input.each_var(f);
                functions.iter().for_each(|fold| f(fold.var));
            }
        }
    }

    /// Calls `f` with each relation that this one reads.
    pub(crate) fn each_input(&self, f: &mut dyn FnMut(&Rel)) {
        match self {
            Rel::Scan(_) | Rel::Read(_) | Rel::Values { .. } => {}
            Rel::Filter { input, .. }
            | Rel::Map { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Window { input, .. }
            | Rel::Fold { input, .. } => f(input),
            Rel::Reduced(reduced) => f(&reduced.input),
            Rel::Shared { input, .. } => f(input),
            Rel::Join { inputs, .. } => inputs.iter().for_each(f),
            Rel::Union { inputs, .. } => inputs.iter().for_each(|(input, _)| f(input)),
            Rel::Semi { input, other, .. } => [input, other].into_iter().for_each(|input| f(input)),
            Rel::Left { left, right, .. } | Rel::Full { left, right, .. } => {
                [left, right].into_iter().for_each(|input| f(input));
            }
        }
    }

    /// Whether this relation has the vector `var`.
    pub fn gives(&self, var: Var) -> bool {
        let mut found = false;
        self.each_var(&mut |other| found |= other == var);
        found
    }
}

/// A window function and its argument.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFold {
    /// The result.
    pub var: Var,
    /// The function.
    pub function: WindowFunction,
    /// Its argument; `None` for functions of the rows alone.
    pub arg: Option<Var>,
}

/// A window function. Rows of equal sort keys are peers.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowFunction {
    /// The number of the row in its partition, from 1.
    RowNumber,
    /// The number of the first of the row's peers.
    Rank,
    /// The number of the row's peers among all groups of peers, from 1.
    DenseRank,
    /// `(rank - 1) / (rows - 1)`, or 0 in a partition of one row.
    PercentRank,
    /// The share of rows up to the last of the row's peers.
    CumeDist,
    /// The bucket of the row, from 1, where the partition is cut into this many of about the same size.
    Ntile(u64),
    /// The value of the row so many rows before this one (`lag`), or behind it if the number is negative (`lead`).
    Shift {
        /// How many rows.
        rows: i64,
        /// The result where the partition has no such row.
        default: Literal,
    },
    /// The value of the first row of the frame.
    FirstValue(FrameBounds),
    /// The value of the last row of the frame.
    LastValue(FrameBounds),
    /// The value of the row of this number in the frame, from 1.
    NthValue(FrameBounds, u64),
    /// An aggregate of the frame: [`Function::Count`], [`Function::Sum`], [`Function::Min`], [`Function::Max`] or
    /// [`Function::Avg`].
    Aggregate(Function, FrameBounds),
}

/// Which rows around a row are its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameBounds {
    /// Whether the frame begins and ends with peers of the row rather than with the row itself (`range`, rather than
    /// `rows`). Then no edge has a distance.
    pub peers: bool,
    /// The first row.
    pub start: FrameEdge,
    /// The last row.
    pub end: FrameEdge,
}

/// Where a frame begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameEdge {
    /// At the first row of the partition.
    First,
    /// So many rows before the row.
    Preceding(u64),
    /// At the row, or its peers.
    Current,
    /// So many rows behind the row.
    Following(u64),
    /// At the last row of the partition.
    Last,
}

impl WindowFunction {
    /// The frame that it is computed of, if it depends on one.
    pub(crate) fn frame(&self) -> Option<FrameBounds> {
        match self {
            WindowFunction::FirstValue(frame)
            | WindowFunction::LastValue(frame)
            | WindowFunction::NthValue(frame, _)
            | WindowFunction::Aggregate(_, frame) => Some(*frame),
            WindowFunction::RowNumber
            | WindowFunction::Rank
            | WindowFunction::DenseRank
            | WindowFunction::PercentRank
            | WindowFunction::CumeDist
            | WindowFunction::Ntile(_)
            | WindowFunction::Shift { .. } => None,
        }
    }

    /// Its name in `explain`.
    pub(crate) fn name(&self) -> String {
        match self {
            WindowFunction::RowNumber => "row_number".into(),
            WindowFunction::Rank => "rank".into(),
            WindowFunction::DenseRank => "dense_rank".into(),
            WindowFunction::PercentRank => "percent_rank".into(),
            WindowFunction::CumeDist => "cume_dist".into(),
            WindowFunction::Ntile(_) => "ntile".into(),
            WindowFunction::Shift { rows, .. } if *rows < 0 => "lead".into(),
            WindowFunction::Shift { .. } => "lag".into(),
            WindowFunction::FirstValue(_) => "first_value".into(),
            WindowFunction::LastValue(_) => "last_value".into(),
            WindowFunction::NthValue(..) => "nth_value".into(),
            WindowFunction::Aggregate(function, _) => format!("{function:?}").to_lowercase(),
        }
    }
}

impl fmt::Display for FrameBounds {
    /// As SQL writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = if self.peers { "range" } else { "rows" };
        write!(f, "{units} between {} and {}", self.start, self.end)
    }
}

impl fmt::Display for FrameEdge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameEdge::First => write!(f, "unbounded preceding"),
            FrameEdge::Preceding(rows) => write!(f, "{rows} preceding"),
            FrameEdge::Current => write!(f, "current row"),
            FrameEdge::Following(rows) => write!(f, "{rows} following"),
            FrameEdge::Last => write!(f, "unbounded following"),
        }
    }
}
