//! Creating and opening a store.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};

use buffer::Pool;
use io::{Device, File};
use parking_lot::{Condvar, Mutex, RwLock};

use crate::catalog::changes::Changes;
use crate::error::{Error, Result};
use crate::format::disk;
use crate::options::{Access, Options};
use crate::recovery::creation::{self, unfinished};
use crate::recovery::recover::{Recovered, recover};
use crate::recovery::roots;
use crate::space::pages::Pages;
use crate::state::group::Group;
use crate::state::version::Versions;
use crate::store::handle::Store;
use crate::store::hold::Hold;

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
        options.check()?;
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
            let data = data.direct(options.pool.direct)?;
            let (data, log): (Arc<dyn Device>, Arc<dyn Device>) = (Arc::new(data), Arc::new(log));
            creation::format(&*data, &log, options, first)?;
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
        let data = open_file(path, options.access)?.direct(options.pool.direct)?;
        let data: Arc<dyn Device> = Arc::new(data);
        let log = match open_file(&disk::log_path(path), options.access) {
            Ok(log) => log,
            Err(io::Error::NotFound { path }) => {
                if unfinished(&*data, None)? {
                    let path = data.path().to_path_buf();
                    return Err(Error::Unfinished { path });
                }
                // Another sort of file has no log either; say what matters more.
                roots::identity(&*data)?;
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
        options.check()?;
        creation::format(&*data, &log, options, first)?;
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
        let version = recovered.writer.head.clone();
        // What was replayed may be in the system's cache only.
        let group = Group::new(recovered.writer.root.version);
        let unsettled = Some(recovered.sole_root);
        let pages = Arc::new(recovered.pages);
        let pool = make_pool(recovered.identity.page_size, options, &pages)?;
        let mut versions = Versions::default();
        versions.add(&version);
        let store = Arc::new(Store {
            identity: recovered.identity,
            hold,
            unsettled: Mutex::new(unsettled),
            pages,
            pool,
            free: Mutex::new(recovered.free),
            versions: Mutex::new(versions),
            current: RwLock::new(version),
            group,
            log,
            grown: AtomicBool::new(false),
            syncing: Mutex::new(()),
            begun: AtomicBool::new(false),
            checkpointing: Mutex::new(()),
            durability: options.durability,
            small_commit: options.small_commit,
            commits: AtomicU64::new(0),
            data_syncs: AtomicU64::new(0),
            data_bytes: AtomicU64::new(0),
            busy: Mutex::new(false),
            left: Condvar::new(),
            writers: AtomicUsize::new(0),
            writer: Mutex::new(recovered.writer),
            latch: OnceLock::new(),
            checkpoints: AtomicU64::new(0),
            checkpoint_bytes: options.checkpoint_bytes,
            alignment: AtomicU64::new(recovered.alignment),
            compress: options.compress,
            recovery: recovered.recovery,
        });
        if options.access == Access::Write {
            drop(store.enter()?);
        }
        Ok(store)
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
) -> Result<Recovered> {
    let mut readings = 1;
    loop {
        let roots = hold.keep_roots()?;
        let recovered = recover(data.clone(), log.clone(), options);
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
        placement: settings.placement,
        replacement: buffer::Policy::default(),
        prefetch: settings.prefetch,
    };
    let budget = settings
        .budget
        .clone()
        .unwrap_or_else(|| memory::Budget::new(settings.bytes));
    let pool = Pool::new(&config, pages.clone(), budget);
    let pool = pool.map_err(|error| Error::Pool(Arc::new(error)))?;
    if settings.registered {
        pages.register(&pool);
    }
    Ok(pool)
}
