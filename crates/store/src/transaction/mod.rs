//! Transactions: snapshots, which no later commit changes, and the one write transaction.

pub(crate) mod snapshot;
pub(crate) mod write;
