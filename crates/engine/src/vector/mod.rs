//! Vectors of values and what is built of them: batches, column builders, strings, keys, radix partitions.

pub(crate) mod batch;
pub(crate) mod builder;
pub(crate) mod composite_key;
pub(crate) mod interner;
pub(crate) mod key_encoding;
pub(crate) mod opaque;
pub(crate) mod radix;
pub(crate) mod rows;
pub(crate) mod strings;
pub(crate) mod value;
