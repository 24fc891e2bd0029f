//! The result of a probe: for each key the row it was found at, or [`NONE`].

use crate::fill;
use crate::level::dispatched;

/// The row of a key that was not found.
pub const NONE: u32 = u32::MAX;

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

    /// `out[i]` becomes whether `rows[i]` is a row, not [`NONE`].
    pub fn found(rows: &[u32], out: &mut Vec<bool>) {
        fill::map(rows, out, |row| row != NONE);
    }

    /// Replaces each place by what stands there in `values`; [`NONE`] stays.
    pub(super) fn through(places: &mut [u32], values: &[u32]) {
        for place in places {
            if *place != NONE {
                *place = values[*place as usize];
            }
        }
    }
}
