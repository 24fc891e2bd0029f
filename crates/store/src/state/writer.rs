//! The writer's own state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::catalog::spaces::Bytes;
use crate::error::Error;
use crate::format::structures::{Blob, Directory, Root};
use crate::log::Log;
use crate::space::pending::Pending;
use crate::state::version::Version;

/// The writer's state beyond the page map: log, newest root, and what the next checkpoint writes.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) log: Log,
    /// The version that the next transaction begins from; readers may not see it yet.
    pub(crate) head: Arc<Version>,
    /// Whether a transaction is under way: then the files are those of this handle.
    pub(crate) open: bool,
    /// Keys that were set beside the transaction that is under way, which began without them.
    pub(crate) aside: BTreeMap<(u32, Bytes), Bytes>,
    /// The newest durable root.
    pub(crate) root: Root,
    /// The directory that it points to.
    pub(crate) directory: Directory,
    /// Map chunks changed since then.
    pub(crate) chunks: BTreeSet<u32>,
    /// Catalog spaces changed since then.
    pub(crate) spaces: BTreeSet<u32>,
    /// Freed pages whose space and id are still kept. The map on disk does not have them.
    pub(crate) pending: Pending,
    /// Structures of a root that was perhaps written: not free before a later root is durable.
    pub(crate) limbo: Vec<Blob>,
    /// The log length at which a commit tries a checkpoint.
    pub(crate) due: u64,
    pub(crate) checkpoint_failure: Option<Error>,
}
