//! Dot: composition of matrices, which is also the join.
//!
//! Where rows are known by position dot is [`crate::filter::gather`]. Where keys have to be looked up,
//! [`Direct`] finds integers of a small range by position, [`Ranked`] integers that lie farther apart or are
//! repeated by counting bits, [`Bits`] only tells whether a key is
//! there (a semijoin), and [`Hashed`] finds keys of any number of words, also repeated ones.

mod bits;
mod direct;
mod found;
mod hashed;
mod rank;
mod ranked;

pub use bits::Bits;
pub use direct::Direct;
pub use found::{NONE, exclude, found};
pub use hashed::{Hashed, Part, Probe};
pub use ranked::Ranked;
