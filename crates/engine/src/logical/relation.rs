//! What a query asks for, as relations over matrices: the form that languages lower to.
//!
//! A relation is a set of rows; its columns are vectors that are numbered through the whole query ([`Var`]).
//! In the terms of the linear algebra: a scan gives bitmap matrices and decimal vectors, a filter a filtered
//! bit vector, a join is a `dot`, grouping is `krao` of the keys, folding sums along it (L1, L2).

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use table::{Filter, Table};

use crate::expr::Expr;
use crate::logical::external::Reading;
use crate::vector::value::{Type, Var};

/// A whole query.
#[derive(Debug, Default)]
pub struct Query {
    /// Name and type of each vector.
    pub vars: Vec<Column>,
    /// Subqueries of one value, in the order they must run: [`crate::Node::Parameter`] counts in them.
    pub parameters: Vec<(Rel, Var)>,
}

/// Name and type of a vector.
#[derive(Clone, Debug)]
pub struct Column {
    /// For people.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

impl Query {
    /// Numbers a new vector.
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

    /// The vector as an expression.
    pub fn expr(&self, var: Var) -> Expr {
        Expr::var(var, self.vars[var].ty.clone())
    }
}

/// What a query delivers: vectors, as columns of a schema.
#[derive(Clone, Debug)]
pub struct Output {
    /// One per column.
    pub vars: Vec<Var>,
    /// Names and types of the columns.
    pub schema: SchemaRef,
}

/// A relation.
#[derive(Clone, Debug)]
pub enum Rel {
    /// Rows of a table.
    Scan(Scan),
    /// Rows that are given.
    Values {
        /// One per column of the batch.
        vars: Vec<Var>,
        /// The rows.
        batch: RecordBatch,
    },
    /// Rows that others decode.
    Read(Reading),
    /// The rows of which the predicate is true.
    Filter {
        /// Of these.
        input: Box<Rel>,
        /// The predicate.
        predicate: Expr,
    },
    /// The same rows with more vectors.
    Map {
        /// These rows.
        input: Box<Rel>,
        /// The new vectors; each may read those before it.
        exprs: Vec<(Var, Expr)>,
    },
    /// All combinations of rows that agree (inner join of any number of relations).
    Join {
        /// At least one.
        inputs: Vec<Rel>,
        /// Pairs of vectors of two inputs that must be equal, and not NULL.
        equal: Vec<(Var, Var)>,
        /// What must be true besides.
        residual: Vec<Expr>,
    },
    /// The rows of `input` that have a partner in `other`, or (`anti`) that have none.
    Semi {
        /// These rows.
        input: Box<Rel>,
        /// Where the partners are.
        other: Box<Rel>,
        /// Pairs (of `input`, of `other`) that must be equal, and not NULL.
        equal: Vec<(Var, Var)>,
        /// What must be true of both besides.
        residual: Vec<Expr>,
        /// Rows without a partner.
        anti: bool,
    },
    /// All combinations that agree, and the rows of `left` that have no partner with NULLs.
    Left {
        /// Rows that stay.
        left: Box<Rel>,
        /// Rows that may be missing.
        right: Box<Rel>,
        /// Pairs (of `left`, of `right`) that must be equal, and not NULL.
        equal: Vec<(Var, Var)>,
        /// What must be true of both besides, to be partners.
        residual: Vec<Expr>,
        /// For each vector of `right` that is read, the one that holds it or NULL.
        outer: Vec<(Var, Var)>,
    },
    /// All combinations that agree, and the rows of both sides that have no partner with NULLs.
    Full {
        /// Rows of the one side.
        left: Box<Rel>,
        /// Rows of the other.
        right: Box<Rel>,
        /// Pairs (of `left`, of `right`) that must be equal, and not NULL.
        equal: Vec<(Var, Var)>,
        /// What must be true of both besides, to be partners.
        residual: Vec<Expr>,
        /// For each vector of either side that is read, the one that holds it or NULL.
        outer: Vec<(Var, Var)>,
    },
    /// One row per group.
    Fold {
        /// Of these rows.
        input: Box<Rel>,
        /// What rows of a group agree in (NULLs agree); none: one group, though there be no row.
        keys: Vec<Var>,
        /// What is found of each group.
        folds: Vec<Fold>,
    },
    /// The rows in order, all or some.
    Sort {
        /// These rows.
        input: Box<Rel>,
        /// In the order of the first, then of the second, ...; none: in any order.
        keys: Vec<Key>,
        /// How many are left out at the start.
        skip: usize,
        /// How many follow at most.
        fetch: Option<usize>,
    },
    /// The rows of all inputs.
    Union {
        /// Each with its vectors, in the order of `vars`.
        inputs: Vec<(Rel, Vec<Var>)>,
        /// What they are called afterwards.
        vars: Vec<Var>,
    },
    /// The rows of `input`, which are found once for all relations that share it.
    Shared {
        /// These rows.
        input: Arc<Rel>,
        /// For each vector of `input`, what it is called here.
        vars: Vec<(Var, Var)>,
    },
    /// The rows of a relation that have a match in a join table; only the planner makes these.
    #[doc(hidden)]
    Reduced(Reduced),
}

/// A relation of which only the rows are read that have a match in a join table (semi-join reduction). It cannot be made
/// outside of the planner, as it names a stage of the program.
#[derive(Clone, Debug)]
pub struct Reduced {
    pub(crate) input: Box<Rel>,
    /// The stage that makes the join table.
    pub(crate) stage: usize,
    /// The vectors to look for, in the order of the table's keys.
    pub(crate) keys: Vec<Var>,
}

/// Rows of a table.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The table.
    pub table: Arc<Table>,
    /// What it is called in the query.
    pub alias: String,
    /// Vectors and the positions of their columns.
    pub columns: Vec<(Var, usize)>,
    /// Tests on stored values; rows must pass all.
    pub filters: Vec<Filter>,
    /// The filters as people write them.
    pub shown: Vec<String>,
    /// Rows that are expected to pass.
    pub expected: f64,
}

/// What is found of a group.
#[derive(Clone, Debug)]
pub struct Fold {
    /// The result.
    pub var: Var,
    /// Which.
    pub function: Function,
    /// Of which vector; absent for the number of rows.
    pub arg: Option<Var>,
}

/// A function of the values of a group; NULLs are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// How many there are; rows if there is no argument.
    Count,
    /// Their sum; NULL if there are none.
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// Sum by count: a float, or a decimal whose further digits are cut off.
    Avg,
    /// How many different ones there are.
    CountDistinct,
    /// The sum of the different ones.
    SumDistinct,
    /// The average of the different ones.
    AvgDistinct,
}

/// One key of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The vector.
    pub var: Var,
    /// The greatest first.
    pub descending: bool,
    /// NULLs before all others.
    pub nulls_first: bool,
}

impl Rel {
    /// Calls `f` with each vector that it gives.
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
        }
    }

    /// Whether it gives `var`.
    pub fn gives(&self, var: Var) -> bool {
        let mut found = false;
        self.each_var(&mut |other| found |= other == var);
        found
    }
}
