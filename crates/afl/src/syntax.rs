//! Statements as they are written.

use array::expr::{BinaryOp, Expr};
use array::{Aggregate, Bound, DataType, Decimal, Dimension, Schema, SortKey};

use crate::error::Span;

/// The names of the operators, in order.
pub const OPERATORS: [&str; 30] = [
    "add",
    "aggregate",
    "apply",
    "between",
    "build",
    "compare",
    "concat",
    "cross_join",
    "divide",
    "filter",
    "histogram",
    "join",
    "matmul",
    "multiply",
    "opposite",
    "project",
    "quantile",
    "rechunk",
    "redimension",
    "regrid",
    "rename",
    "scan",
    "slice",
    "sort",
    "subarray",
    "subset",
    "subtract",
    "transpose",
    "variable_window",
    "window",
];

/// A statement.
#[derive(Debug, Clone)]
pub(crate) enum Statement {
    Query(Query),
    Create {
        name: Name,
        schema: Schema,
    },
    /// What a query gives, as an array of its own.
    Store {
        query: Query,
        name: Name,
    },
    /// The cells that a query gives, over those of an array.
    Insert {
        query: Query,
        name: Name,
    },
    /// The cells that a query gives, behind an array.
    Append {
        query: Query,
        name: Name,
        dimension: Name,
    },
    /// The cells of an array that a query gives, which become absent.
    Delete {
        cells: Query,
        name: Name,
    },
    /// An array, or a version of one.
    Remove(Name),
    /// An array as it is now, kept under a name.
    CreateVersion {
        array: Name,
        version: Name,
    },
    List,
    Versions(Name),
    Show(Query),
}

impl Statement {
    /// The word that it begins with.
    pub fn name(&self) -> &'static str {
        match self {
            Statement::Query(_) => "query",
            Statement::Create { .. } => "create array",
            Statement::CreateVersion { .. } => "create version",
            Statement::Store { .. } => "store",
            Statement::Insert { .. } => "insert",
            Statement::Append { .. } => "append",
            Statement::Delete { .. } => "delete",
            Statement::Remove(_) => "remove",
            Statement::List => "list",
            Statement::Versions(_) => "versions",
            Statement::Show(_) => "show",
        }
    }
}

/// A name, and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub text: String,
    pub span: Span,
}

/// An array: one that is stored, or an operator.
#[derive(Debug, Clone)]
pub(crate) enum Query {
    Array(Name),
    Call(Box<Call>),
}

/// An operator, its inputs, and where its name stands.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub operator: Operator,
    pub inputs: Vec<Query>,
    pub span: Span,
}

/// What an operator does, without its inputs.
#[derive(Debug, Clone)]
pub(crate) enum Operator {
    Scan,
    Subarray(Vec<Bound>),
    Subset(Vec<(String, Bound, Bound)>),
    Between(Vec<Bound>),
    Slice(Vec<(String, Decimal)>),
    Filter(Expr),
    Apply(Vec<(String, Expr)>),
    Project(Vec<String>),
    Rename(Vec<(String, String)>),
    Aggregate(Vec<Aggregate>, Vec<String>),
    Window(Vec<u64>, Vec<Aggregate>),
    VariableWindow(String, (u64, u64), Vec<Aggregate>),
    Quantile(String, Vec<Decimal>, Vec<String>),
    Histogram(String, u64, Option<(f64, f64)>),
    Regrid(Vec<u64>, Vec<Aggregate>),
    Transpose(Vec<String>),
    Rechunk(Vec<u64>),
    Concat(Option<String>),
    /// Between two arrays, or an array and a value: on which side that stands.
    Binary(BinaryOp, Option<(Expr, Side)>),
    Opposite,
    Join,
    CrossJoin(Vec<(String, String)>),
    Matmul,
    /// With the attributes that are kept, and their types where these are said.
    Redimension(
        Vec<Dimension>,
        Vec<(String, Option<DataType>)>,
        Vec<Aggregate>,
    ),
    Sort(Vec<SortKey>),
    Build(Box<Schema>, Expr),
}

/// On which side of an operator a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}
