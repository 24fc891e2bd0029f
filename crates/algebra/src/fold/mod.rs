//! Fold: sums, counts and extremes per group.
//!
//! Accumulators (*states*) are slices indexed by group number, one element per group. With AVX-512 up
//! to [`FEW`] states are kept in registers and updated under masks; otherwise each row updates its
//! state in memory. Without group numbers (`None`) all rows go to the first state. Rows that are not valid are left
//! out; a group that had no valid row keeps its state, which is why extremes have `seen`, and sums
//! a count beside them. A selection may be given as validity instead of being applied first.
//!
//! Sums of integers are exact: into 128 bits, or into 64 where bounds proved that no sum
//! overflows. Sums of floats depend on the order of rows, within rounding.

mod extremes;
#[cfg(target_arch = "x86_64")]
mod few;
mod piece;
mod scatter;
mod sums;

pub use extremes::{max_f64, max_i64, max_i128, min_f64, min_i64, min_i128};
pub use piece::FEW;
pub use sums::{count, sum_f64, sum_i64, sum_i64_small, sum_i128};
