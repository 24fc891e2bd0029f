//! The state of an open store beside the page map: versions, free space, and the state of the
//! writer. Recovery makes these, the store changes them.

pub(crate) mod free;
pub(crate) mod group;
pub(crate) mod version;
pub(crate) mod writer;
