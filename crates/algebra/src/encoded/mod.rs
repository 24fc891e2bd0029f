//! Encoded: kernels on values as a page stores them, in the narrowest width that holds them.
//!
//! A column of whole numbers is stored by frame of reference: each value is its distance from the
//! least one, in 1, 2, 4 or 8 bytes without sign. A column of texts is stored as codes into its
//! dictionary. [`widen`] and [`widen_at`] decode; [`in_range`] and [`in_table`] test values as they
//! are stored; [`positions`] turns the result of a test into the rows to decode.
//!
//! Tests set bits, not bytes as [`crate::filter`] does: bit `i % 64` of word `i / 64` is row `i`.
//! A block has more rows than a vector, and its masks are combined before the first row is decoded.

mod bits;
mod lanes;
mod value;
mod widen;

pub(crate) use bits::set_where;
pub use bits::{in_range, in_table, positions};
pub use value::{Number, Stored};
pub use widen::{greatest, widen, widen_at};
