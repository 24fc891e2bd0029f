//! A store that stays open from statement to statement while other processes write to it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use atoll::{Database, Options};

use crate::failure::Failure;
use crate::terminal::interrupt;
use crate::units;

/// How often opening a store that another process writes is tried again.
const PAUSE: Duration = Duration::from_millis(20);

/// An open store. It is opened again when another process has committed, so that statements see the last commit.
pub struct CurrentStore {
    path: PathBuf,
    options: Options,
    /// How long a statement waits for another process that writes.
    wait: Duration,
    /// `None` while opening it again has failed.
    database: Option<Database>,
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
        }
    }

    /// The store as the last commit of any process left it.
    ///
    /// # Errors
    /// If it must be opened again and cannot be.
    pub fn fresh(&mut self) -> Result<&Database, Failure> {
        if let Some(database) = &self.database
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

    /// Runs `work` on the store. Runs it again if another process was writing and ended within the time to wait, or has
    /// committed meanwhile; a `work` that fails for these reasons must have changed nothing.
    pub fn run<T>(
        &mut self,
        mut work: impl FnMut(&Database) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut waiting = Waiting::new(self.wait);
        loop {
            let failure = match work(self.fresh()?) {
                Err(Failure::Error(error)) => error,
                done => return done,
            };
            match failure.downcast_ref::<atoll::Error>() {
                Some(error) if error.is_changed() => {}
                Some(error) if waiting.goes_on(error)? => {}
                _ => return Err(Failure::Error(failure)),
            }
        }
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
