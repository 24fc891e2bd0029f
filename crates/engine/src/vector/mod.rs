//! Vectors of values and what is made of them: batches, columns that grow, strings, keys, partitions.

pub(crate) mod batch;
pub(crate) mod builder;
pub(crate) mod composite_key;
pub(crate) mod interner;
pub(crate) mod key_encoding;
pub(crate) mod radix;
pub(crate) mod rows;
pub(crate) mod strings;
pub(crate) mod value;
