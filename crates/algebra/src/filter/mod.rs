//! Filter: predicates on measures and on labels, three-valued logic, and what remains.
//!
//! A predicate gives one `bool` per row. Those of several predicates meet in [`and`], [`or`] and
//! [`not`]; [`positions`] turns the result into a selection vector, which [`gather`] and
//! [`compact`] apply.

mod compare;
mod logic;
mod select;
mod set;

pub use compare::{
    Op, compare_f64, compare_f64_const, compare_i64, compare_i64_const, compare_i128,
    compare_i128_const, compare_u32, compare_u32_const,
};
pub use logic::{and, count, definite, not, or};
pub use select::{compact, gather, positions};
pub use set::{in_set_i64, labels};
