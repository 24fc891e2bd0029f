//! Expressions over the attributes and dimensions of a cell: written, given types, evaluated.

pub(crate) mod bind;
pub(crate) mod evaluate;
pub(crate) mod kernels;
pub(crate) mod operand;
pub(crate) mod syntax;
pub(crate) mod zones;

pub use syntax::{BinaryOp, Expr, UnaryOp, name, value};
