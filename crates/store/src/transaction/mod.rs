//! What callers read and change: a snapshot, which no later commit changes, and the one transaction.

pub(crate) mod snapshot;
pub(crate) mod write;
