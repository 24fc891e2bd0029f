//! Dictionaries: the labels of a text column, the type of its dimension (L1, design point 2).
//!
//! A label's code never changes. The labels of the first block are sorted, so their codes are
//! in order; later labels follow in the order they came, and [`Dictionary::rank`] orders all.

mod builder;
mod loaded;

pub(crate) use builder::DictionaryBuilder;
pub use builder::MOST_LABELS;
pub use loaded::Dictionary;
