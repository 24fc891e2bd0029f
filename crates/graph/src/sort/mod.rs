//! Sorting more edges than fit into memory: sorted runs in a temporary file, then merged.
//!
//! A [`Record`](radix::Record) is a key of 64 bits and perhaps 64 bits that go with it. Equal keys
//! stay in the order in which they came.

pub(crate) mod merge;
pub(crate) mod radix;
pub(crate) mod sorter;
pub(crate) mod spool;
