//! Transactions: snapshots, which no later commit changes, and the one write transaction, in which
//! others may be nested.

mod nested;
pub(crate) mod snapshot;
pub(crate) mod write;
