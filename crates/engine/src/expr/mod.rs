//! Expressions over vectors, with their types: the `lift` and the `filter` predicates of the LAQ paper.
//!
//! The constructors of this module determine an expression's type and the bounds of its values. Where the bounds
//! prove that nothing overflows, arithmetic is unchecked.

pub(crate) mod arithmetic;
pub(crate) mod build;
mod division;
pub(crate) mod eval;
mod expression;
pub(crate) mod extreme;
pub(crate) mod kernel;
pub(crate) mod ranged;
pub(crate) mod whole;

pub use expression::{
    Arithmetic, Call, CalledPart, Calls, Expr, Extreme, Literal, Node, PerLabel, Ranged,
    is_fallible,
};
pub use kernel::FloatFunction;
pub use whole::{DateField, WholeFunction};
