//! Lift: element-wise arithmetic on decimal vectors, floats and dates.
//!
//! There are two ways to exact integers. Where [`Bounds`] prove, before a query runs, that no
//! result leaves 64 bits, the plain kernels (`add_i64`, ...) wrap and cost what reading costs.
//! Elsewhere the `try_` kernels give [`Overflow`], never a wrong number. They look at all rows:
//! under nulls the caller provides values that cannot overflow, such as [`blank`] leaves.

mod bounds;
mod checked;
mod dates;
mod extremes;
mod floats;
mod integers;
mod overflow;
mod wide;

pub use bounds::Bounds;
pub use checked::{
    try_add_i64, try_add_i64_const, try_mul_i64, try_mul_i64_const, try_negate_i64, try_sub_i64,
    try_sub_i64_const,
};
pub use dates::{day_of_day, month_of_day, year_of_day};
pub use extremes::{
    greatest_f64, greatest_f64_const, greatest_i64, greatest_i64_const, least_f64, least_f64_const,
    least_i64, least_i64_const,
};
pub use floats::{abs_f64, ceil_f64, floor_f64, round_f64, round_to_i64, sqrt_f64, trunc_f64};
pub use integers::{
    add_f64, add_f64_const, add_i64, add_i64_const, blank, div_f64, div_f64_const, mul_f64,
    mul_f64_const, mul_i64, mul_i64_const, negate_f64, negate_i64, rsub_f64_const, rsub_i64_const,
    scale_i64, select, sub_f64, sub_f64_const, sub_i64, sub_i64_const, to_f64,
};
pub use overflow::Overflow;
pub use wide::{
    narrow, try_add_i128, try_add_i128_const, try_mul_i128, try_mul_i128_const, try_negate_i128,
    try_sub_i128, try_sub_i128_const, widen,
};
