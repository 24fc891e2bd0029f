//! The bytes of a graph: its entry in the catalog, its metadata page, its index pages, its arrays.

pub(crate) mod array;
#[cfg(test)]
mod fuzzed;
pub(crate) mod meta;
