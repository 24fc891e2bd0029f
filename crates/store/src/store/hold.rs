//! The locks by which processes share the files of a store.
//!
//! One process writes; any number read beside it, each the version that it found when it opened.
//! For that the writer (1) changes roots and restarts the log only while nobody is opening, and
//! (2) uses no space again that a reader's version may have pages in: while there are readers, what
//! is freed stays pending, and a writer that finds readers when it begins sets aside what was free
//! before it ([`Space::set_aside`](crate::store::Space)), for it cannot know since when.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use io::{Lock, Roots};

use crate::error::{Error, Result};
use crate::options::Access;
use crate::store::running::is_running;

/// How long to wait for the other side to finish opening, or changing the roots. Both take
/// milliseconds, but for a process that is stopped in between.
const PATIENCE: Duration = Duration::from_secs(5);

/// Takes the writer's lock. A checkpoint of this process may still have it, of a store whose last
/// other handle is gone.
fn write_lock(lock: &Lock) -> Result<()> {
    let begun = Instant::now();
    loop {
        // Asked before: one that ends in between has let go of its lock.
        let running = is_running();
        match lock.write() {
            Err(io::Error::Busy { .. }) if running && begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(1));
            }
            taken => return Ok(taken?),
        }
    }
}

/// The locks of an open store.
#[derive(Debug)]
pub(crate) struct Hold {
    access: Access,
    /// `None` where the devices are not files: then nobody else can have them open.
    lock: Option<Lock>,
    /// Whether this handle is the writer at the moment.
    writing: AtomicBool,
}

impl Hold {
    /// For devices that nobody else has.
    pub(crate) fn alone(access: Access) -> Hold {
        Hold {
            access,
            lock: None,
            writing: AtomicBool::new(access == Access::Write),
        }
    }

    /// Takes what `access` needs of the locks of the data file at `path`.
    pub(crate) fn take(path: &Path, access: Access) -> Result<Hold> {
        let lock = match Lock::open(path, access.of_files()) {
            Err(io::Error::Denied { .. }) if access == Access::OnDemand => {
                Lock::open(path, io::Access::Read)?
            }
            opened => opened?,
        };
        match access {
            Access::Write => write_lock(&lock)?,
            Access::Read | Access::OnDemand => lock.read()?,
        }
        Ok(Hold {
            access,
            lock: Some(lock),
            writing: AtomicBool::new(access == Access::Write),
        })
    }

    /// Whether the devices are files, which others may have open.
    pub(crate) fn is_of_files(&self) -> bool {
        self.lock.is_some()
    }

    pub(crate) fn access(&self) -> Access {
        self.access
    }

    /// Whether this handle is the writer now: then the files are as it left them.
    pub(crate) fn is_writing(&self) -> bool {
        self.writing.load(Ordering::Acquire)
    }

    /// Becomes the writer if it is not; true if it was not. Only within the gate.
    pub(crate) fn start_writing(&self) -> Result<bool> {
        if self.is_writing() {
            return Ok(false);
        }
        if let Some(lock) = &self.lock {
            lock.write()?;
        }
        self.writing.store(true, Ordering::Release);
        Ok(true)
    }

    /// At the end of a transaction: a handle that writes on demand lets others.
    pub(crate) fn end_writing(&self) {
        if self.access == Access::OnDemand {
            self.stop_writing();
        }
    }

    fn stop_writing(&self) {
        self.writing.store(false, Ordering::Release);
        if let Some(lock) = &self.lock {
            lock.stop_writing();
        }
    }

    /// Whether other handles may read pages that are not of the current version. Where that cannot
    /// be found out they may.
    pub(crate) fn others_read(&self) -> bool {
        self.lock
            .as_ref()
            .is_some_and(|lock| lock.is_read().unwrap_or(true))
    }

    /// Whether another handle is the writer.
    pub(crate) fn others_write(&self) -> Result<bool> {
        Ok(match &self.lock {
            Some(lock) => lock.is_written()?,
            None => false,
        })
    }

    /// Keeps the roots as they are, for a handle that opens.
    pub(crate) fn keep_roots(&self) -> Result<Option<Roots<'_>>> {
        match &self.lock {
            Some(lock) if !self.is_writing() => match lock.keep_roots(PATIENCE)? {
                Some(roots) => Ok(Some(roots)),
                None => Err(lock.busy().into()),
            },
            _ => Ok(None),
        }
    }

    /// Keeps others from opening while the writer changes the roots.
    pub(crate) fn change_roots(&self, path: &Path) -> Result<Option<Roots<'_>>> {
        match &self.lock {
            Some(lock) => match lock.change_roots(PATIENCE)? {
                Some(roots) => Ok(Some(roots)),
                None => Err(Error::Opening {
                    path: path.to_path_buf(),
                }),
            },
            None => Ok(None),
        }
    }
}
