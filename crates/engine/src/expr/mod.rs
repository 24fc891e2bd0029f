//! Expressions over vectors, with their types: the `lift` and the `filter` predicates of the LAQ paper.
//!
//! The constructors of this module determine an expression's type and the bounds of its values. Where the bounds
//! prove that nothing overflows, arithmetic is unchecked.

pub(crate) mod arithmetic;
pub(crate) mod build;
pub(crate) mod eval;
mod expression;

pub use expression::{Arithmetic, Call, Expr, Literal, Node, PerLabel, is_fallible};
