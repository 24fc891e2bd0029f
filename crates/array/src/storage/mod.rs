//! Arrays in the pages and the catalog of a store.

pub(crate) mod array;
pub(crate) mod cells;
pub(crate) mod codec;
pub(crate) mod dense;
#[cfg(test)]
mod fuzzed;
pub(crate) mod keys;
pub(crate) mod parallel;
pub(crate) mod plane;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod sparse;
pub(crate) mod write;
