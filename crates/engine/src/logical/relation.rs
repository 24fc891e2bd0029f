//! Relations: the logical form that languages lower to.
//!
//! A relation is a set of rows; its columns are vectors, numbered through the whole query ([`Var`]). In the terms
//! of linear algebra (the LAQ paper), a scan gives bitmap matrices and decimal vectors, a filter a filtered bit
//! vector, a join is a `dot`, and grouping is `krao` of the keys with a fold along them.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::expr::Expr;
use crate::logical::aggregate_call::AggregateCall;
use crate::logical::external::ExternalScan;
use crate::logical::row_function::RowFunction;
use crate::logical::samples::Samples;
pub use crate::logical::scan::Scan;
use crate::logical::window::WindowFold;
use crate::vector::value::{Type, Var};
use algebra::filter::Op as Compare;

pub use crate::logical::aggregate::{Fold, Function, Key, PairFunction, RowNumbers, RowOrder};

/// A whole query.
#[derive(Debug, Default)]
pub struct Query {
    /// Name and type of each vector.
    pub vars: Vec<Column>,
    /// Scalar subqueries, in the order they must run; [`crate::Node::Parameter`] is an index into them.
    pub parameters: Vec<(Rel, Var)>,
    /// Aggregate functions of others; [`Function::Call`] is an index into them.
    pub aggregates: Vec<Arc<dyn AggregateCall>>,
    /// What samples of its tables tell, for estimates.
    pub(crate) samples: Samples,
    /// A seed by which inner joins get any order instead of a good one: see
    /// [`Execution::any_join_order`](crate::Execution::any_join_order).
    pub any_order: Option<u64>,
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

    /// If joins get any order: a number below `many`.
    pub(crate) fn draw(&mut self, many: usize) -> Option<usize> {
        let seed = self.any_order.as_mut()?;
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Some((*seed >> 33) as usize % many.max(1))
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
    /// The rows that a function makes of the rows of another relation. No operator below or above it is moved across it.
    Expand {
        /// The rows, whose vectors those that are made of them keep.
        input: Box<Rel>,
        /// The function.
        function: Arc<dyn RowFunction>,
        /// Its arguments, which are vectors of the input.
        args: Vec<Expr>,
        /// The vectors of the columns that it adds.
        vars: Vec<Var>,
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
    /// As-of join: the rows of `left`, each with the one row of `right` that is nearest to it.
    AsOf(AsOf),
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
    /// are a partition. Several functions over the same partitions and order share one relation. Relations of which one
    /// is the input of the other share a sort where the keys of one begin with those of the other.
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

impl Rel {
    /// Calls `f` with each vector of this relation.
    pub fn each_var(&self, f: &mut dyn FnMut(Var)) {
        match self {
            Rel::Scan(scan) => scan.each_var(f),
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
            Rel::Expand { input, vars, .. } => {
                input.each_var(f);
                vars.iter().for_each(|var| f(*var));
            }
            Rel::Join { inputs, .. } => inputs.iter().for_each(|input| input.each_var(f)),
            Rel::AsOf(join) => {
                join.left.each_var(f);
                join.outer.iter().for_each(|(_, var)| f(*var));
            }
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
    pub(crate) fn each_input<'r>(&'r self, f: &mut dyn FnMut(&'r Rel)) {
        match self {
            Rel::Scan(_) | Rel::Read(_) | Rel::Values { .. } => {}
            Rel::Filter { input, .. }
            | Rel::Map { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Window { input, .. }
            | Rel::Expand { input, .. }
            | Rel::Fold { input, .. } => f(input),
            Rel::Reduced(reduced) => f(&reduced.input),
            Rel::Shared { input, .. } => f(input),
            Rel::Join { inputs, .. } => inputs.iter().for_each(f),
            Rel::Union { inputs, .. } => inputs.iter().for_each(|(input, _)| f(input)),
            Rel::Semi { input, other, .. } => [input, other].into_iter().for_each(|input| f(input)),
            Rel::AsOf(join) => [&join.left, &join.right]
                .into_iter()
                .for_each(|input| f(input)),
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
