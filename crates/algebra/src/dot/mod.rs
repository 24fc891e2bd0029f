//! Dot: composition of matrices, which is also the join.
//!
//! Where rows are known by position dot is [`crate::filter::gather`]. Where keys have to be looked up,
//! [`Direct`] finds integers of a small range by position, [`Ranked`] integers that lie farther apart or are
//! repeated by counting bits, [`Bits`] only tells whether a key is
//! there (a semijoin), and [`Hashed`] finds keys of any number of words, also repeated ones.

mod bits;
mod direct;
mod hashed;
mod rank;
mod ranked;

pub use bits::Bits;
pub use direct::Direct;
pub use hashed::{Hashed, Part, Probe};
pub use ranked::Ranked;

/// No row.
pub const NONE: u32 = u32::MAX;

use crate::fill;
use crate::level::dispatched;

dispatched! {
    /// Puts [`NONE`] where `valid` is false: a null key finds nothing.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn exclude(rows: &mut [u32], valid: &[bool]) {
        assert_eq!(rows.len(), valid.len(), "two inputs of different lengths");
        for (row, valid) in rows.iter_mut().zip(valid) {
            *row = if *valid { *row } else { NONE };
        }
    }

    /// Where a row was found.
    pub fn found(rows: &[u32], out: &mut Vec<bool>) {
        fill::map(rows, out, |row| row != NONE);
    }
}
