//! The bytes of the data file: structures with their checksums, compression, and reading both from
//! a device. `docs/reference/file-format.md` describes them.

pub(crate) mod bytes;
pub(crate) mod codec;
pub(crate) mod disk;
#[cfg(test)]
pub(crate) mod fuzzed;
pub(crate) mod kind;
pub(crate) mod structures;
