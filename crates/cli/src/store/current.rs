//! A store that stays open from statement to statement while other processes write to it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use atoll::{Access, Database, Options, Session, TransactionStatus};

use crate::failure::Failure;
use crate::store::database;
use crate::terminal::interrupt;
use crate::units;

/// How often opening a store that another process writes is tried again.
const PAUSE: Duration = Duration::from_millis(20);

/// An open store. It is opened again when another process has committed, so that statements see the last commit, but
/// not within a transaction of several statements.
pub struct CurrentStore {
    path: PathBuf,
    options: Options,
    /// How long a statement waits for another process that writes.
    wait: Duration,
    /// `None` while opening it again has failed.
    database: Option<Database>,
    /// What runs the statements of `database`.
    session: Option<Session>,
}

impl CurrentStore {
    /// A store from `database`, which was opened at `path` with these `options`.
    pub fn new(
        database: Database,
        path: PathBuf,
        options: Options,
        wait: Duration,
    ) -> CurrentStore {
        CurrentStore {
            path,
            options,
            wait,
            database: Some(database),
            session: None,
        }
    }

    /// How it is opened.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Whether a transaction of several statements is in progress.
    pub fn transaction(&self) -> TransactionStatus {
        let session = self.session.as_ref();
        session.map_or(TransactionStatus::Idle, Session::transaction)
    }

    /// The store as the last commit of any process left it, or as the transaction in progress began with.
    ///
    /// # Errors
    /// If it must be opened again and cannot be.
    pub fn fresh(&mut self) -> Result<&Database, Failure> {
        if let Some(database) = &self.database
            && self.transaction() == TransactionStatus::Idle
            && !database.is_current()?
        {
            self.leave()?;
        }
        let database = match self.database.take() {
            Some(database) => database,
            None => Database::open(&self.path, &self.options)?,
        };
        Ok(self.database.insert(database))
    }

    /// Runs `work` on the store, in the session of its statements. Runs it again if another process was writing and ended within the time to wait, or has
    /// committed meanwhile; a `work` that fails for these reasons must have changed nothing. A transaction in progress has
    /// failed then.
    pub fn run<T>(
        &mut self,
        mut work: impl FnMut(&Database, &Session) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut waiting = Waiting::new(self.wait);
        loop {
            let database = self.fresh()?.clone();
            let session = self.session.get_or_insert_with(|| database.session());
            let failure = match work(&database, session) {
                Err(Failure::Error(error)) => error,
                done => return done,
            };
            drop(database);
            if self.transaction() != TransactionStatus::Idle {
                return Err(Failure::Error(failure));
            }
            match failure.downcast_ref::<atoll::Error>() {
                Some(error) if error.is_changed() => {}
                Some(error) if waiting.goes_on(error)? => {}
                _ => return Err(Failure::Error(failure)),
            }
        }
    }

    /// Leaves the store for another one, which exists. What is in progress is rolled back. If the other cannot be opened,
    /// the next statement runs on this one.
    ///
    /// # Errors
    /// If the other store does not exist or cannot be opened.
    pub fn change_to(&mut self, path: &Path) -> Result<(), Failure> {
        let mut options = self.options.clone();
        // A temporary store is open for writing all the time; nobody else may wait for this one.
        if options.access == Access::Write {
            options.access = Access::OnDemand;
        }
        self.leave()?;
        let database = database::open(path, &options)?;
        self.path = path.to_owned();
        self.options = options;
        self.database = Some(database);
        Ok(())
    }

    /// The data file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Closes the store.
    ///
    /// # Errors
    /// As [`Database::close`].
    pub fn close(mut self) -> Result<(), Failure> {
        self.leave()
    }

    fn leave(&mut self) -> Result<(), Failure> {
        // What it has in progress is rolled back.
        self.session = None;
        match self.database.take() {
            Some(database) => Ok(database.close()?),
            None => Ok(()),
        }
    }
}

/// Opens a store with `open`, which may have to wait for another process that writes to it.
///
/// # Errors
/// Those of `open`; Ctrl-C.
pub fn waiting<T>(wait: Duration, open: impl Fn() -> atoll::Result<T>) -> Result<T, Failure> {
    let mut waiting = Waiting::new(wait);
    loop {
        match open() {
            Err(error) if waiting.goes_on(&error)? => {}
            opened => return Ok(opened?),
        }
    }
}

/// The state of waiting for a process that writes.
struct Waiting {
    until: Instant,
    wait: Duration,
    told: bool,
}

impl Waiting {
    fn new(wait: Duration) -> Waiting {
        Waiting {
            until: Instant::now() + wait,
            wait,
            told: false,
        }
    }

    /// Waits a little if `error` says that another process writes, and there is time left; else returns false. The
    /// first call prints what is waited for.
    fn goes_on(&mut self, error: &atoll::Error) -> Result<bool, Failure> {
        if interrupt::asked() {
            return Err(Failure::Interrupted);
        }
        if !error.is_busy() || Instant::now() >= self.until {
            return Ok(false);
        }
        if !self.told {
            let time = units::seconds(self.wait.as_secs_f64());
            eprintln!("atoll: {error}; waiting for {time} at most");
            self.told = true;
        }
        std::thread::sleep(PAUSE);
        Ok(true)
    }
}
