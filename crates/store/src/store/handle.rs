//! The open store: a data file and its log.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use buffer::Pool;
use io::Device;
use parking_lot::{Condvar, Mutex, RwLock};

use crate::error::{Error, Result};
use crate::format::structures::Identity;
use crate::log::report::Recovery;
use crate::options::Durability;
use crate::space::pages::Pages;
use crate::state::free::Free;
use crate::state::group::Group;
use crate::state::version::{Version, Versions};
use crate::state::writer::Writer;
use crate::store::hold::Hold;

/// A data file and its log, open.
///
/// Lock order: `checkpointing`, then the gate (held by a transaction, and by a checkpoint at its
/// beginning), then `writer`, then the state of `group`, then `syncing`, `free`, `versions` or
/// `current`; none of the last four is held while another is taken.
pub struct Store {
    pub(crate) identity: Identity,
    pub(crate) hold: Hold,
    /// Whether a root slot was invalid when the store was opened, until the first that writes has
    /// completed what a crash left half done.
    pub(super) unsettled: Mutex<Option<bool>>,
    pub(crate) pages: Arc<Pages>,
    pub(crate) pool: Arc<Pool>,
    /// Free parts of the file and free ids; held for as long as it takes to find some, or to find out what is free.
    pub(crate) free: Mutex<Free>,
    /// The version that readers see.
    pub(super) current: RwLock<Arc<Version>>,
    /// Versions that become durable together.
    pub(crate) group: Group,
    /// The device of the log, to be synced while the writer goes on.
    pub(super) log: Arc<dyn Device>,
    /// Whether the data file has grown since a commit synced it.
    pub(super) grown: AtomicBool,
    /// Held while the data file is synced: the system tells of a failure once, and whoever else has
    /// written must hear of it too.
    pub(super) syncing: Mutex<()>,
    /// Whether a thread was started that does a checkpoint.
    pub(super) begun: AtomicBool,
    /// Held by whoever does a checkpoint.
    pub(crate) checkpointing: Mutex<()>,
    /// What a commit survives unless its transaction says something else.
    pub(crate) durability: Durability,
    /// Pages of at most this many bytes go to the log, too.
    pub(crate) small_commit: usize,
    /// Commits, syncs of the data file and bytes written to it, since the store was opened.
    pub(crate) commits: AtomicU64,
    pub(crate) data_syncs: AtomicU64,
    pub(crate) data_bytes: AtomicU64,
    pub(crate) versions: Mutex<Versions>,
    /// Whether there is a writer.
    pub(super) busy: Mutex<bool>,
    /// Threads that write, or wait for the write lock.
    pub(super) writers: AtomicUsize,
    /// Signalled when the writer leaves.
    pub(super) left: Condvar,
    /// What only the writer changes.
    pub(crate) writer: Mutex<Writer>,
    /// The failure after which nothing is committed any more.
    pub(crate) latch: OnceLock<Arc<Error>>,
    pub(crate) checkpoints: AtomicU64,
    pub(super) checkpoint_bytes: u64,
    /// What is written begins at multiples of this many bytes.
    pub(super) alignment: AtomicU64,
    /// Whether pages are compressed when they are written.
    pub(crate) compress: bool,
    pub(super) recovery: Recovery,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.data().path())
            .field("access", &self.hold.access())
            .field("version", &self.current.read().number)
            .finish_non_exhaustive()
    }
}

impl Store {
    pub(crate) fn data(&self) -> &Arc<dyn Device> {
        &self.pages.device
    }

    pub(crate) fn pages(&self) -> &Arc<Pages> {
        &self.pages
    }

    /// The data file.
    pub fn path(&self) -> &Path {
        self.data().path()
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.identity.page_size as usize
    }

    /// The unique id of this store, 16 bytes.
    pub fn id(&self) -> [u8; 16] {
        self.identity.id
    }

    /// When the store was created, in seconds since 1970.
    pub fn created(&self) -> u64 {
        self.identity.created
    }

    /// What opening the store found in its log.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The pool through which pages are read.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// What reads pages from the disk.
    pub fn reader(&self) -> io::Chosen {
        self.pages.queue.backend()
    }

    /// The counters of what was read from the disk.
    pub fn reads(&self) -> io::Statistics {
        self.pages.queue.statistics()
    }

    /// What of the options for reading the system refused, so that reads go another way: a ring of
    /// io_uring, direct I/O, or registered frames.
    pub fn notes(&self) -> Vec<String> {
        let reader = self.reader();
        let ring = reader
            .detail
            .filter(|_| reader.backend != io::Backend::Uring);
        let frames = self.pages.registered.get();
        let frames = frames.and_then(|registered| registered.as_ref().err());
        ring.into_iter()
            .chain(self.data().notes())
            .chain(frames.map(io::Error::to_string))
            .collect()
    }

    pub(crate) fn not_latched(&self) -> Result<()> {
        match self.latch.get() {
            None => Ok(()),
            Some(cause) => Err(Error::Latched {
                path: self.path().to_path_buf(),
                cause: cause.clone(),
            }),
        }
    }

    /// Remembers the first failure that leaves open what is on disk: nothing is committed after.
    pub(crate) fn latch(&self, cause: Error) -> Error {
        let cause = self.latch.get_or_init(|| Arc::new(cause));
        Error::Latched {
            path: self.path().to_path_buf(),
            cause: cause.clone(),
        }
    }

    /// A log that fails, other than for want of space, takes no more records.
    pub(crate) fn latch_unless_full(&self, error: Error) -> Error {
        if error.is_full() {
            error
        } else {
            self.latch(error)
        }
    }

    /// Makes what was written to the data file durable, for a commit whose record speaks of it.
    pub(crate) fn sync_data(&self) -> Result<()> {
        // Before, so that what grows meanwhile is synced by the next commit.
        self.grown.store(false, Ordering::Relaxed);
        self.sync_written()
    }

    /// The same, beside commits. A disk that is found full only now is a failure like any other: what
    /// was written before may be lost.
    pub(crate) fn sync_written(&self) -> Result<()> {
        let _syncing = self.syncing.lock();
        self.not_latched()?;
        self.data_syncs.fetch_add(1, Ordering::Relaxed);
        let synced = self.data().sync();
        synced.map_err(|error| self.latch(Error::Io(Arc::new(error))))
    }

    /// Writes to the data file.
    pub(crate) fn write_data(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.data_bytes
            .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(self.data().write_at(offset, bytes)?)
    }

    pub(crate) fn current(&self) -> Arc<Version> {
        self.current.read().clone()
    }

    /// Empties the pool, but for pinned pages, and asks the operating system to drop what it has
    /// cached of the data file: the next reads come from the disk (row M3).
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn forget(&self) -> Result<()> {
        self.pool.clear();
        Ok(self.data().forget()?)
    }
}
