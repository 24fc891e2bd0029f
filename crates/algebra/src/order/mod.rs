//! Order: sorting rows by keys, and the first of an order.
//!
//! Keys are columns of words whose unsigned order is the wanted one: [`encode_i64`] and its like
//! make them. A column that has nulls is two words, of which [`encode_nulls`] makes the first.

mod encode;
mod sort;
mod top;

pub use encode::{Direction, encode_f64, encode_i64, encode_i128, encode_nulls, encode_u64};
pub use sort::Sorter;
pub use top::Top;
