//! The store: what an open data file and its log are together.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use buffer::{PageId, Pool};
use io::{Device, File};
use parking_lot::{Condvar, Mutex, RwLock};

use crate::catalog::Catalog;
use crate::changes::Changes;
use crate::creation::unfinished;
use crate::disk;
use crate::error::{Error, Result};
use crate::extents::{Extents, Ids};
use crate::format::{Blob, CHUNK, Directory, FIRST_EXTENT, Identity, Root, aligned};
use crate::hold::Hold;
use crate::kind::Codec;
use crate::log::{Log, MAX_BODY};
use crate::options::{Access, Options};
use crate::pending::Pending;
use crate::report::Recovery;
use crate::snapshot::{Snapshot, Version, Versions};
use crate::source::Pages;
use crate::statistics::Statistics;
use crate::transaction::Transaction;

/// What [`Options::checkpoint_bytes`] is unless it is set.
pub const CHECKPOINT_BYTES: u64 = 16 << 20;

/// A data file and its log, open.
///
/// Lock order: the gate (held by a transaction, a checkpoint), then `writer`, then `space` or
/// `versions` or `current`; none of the last three is held while another is taken.
pub struct Store {
    pub(crate) identity: Identity,
    pub(crate) hold: Hold,
    /// Whether a root slot was invalid when the store was opened, until the first that writes has
    /// completed what a crash left half done.
    unsettled: Mutex<Option<bool>>,
    pub(crate) pages: Arc<Pages>,
    pub(crate) pool: Arc<Pool>,
    /// Free parts of the file and free ids; held for as long as it takes to find some.
    pub(crate) space: Mutex<Space>,
    current: RwLock<Arc<Version>>,
    pub(crate) versions: Mutex<Versions>,
    /// Whether there is a writer.
    busy: Mutex<bool>,
    /// Signalled when the writer leaves.
    left: Condvar,
    /// What only the writer changes.
    pub(crate) writer: Mutex<Writer>,
    /// The failure after which nothing is committed any more.
    pub(crate) latch: OnceLock<Arc<Error>>,
    pub(crate) checkpoints: AtomicU64,
    checkpoint_bytes: u64,
    recovery: Recovery,
}

/// Free parts of the data file and free page ids.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) extents: Extents,
    pub(crate) ids: Ids,
    /// What was free when a writer began, and may be read by processes that opened before.
    pub(crate) aside: Vec<(u64, u64)>,
}

/// What the writer needs beyond the page map.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) log: Log,
    /// The newest durable root.
    pub(crate) root: Root,
    /// What it points to.
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

/// The right to write; the next writer gets in when it is dropped.
#[derive(Debug)]
pub(crate) struct Gate {
    store: Arc<Store>,
}

impl Drop for Gate {
    fn drop(&mut self) {
        // The transaction's own snapshot is gone by now, and what it kept can go too.
        if self.store.hold.is_writing() {
            self.store.reclaim(&mut self.store.writer.lock());
            self.store.hold.end_writing();
        }
        *self.store.busy.lock() = false;
        self.store.left.notify_one();
    }
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
    /// Creates a store: the data file `path` and the log `path.log`, neither of which may exist,
    /// but for files that a creation left which was cut short.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::MissingDirectory`], [`Error::PageSize`], [`Error::ReadOnly`],
    /// [`Error::Full`], [`Error::Io`], [`Error::Pool`]. What was created is removed again.
    pub fn create(path: impl AsRef<Path>, options: &Options) -> Result<Arc<Store>> {
        Store::create_holding(path.as_ref(), options, None)
    }

    /// [`create`](Store::create), and a first commit with it: no power loss comes between them.
    pub(crate) fn create_holding(
        path: &Path,
        options: &Options,
        first: Option<&Changes>,
    ) -> Result<Arc<Store>> {
        options.check_page_size()?;
        if options.access == Access::Read {
            return Err(Error::ReadOnly {
                path: path.to_path_buf(),
            });
        }
        let log_path = disk::log_path(path);
        let (data, new_data) = disk::fresh(path)?;
        let hold = Hold::take(path, Access::Write)?;
        let log = disk::fresh(&log_path);
        let new_log = matches!(&log, Ok((_, true)));
        let create = |(log, _): (File, bool)| {
            let (data, log): (Arc<dyn Device>, Arc<dyn Device>) = (Arc::new(data), Arc::new(log));
            crate::creation::format(&*data, &log, options.page_size, first)?;
            let hold = match options.access {
                Access::Write => hold,
                access => {
                    drop(hold);
                    Hold::take(path, access)?
                }
            };
            Store::open_holding(data, log, options, hold)
        };
        log.and_then(create).inspect_err(|_| {
            for (path, new) in [(path, new_data), (&log_path, new_log)] {
                if new {
                    let _ = std::fs::remove_file(path);
                }
            }
        })
    }

    /// Opens the store at `path`, and brings it to its last commit. A store opened for reading
    /// is not written to: what the log holds is applied in memory only.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::NotAtoll`], [`Error::NewerFormat`], [`Error::Truncated`],
    /// [`Error::Damaged`], [`Error::Busy`], [`Error::LogMissing`], [`Error::ForeignLog`],
    /// [`Error::Unfinished`], [`Error::Memory`], [`Error::Io`], [`Error::Pool`].
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Arc<Store>> {
        let path = path.as_ref();
        let hold = Hold::take(path, options.access)?;
        let data: Arc<dyn Device> = Arc::new(open_file(path, options.access)?);
        let log = match open_file(&disk::log_path(path), options.access) {
            Ok(log) => log,
            Err(io::Error::NotFound { path }) => {
                if unfinished(&*data, None)? {
                    let path = data.path().to_path_buf();
                    return Err(Error::Unfinished { path });
                }
                // Another sort of file has no log either; say what matters more.
                crate::recovery::identity(&*data)?;
                return Err(Error::LogMissing { path });
            }
            Err(error) => return Err(error.into()),
        };
        Store::open_holding(data, Arc::new(log), options, hold)
    }

    /// Creates a store on two devices that are empty, or hold a creation that was cut short.
    ///
    /// # Errors
    /// As [`create`](Store::create).
    pub fn create_on(
        data: Arc<dyn Device>,
        log: Arc<dyn Device>,
        options: &Options,
    ) -> Result<Arc<Store>> {
        Store::create_holding_on(data, log, options, None)
    }

    pub(crate) fn create_holding_on(
        data: Arc<dyn Device>,
        log: Arc<dyn Device>,
        options: &Options,
        first: Option<&Changes>,
    ) -> Result<Arc<Store>> {
        options.check_page_size()?;
        crate::creation::format(&*data, &log, options.page_size, first)?;
        Store::open_on(data, log, options)
    }

    /// Opens the store on two devices.
    ///
    /// # Errors
    /// As [`open`](Store::open).
    pub fn open_on(
        data: Arc<dyn Device>,
        log: Arc<dyn Device>,
        options: &Options,
    ) -> Result<Arc<Store>> {
        Store::open_holding(data, log, options, Hold::alone(options.access))
    }

    fn open_holding(
        data: Arc<dyn Device>,
        log: Arc<dyn Device>,
        options: &Options,
        hold: Hold,
    ) -> Result<Arc<Store>> {
        let recovered = recover_beside(&data, &log, options, &hold)?;
        let unsettled = Some(recovered.sole_root);
        let pages = Arc::new(recovered.pages);
        let pool = make_pool(recovered.identity.page_size, options, &pages)?;
        let version = Arc::new(Version {
            number: recovered.version,
            catalog: recovered.catalog,
        });
        let mut versions = Versions::default();
        versions.add(&version);
        let store = Arc::new(Store {
            identity: recovered.identity,
            hold,
            unsettled: Mutex::new(unsettled),
            pages,
            pool,
            space: Mutex::new(recovered.space),
            versions: Mutex::new(versions),
            current: RwLock::new(version),
            busy: Mutex::new(false),
            left: Condvar::new(),
            writer: Mutex::new(recovered.writer),
            latch: OnceLock::new(),
            checkpoints: AtomicU64::new(0),
            checkpoint_bytes: options.checkpoint_bytes,
            recovery: recovered.recovery,
        });
        if options.access == Access::Write {
            drop(store.enter()?);
        }
        Ok(store)
    }

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

    /// Sixteen bytes that tell this store from all others.
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

    /// The last committed version. Never waits for a writer.
    pub fn snapshot(self: &Arc<Self>) -> Snapshot {
        let version = self.current.read().clone();
        Snapshot::new(self.clone(), version)
    }

    /// Starts a transaction, after the one that is under way has ended.
    ///
    /// Waits without limit: a thread that begins a second transaction while it holds one waits
    /// for itself. See [`try_begin`](Store::try_begin).
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Latched`].
    pub fn begin(self: &Arc<Self>) -> Result<Transaction> {
        let gate = self.enter()?;
        Ok(self.transaction(gate))
    }

    /// Starts a transaction unless one is under way.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Latched`].
    pub fn try_begin(self: &Arc<Self>) -> Result<Option<Transaction>> {
        self.writable()?;
        let mut busy = self.busy.lock();
        if std::mem::replace(&mut *busy, true) {
            return Ok(None);
        }
        drop(busy);
        let gate = Gate {
            store: self.clone(),
        };
        self.become_writer(&gate)?;
        Ok(Some(self.transaction(gate)))
    }

    fn transaction(self: &Arc<Self>, gate: Gate) -> Transaction {
        self.reclaim(&mut self.writer.lock());
        Transaction::new(self.snapshot(), gate)
    }

    fn writable(&self) -> Result<()> {
        if self.hold.access() == Access::Read {
            return Err(Error::ReadOnly {
                path: self.path().to_path_buf(),
            });
        }
        self.not_latched()
    }

    /// Waits for the right to write.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<Gate> {
        self.writable()?;
        let mut busy = self.busy.lock();
        while *busy {
            self.left.wait(&mut busy);
        }
        *busy = true;
        drop(busy);
        let gate = Gate {
            store: self.clone(),
        };
        // It may have happened while we waited.
        self.not_latched()?;
        self.become_writer(&gate)?;
        Ok(gate)
    }

    /// Makes this handle the writer of the files, if it is not, and completes what a crash left half
    /// done, if that was not done yet.
    fn become_writer(self: &Arc<Self>, gate: &Gate) -> Result<()> {
        if self.hold.start_writing()? {
            if !self.is_unchanged()? {
                return Err(Error::Changed {
                    path: self.path().to_path_buf(),
                });
            }
            self.writer.lock().log.look_behind()?;
        }
        let mut unsettled = self.unsettled.lock();
        if let Some(sole_root) = *unsettled {
            // Later, what is free was freed when nobody could read it any more.
            self.set_aside()?;
            match self.settle(sole_root, gate) {
                // This must wait, and can, unless the log is of a format that is not written.
                Err(error) if !error.may_wait() || self.writer.lock().log.is_old() => {
                    return Err(error);
                }
                _ => *unsettled = None,
            }
        }
        Ok(())
    }

    /// Whether nobody has committed since this handle read the roots and the log, or wrote them. A
    /// handle that reads goes on with its own version in any case.
    ///
    /// # Errors
    /// [`Error::Io`] and what else stands against reading the roots and the log's headers.
    pub fn is_current(&self) -> Result<bool> {
        if self.hold.is_writing() {
            return Ok(true);
        }
        let _roots = self.hold.keep_roots()?;
        self.is_unchanged()
    }

    pub(crate) fn is_unchanged(&self) -> Result<bool> {
        let writer = self.writer.lock();
        let sequence = crate::recovery::newest_sequence(&**self.data(), &self.identity.id)?;
        Ok(sequence == Some(writer.root.sequence)
            && writer.log.is_unchanged(self.current().number)?)
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
        match error.is_full() {
            true => error,
            false => self.latch(error),
        }
    }

    /// Makes what was written to the data file durable. A disk that is found full only now is a
    /// failure like any other: what was written before may be lost.
    pub(crate) fn sync_data(&self) -> Result<()> {
        let synced = self.data().sync();
        synced.map_err(|error| self.latch(Error::Io(Arc::new(error))))
    }

    /// Appends the record of `changes` to the log, durably.
    fn log_changes(&self, log: &mut Log, version: u64, changes: &Changes) -> Result<()> {
        log.tidy().map_err(|error| self.latch_unless_full(error))?;
        let logged = log.append(version, &changes.encode());
        match logged.and_then(|end| log.sync(end)) {
            // The record is not whole.
            Err(error) if error.is_full() => Err(error),
            Err(error) => {
                let uncertain = Error::Uncertain {
                    path: log.device().path().to_path_buf(),
                    version,
                    cause: Arc::new(error),
                };
                self.latch(uncertain.clone());
                Err(uncertain)
            }
            Ok(()) => Ok(()),
        }
    }

    /// Takes `count` page ids and `bytes` of the file, which grows if it must.
    pub(crate) fn allocate(&self, count: usize, bytes: u64) -> Result<(Vec<PageId>, u64)> {
        let mut space = self.space.lock();
        let mut ids = Vec::with_capacity(count);
        for _ in 0..count {
            match space.ids.take() {
                Some(page) => ids.push(page),
                None => {
                    space.ids.give(&ids);
                    return Err(Error::OutOfPageIds {
                        path: self.path().to_path_buf(),
                    });
                }
            }
        }
        match self.allocate_extent(&mut space, bytes) {
            Ok(offset) => Ok((ids, offset)),
            Err(error) => {
                space.ids.give(&ids);
                Err(error)
            }
        }
    }

    pub(crate) fn allocate_extent(&self, space: &mut Space, bytes: u64) -> Result<u64> {
        if let Some(offset) = space.extents.take(bytes) {
            return Ok(offset);
        }
        let (wanted, enough) = space.extents.growth(bytes);
        let old = space.extents.end();
        // Room is set aside, or a full disk would be met only when the pages are written.
        let end = match self.data().allocate(old, wanted - old) {
            Ok(()) => wanted,
            // There may be room for less.
            Err(io::Error::Full { .. }) => {
                self.data().allocate(old, enough - old)?;
                enough
            }
            Err(error) => return Err(error.into()),
        };
        space.extents.grown(end);
        space.extents.take(bytes).ok_or_else(|| Error::Full {
            path: self.path().to_path_buf(),
        })
    }

    /// Sets room aside in the data file for `bytes` more, in one piece, which is what pages are
    /// written to next.
    pub(crate) fn reserve(&self, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let bytes = aligned(bytes);
        let mut space = self.space.lock();
        let offset = self.allocate_extent(&mut space, bytes)?;
        // What was free in the file before may be a hole, which takes no room on the disk yet.
        let allocated = self.data().allocate(offset, bytes);
        space.extents.untake(offset, bytes);
        Ok(allocated?)
    }

    /// Whether the store holds the pages of a [`PageStore`](crate::PageStore), and so no tables.
    pub fn is_raw(self: &Arc<Self>) -> bool {
        crate::raw::holds_pages(&self.snapshot())
    }

    /// Logs and publishes `changes`, whose result is `catalog`.
    pub(crate) fn commit(
        self: &Arc<Self>,
        changes: Changes,
        catalog: Catalog,
        gate: &Gate,
    ) -> Result<Snapshot> {
        self.not_latched()?;
        let mut writer = self.writer.lock();
        for &page in &changes.freed {
            if writer.pending.contains(page) || self.pages.map.get(page).is_none() {
                return Err(Error::NoSuchPage {
                    path: self.path().to_path_buf(),
                    page,
                });
            }
        }
        let bytes = changes.encoded_bytes();
        if bytes > MAX_BODY {
            return Err(Error::RecordTooLarge {
                bytes,
                limit: MAX_BODY,
            });
        }
        let version = self.current.read().number + 1;
        if !changes.written.is_empty() {
            self.sync_data()?;
        }
        self.log_changes(&mut writer.log, version, &changes)?;
        let version = self.publish(&mut writer, version, &changes, catalog);
        if writer.log.bytes() > writer.due {
            // The commit is durable whatever becomes of this. A disk that is full stays so for
            // a while: try again when the log has doubled.
            let roots = self.hold.change_roots(self.path());
            writer.checkpoint_failure = roots
                .and_then(|_roots| self.write_checkpoint(&mut writer, gate))
                .err();
            writer.due = self.checkpoint_bytes.max(2 * writer.log.bytes());
        }
        Ok(Snapshot::new(self.clone(), version))
    }

    fn publish(
        &self,
        writer: &mut Writer,
        number: u64,
        changes: &Changes,
        catalog: Catalog,
    ) -> Arc<Version> {
        let pages = changes
            .written
            .iter()
            .map(|(page, _)| page)
            .chain(&changes.freed);
        writer.chunks.extend(pages.map(|page| page / CHUNK));
        writer.spaces.extend(changes.spaces());
        self.pend(writer, number, changes.freed.iter().copied());
        let version = Arc::new(Version { number, catalog });
        self.versions.lock().add(&version);
        *self.current.write() = version.clone();
        version
    }

    pub(crate) fn current(&self) -> Arc<Version> {
        self.current.read().clone()
    }

    /// Folds the log into the data file. Waits for the transaction under way.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Full`], [`Error::Io`]: the store is as it was before.
    /// [`Error::Latched`]: nothing committed is lost, and nothing more is committed.
    pub fn checkpoint(self: &Arc<Self>) -> Result<()> {
        let gate = self.enter()?;
        let mut writer = self.writer.lock();
        self.reclaim(&mut writer);
        let roots = self.hold.change_roots(self.path());
        let result = roots.and_then(|_roots| self.write_checkpoint(&mut writer, &gate));
        writer.checkpoint_failure = result.as_ref().err().cloned();
        result
    }

    /// Folds the log into the data file and gives the unused end of the file back. The lock on
    /// the files goes with the last handle to the store. Dropping a store without closing it is
    /// no loss, the next [`open`](Store::open) then reads the log.
    ///
    /// # Errors
    /// As [`checkpoint`](Store::checkpoint); nothing committed is lost.
    pub fn close(self: Arc<Self>) -> Result<()> {
        match self.hold.access() {
            Access::Read => return Ok(()),
            // Nothing of its own to fold in.
            Access::OnDemand if self.unsettled.lock().is_some() => return Ok(()),
            Access::OnDemand | Access::Write => {}
        }
        let gate = match self.enter() {
            // Whoever wrote last does it.
            Err(Error::Busy { .. } | Error::Changed { .. })
                if self.hold.access() == Access::OnDemand =>
            {
                return Ok(());
            }
            entered => entered?,
        };
        let mut writer = self.writer.lock();
        self.reclaim(&mut writer);
        let _roots = self.hold.change_roots(self.path())?;
        self.write_checkpoint(&mut writer, &gate)?;
        self.write_closing_root(&mut writer, &gate)
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

    /// Figures about the store. Looks at every page's entry.
    pub fn statistics(&self) -> Statistics {
        let writer = self.writer.lock();
        let version = self.current();
        let space = self.space.lock();
        let (next, end, free) = (space.ids.next, space.extents.end(), space.free_bytes());
        drop(space);
        let mut statistics = Statistics {
            page_size: self.identity.page_size,
            version: version.number,
            file_bytes: self.data().len().unwrap_or(end),
            used_bytes: end - free,
            free_bytes: free,
            log_bytes: writer.log.bytes(),
            catalog_keys: version.catalog.keys(),
            catalog_spaces: version.catalog.spaces.len() as u64,
            checkpoints: self.checkpoints.load(Ordering::Relaxed),
            checkpoint_failure: writer.checkpoint_failure.as_ref().map(Error::to_string),
            latched: self.latch.get().map(|cause| cause.to_string()),
            pending_bytes: writer.pending.bytes(),
            ..Statistics::default()
        };
        for (page, entry) in self.pages.map.live(next) {
            let (raw, stored) = (u64::from(entry.raw), u64::from(entry.stored));
            if writer.pending.contains(page) {
                continue;
            }
            statistics.pages.add(raw, stored);
            match entry.codec {
                Codec::Raw => statistics.raw.add(raw, stored),
                Codec::Zstd => statistics.zstd.add(raw, stored),
            }
            statistics.kinds[entry.kind as usize].add(raw, stored);
        }
        statistics.used_bytes -= statistics.pending_bytes;
        debug_assert!(statistics.used_bytes >= FIRST_EXTENT);
        statistics
    }
}

/// How often the last record of the log is read again while another process appends to it.
const READINGS: u32 = 50;

/// Finds the last committed state. Another process may be appending to the log meanwhile, so what
/// looks damaged then is read again.
fn recover_beside(
    data: &Arc<dyn Device>,
    log: &Arc<dyn Device>,
    options: &Options,
    hold: &Hold,
) -> Result<crate::recovery::Recovered> {
    let mut readings = 1;
    loop {
        let roots = hold.keep_roots()?;
        let recovered = crate::recovery::recover(data.clone(), log.clone(), options);
        drop(roots);
        let whole = matches!(&recovered, Ok(found) if found.recovery.dropped.is_none());
        if whole || !hold.others_write()? {
            return recovered;
        }
        if readings == READINGS {
            // What is written at the moment is not dropped.
            return recovered.map(|mut found| {
                found.recovery.dropped = None;
                found
            });
        }
        readings += 1;
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Opens a file as `access` needs it; one that may not be written is read.
fn open_file(path: &Path, access: Access) -> io::Result<File> {
    match File::open(path, access.of_files()) {
        Err(io::Error::Denied { .. }) if access == Access::OnDemand => {
            File::open(path, io::Access::Read)
        }
        opened => opened,
    }
}

fn make_pool(page_size: u32, options: &Options, pages: &Arc<Pages>) -> Result<Arc<Pool>> {
    let settings = &options.pool;
    let config = buffer::Config {
        bytes: settings.bytes,
        page_size: page_size as usize,
        partitions_per_node: settings.partitions_per_node,
        nodes: settings.nodes.clone(),
    };
    let budget = settings
        .budget
        .clone()
        .unwrap_or_else(|| memory::Budget::new(settings.bytes));
    Pool::new(&config, pages.clone(), budget).map_err(|error| Error::Pool(Arc::new(error)))
}
