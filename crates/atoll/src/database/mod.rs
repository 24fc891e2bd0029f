//! An open database.
//!
//! [`options`] say how it is opened, [`settings`] are kept in the file, [`governed`] takes workers out of service;
//! [`summary`], [`pages`] and [`residency`] tell what is in it and where.

mod governed;
pub(crate) mod logins;
pub(crate) mod options;
pub(crate) mod pages;
pub(crate) mod residency;
mod settings;
pub(crate) mod summary;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use memory::Budget;
use store::{PoolOptions, Store};
use tokio::runtime::Handle;
use topology::Machine;
use workers::{Layout, Workers};

use crate::database::logins::Logins;
use crate::database::options::{Access, BASE_BYTES, NumaPolicy, Options};
use crate::database::summary::TableSummary;
use crate::error::{Error, Result};
use crate::session::Session;
use sql::Activity;

/// An open database: one data file, its log, its workers and its memory.
///
/// Clones share all of that; the database is closed when the last one is dropped, or by [`close`](Database::close).
/// The functions block the calling thread, the work is done by the workers; do not call them from an
/// asynchronous task.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("cities.atoll");
/// use atoll::{Database, Options};
///
/// let database = Database::create(&path, &Options::default())?;
/// database.session().sql("create table city (name varchar, people bigint)")?;
/// database.close()?;
///
/// let database = Database::open(&path, &Options::read_only())?;
/// assert_eq!(database.tables()?[0].name, "city");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Database {
    instance: Arc<sql::Instance>,
    machine: Arc<Machine>,
    catalog: Arc<table::Catalog>,
    /// Publishes what statements do, and governs the workers where the options say so.
    governing: Arc<governor::runtime::Runtime>,
}

/// What a database holds and does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Statistics {
    /// Figures of the file: bytes, pages, log.
    pub store: store::Statistics,
    /// Figures of the buffer pool: hits, misses, evictions.
    pub pool: buffer::Statistics,
    /// Bytes of memory that pool and statements have reserved: the pool all of its frames.
    pub memory_used: u64,
    /// Bytes that they may use.
    pub memory_limit: u64,
}

impl Statistics {
    /// Bytes of memory that hold something: those that are reserved without the frames of the pool that hold no page.
    pub fn memory_in_use(&self) -> u64 {
        let empty = self.pool.frames.saturating_sub(self.pool.resident);
        self.memory_used
            .saturating_sub((empty * self.pool.page_size) as u64)
    }
}

impl Database {
    /// Creates a database: the data file `path` and its log `path.log`.
    ///
    /// # Errors
    ///
    /// If either exists, the directory does not, or the options ask for what the machine does not have.
    pub fn create(path: impl AsRef<Path>, options: &Options) -> Result<Database> {
        Database::start(path.as_ref(), options, |path, options| {
            Store::create(path, options)
        })
    }

    /// Opens a database.
    ///
    /// # Errors
    ///
    /// If `path` is not an Atoll file, is damaged or newer than this program, or is to be written and
    /// another process writes it ([`Error::is_busy`](crate::Error::is_busy)); if the options ask for what
    /// the machine does not have.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Database> {
        Database::start(path.as_ref(), options, |path, options| {
            Store::open(path, options)
        })
    }

    /// Opens a database, or creates it where there is no file, or only what a creation left that was cut short.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Database::open) and [`create`](Database::create).
    pub fn open_or_create(path: impl AsRef<Path>, options: &Options) -> Result<Database> {
        let path = path.as_ref();
        if !path.exists() && options.access != Access::Read {
            return Database::create(path, options);
        }
        match Database::open(path, options) {
            Err(Error::Store(store::Error::Unfinished { .. }))
                if options.access != Access::Read =>
            {
                Database::create(path, options)
            }
            opened => opened,
        }
    }

    fn start(
        path: &Path,
        options: &Options,
        open: impl FnOnce(&Path, &store::Options) -> store::Result<Arc<Store>>,
    ) -> Result<Database> {
        let sizes = options.sizes(memory::available()?)?;
        let (machine, live) = machines(options)?;
        let threads = options
            .threads
            .unwrap_or_else(|| live.cpus().max(machine.nodes().len()));
        let workers = Workers::new(Layout::of(&machine, &live, threads, options.affinity))?;
        let budget = Budget::new(sizes.limit);
        if let Some(reclaim) = options.reclaim {
            // A quarter before, as up to 24 MiB came between two looks.
            budget.watch(BASE_BYTES / 4 * 3, reclaim);
        }
        let pool = PoolOptions {
            bytes: sizes.pool,
            nodes: homes(&machine, options),
            placement: options.pool_memory,
            budget: Some(Arc::clone(&budget)),
            ..PoolOptions::default()
        };
        let mut settings = store::Options {
            pool,
            access: options.access,
            mapped: options.mapped,
            compress: options.compress,
            ..store::Options::default()
        };
        if let Some(page_size) = options.page_size {
            check_page_size(page_size)?;
            settings.page_size = page_size;
        }
        let store = open(path, &settings)?;
        if store.is_raw() {
            return Err(store::Error::RawPages {
                path: path.to_path_buf(),
            }
            .into());
        }
        let mut statements = sql::Options::spilling_to(spill_directory(path));
        statements.executor = options.executor;
        statements.plan_use = options.plan_use;
        statements.lock_timeout = options.lock_timeout;
        statements.execution = options.execution.clone();
        statements.execution.numa_policy = match options.numa_policy {
            Some(plan) => plan,
            None => settings::numa_policy(&store)?.unwrap_or(options.execution.numa_policy),
        };
        let instance = sql::Instance::new(store, workers, budget, statements)?;
        let governing = governed::start(&instance, &machine, &live, options)?;
        Ok(Database {
            instance,
            machine: Arc::new(machine),
            catalog: Arc::new(table::Catalog::new()),
            governing,
        })
    }

    /// The data file.
    pub fn path(&self) -> &Path {
        self.instance.store().path()
    }

    /// Random bytes that the store has had since it was created. Nobody is told them who has not its file: servers derive
    /// secrets from them that outlive a restart.
    pub fn secret(&self) -> [u8; 16] {
        self.instance.store().id()
    }

    /// What opening the store found in its log: commits applied from there, and one that a crash cut short.
    pub fn recovery(&self) -> &store::Recovery {
        self.store().recovery()
    }

    /// The plan that the store keeps for those who open it (row M2); `None` where it keeps none.
    ///
    /// # Errors
    ///
    /// [`Error::Options`] for a plan that this program does not know.
    pub fn numa_policy(&self) -> Result<Option<NumaPolicy>> {
        settings::numa_policy(self.store())
    }

    /// Makes the store keep a plan, or none. It holds from the next time that the store is opened.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store is open for reading only, or cannot be written.
    pub fn set_numa_policy(&self, plan: Option<NumaPolicy>) -> Result<()> {
        let _turn = self.turn()?;
        settings::set_numa_policy(self.store(), plan)
    }

    /// The machine that workers and pages are laid out for.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// A new session, in which statements run.
    pub fn session(&self) -> Session {
        Session::new(
            self.instance.session(),
            self.workers().handle().clone(),
            self.governing.clone(),
        )
    }

    /// Runs a program in LAQ; see [`Session::laq`].
    ///
    /// # Errors
    ///
    /// Those of [`Session::laq`].
    pub fn laq(&self, text: &str) -> Result<sql::Answer> {
        self.session().laq(text)
    }

    /// The tables, by name.
    ///
    /// # Errors
    ///
    /// If the catalog cannot be read.
    pub fn tables(&self) -> Result<Vec<TableSummary>> {
        let tables = self.tables_at(&self.store().snapshot())?;
        let mut names = tables.names();
        names.sort_unstable();
        Ok(names
            .iter()
            // Those of sessions are nobody else's.
            .filter(|name| !name.starts_with("pg_temp_"))
            .filter_map(|name| tables.get(name))
            .map(|table| TableSummary::of(table))
            .collect())
    }

    /// The roles that there are now.
    ///
    /// # Errors
    ///
    /// If the catalog cannot be read.
    pub fn logins(&self) -> Result<Logins> {
        Ok(Logins(self.tables_at(&self.store().snapshot())?))
    }

    /// The name in the catalog of the table that is called `name`: as it is, or with its schema and a point before it.
    pub(crate) fn called(&self, name: &str) -> Result<String> {
        let tables = self.tables_at(&self.store().snapshot())?;
        Ok(match name.split_once('.') {
            Some((schema, base)) if tables.get(name).is_none() && tables.has_schema(schema) => {
                table::within(schema, base)
            }
            _ => name.to_owned(),
        })
    }

    /// Appends rows to a table, in one transaction, and says how many there were.
    ///
    /// Columns are matched by position; types are converted where nothing is lost. The iterator runs on the calling
    /// thread while the workers encode what it has delivered; a panic in it leaves the table as it was.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("numbers.atoll");
    /// use std::sync::Arc;
    /// use arrow::array::{Int64Array, RecordBatch};
    ///
    /// let database = atoll::Database::create(&path, &atoll::Options::default())?;
    /// database.session().sql("create table numbers (n bigint)")?;
    /// let batch = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![1, 2, 3])) as _)])?;
    /// assert_eq!(database.append("numbers", [batch.clone(), batch])?, 6);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no such table, a batch does not fit it, or the disk is full; nothing is appended then.
    pub fn append(
        &self,
        table: &str,
        batches: impl IntoIterator<Item = RecordBatch>,
    ) -> Result<u64> {
        self.session().append(table, batches)
    }

    /// Figures of the file, the pool and the memory.
    pub fn statistics(&self) -> Statistics {
        let budget = self.instance.budget();
        Statistics {
            store: self.store().statistics(),
            pool: self.store().pool().statistics(),
            memory_used: budget.used(),
            memory_limit: budget.limit(),
        }
    }

    /// How often a statement that was [prepared](crate::Session::prepare) ran by the plan that was made then.
    pub fn plans_used_again(&self) -> u64 {
        self.instance.plans_used_again()
    }

    /// What users have reserved of the memory whose roles have a limit, `alter role ... set memory_limit`: of those who have
    /// run statements since the database was opened.
    pub fn users_memory(&self) -> Vec<sql::UserMemory> {
        self.instance.users_memory()
    }

    /// How many blocks of tables are at home on each node.
    ///
    /// # Errors
    ///
    /// If the catalog cannot be read.
    pub fn placement(&self) -> Result<Vec<u64>> {
        let tables = self.tables_at(&self.store().snapshot())?;
        let mut homes = vec![0; self.machine.nodes().len()];
        for table in tables
            .names()
            .into_iter()
            .filter_map(|name| tables.get(name))
        {
            for block in 0..table.blocks() {
                let nodes = homes.len();
                homes[usize::from(table.block(block).bucket) % nodes] += 1;
            }
        }
        Ok(homes)
    }

    /// Whether statements see the last commit of any process. A database that is opened for reading, or that
    /// writes on demand, goes on with the version that it found; open it again for a newer one.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn is_current(&self) -> Result<bool> {
        Ok(self.store().is_current()?)
    }

    /// Reads and verifies everything in the file; `progress` is told pages done and pages in all.
    ///
    /// # Errors
    ///
    /// If the check cannot be made; what is wrong with the file is in the list.
    pub fn check(&self, progress: &dyn Fn(u64, u64)) -> Result<Vec<store::Problem>> {
        let _turn = self.turn()?;
        Ok(self.store().check(progress)?)
    }

    /// Empties the buffer pool and asks the operating system to drop what it has cached of the
    /// data file, so that the next statement reads from the disk (row M3). Other files stay cached;
    /// [`memory::drop_system_caches`] drops those too, where that is permitted.
    ///
    /// # Errors
    ///
    /// If the operating system refuses.
    pub fn forget(&self) -> Result<()> {
        Ok(self.store().forget()?)
    }

    /// Folds the log into the data file and closes it. Dropping a database without this loses nothing, the next
    /// opening then reads the log. Sessions and clones that are left keep the file open.
    ///
    /// # Errors
    ///
    /// If the disk is full or fails, or a session has a transaction in progress that has written; what was committed
    /// stays so.
    pub fn close(self) -> Result<()> {
        let _turn = self.turn()?;
        Ok(Arc::clone(self.instance.store()).close()?)
    }

    /// Waits until no session writes, and keeps it so; not within an asynchronous task, which must not wait.
    pub(crate) fn turn(&self) -> Result<Option<sql::Turn>> {
        match Handle::try_current() {
            Ok(_) => Ok(None),
            Err(_) => Ok(Some(
                self.workers().handle().block_on(self.instance.turn())?,
            )),
        }
    }

    /// The names of the functions that statements may call, in order, each once: what an editor completes.
    pub fn function_names(&self) -> Vec<String> {
        self.instance.function_names()
    }

    /// What the governor of the workers has decided, oldest first: the last few hundred decisions since the workers had
    /// all of their cpus. Empty where it does not run ([`Options::govern`](crate::Options)).
    pub fn decisions(&self) -> Vec<governor::Decision> {
        self.governing.decisions()
    }

    /// Bytes that all statements have read so far: a row for each node that read, a column for each node that held the
    /// page. The numbers never fall.
    pub fn bytes_read(&self) -> Vec<Vec<u64>> {
        self.instance.bytes()
    }

    /// Has `pg_stat_activity` show what `sessions` tells: for servers. Only the first call has an effect.
    pub fn observe_with(&self, sessions: impl Fn() -> Vec<Activity> + Send + Sync + 'static) {
        self.instance.observe_with(sessions);
    }

    /// The last commit, for the crates that read arrays and graphs of the same store.
    pub fn snapshot(&self) -> store::Snapshot {
        self.store().snapshot()
    }

    /// What runs statements.
    pub(crate) fn instance(&self) -> &Arc<sql::Instance> {
        &self.instance
    }

    /// The store below.
    pub(crate) fn store(&self) -> &Arc<Store> {
        self.instance.store()
    }

    /// The workers that compute.
    pub fn workers(&self) -> &Arc<Workers> {
        self.instance.workers()
    }

    /// The tables of a snapshot.
    pub(crate) fn tables_at(&self, snapshot: &store::Snapshot) -> Result<Arc<table::Tables>> {
        Ok(self.catalog.tables(snapshot)?)
    }
}

/// Tables want pages that hold 8 Ki values of 8 bytes at most, and not too few.
fn check_page_size(bytes: u32) -> Result<()> {
    match bytes {
        16_384 | 32_768 | 65_536 => Ok(()),
        bytes => Err(Error::Options(format!(
            "a page size of {bytes} bytes is not possible for tables; use 16384, 32768 or 65536"
        ))),
    }
}

/// The operating system's number of each node, to bind memory to; `None` where the machine is not the live one, has one
/// node, or affinity is off.
fn homes(machine: &Machine, options: &Options) -> Vec<Option<u32>> {
    let live = matches!(machine.source(), topology::Source::Live);
    let several = machine.nodes().len() > 1 || options.nodes.is_some();
    let binds = live && several && options.affinity;
    machine
        .nodes()
        .iter()
        .map(|node| binds.then_some(node.os_index))
        .collect()
}

/// The machine to lay workers and pages out for, and the one at hand, both without the nodes that are not to be used.
fn machines(options: &Options) -> Result<(Machine, Machine)> {
    let live = Machine::live()?;
    if options.nodes.is_some() && !options.affinity {
        return Err(Error::Options(
            "workers are kept to some nodes by pinning them: leave --nodes out, or turn --affinity on".into(),
        ));
    }
    let nodes = options.nodes.as_deref();
    let machine = match (&options.machine, nodes) {
        (Some(spec), None) => Machine::parse(spec)?,
        (Some(spec), Some(nodes)) => Machine::parse(spec)?.only(nodes)?,
        (None, None) => live.clone(),
        (None, Some(nodes)) => {
            let live = live.only(nodes)?;
            return Ok((live.clone(), live));
        }
    };
    Ok((machine, live))
}

/// The directory of the data file: on its disk, not in memory as the system's temporary directory may be.
fn spill_directory(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}
