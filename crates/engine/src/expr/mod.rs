//! Expressions over vectors: lift and the predicates of filter (L2), with their types.
//!
//! An expression is made by the functions of this module, which find its type and how far its values can
//! reach: where bounds prove that nothing overflows, arithmetic is not checked.

pub(crate) mod arithmetic;
pub(crate) mod build;
pub(crate) mod eval;
mod expression;

pub use expression::{Arithmetic, Call, Expr, Literal, Node, PerLabel, is_fallible};
