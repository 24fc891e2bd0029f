//! The one error of exact arithmetic.

/// A result does not fit its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("arithmetic overflow: a result does not fit its type")]
pub struct Overflow;
