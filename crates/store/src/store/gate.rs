//! The gate that lets one writer in at a time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::options::Access;
use crate::recovery::roots::newest_sequence;
use crate::store::handle::Store;

/// The write lock of a store: the next writer gets it when this is dropped.
#[derive(Debug)]
pub(crate) struct Gate {
    store: Arc<Store>,
}

impl Drop for Gate {
    fn drop(&mut self) {
        // The transaction's own snapshot is gone by now, and what it kept can go too.
        if self.store.hold.is_writing() {
            let mut writer = self.store.writer.lock();
            writer.open = false;
            self.store.reclaim(&mut writer);
            drop(writer);
            self.store.hold.end_writing();
        }
        self.store.writers.fetch_sub(1, Ordering::Relaxed);
        *self.store.busy.lock() = false;
        self.store.left.notify_one();
    }
}

impl Store {
    fn writable(&self) -> Result<()> {
        if self.hold.access() == Access::Read {
            return Err(Error::ReadOnly {
                path: self.path().to_path_buf(),
            });
        }
        self.not_latched()
    }

    /// Waits for the write lock.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<Gate> {
        self.writable()?;
        self.writers.fetch_add(1, Ordering::Relaxed);
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

    /// The write lock; `None` if another writer holds it.
    pub(crate) fn try_enter(self: &Arc<Self>) -> Result<Option<Gate>> {
        self.writable()?;
        if std::mem::replace(&mut *self.busy.lock(), true) {
            return Ok(None);
        }
        self.writers.fetch_add(1, Ordering::Relaxed);
        let gate = Gate {
            store: self.clone(),
        };
        self.become_writer(&gate)?;
        Ok(Some(gate))
    }

    /// Whether this handle has the newest version: no other process has committed since this one
    /// read the roots and the log, or wrote them. A reader keeps its own version in any case.
    ///
    /// # Errors
    /// [`Error::Io`], and those of reading the roots and the log's headers.
    pub fn is_current(&self) -> Result<bool> {
        if self.hold.is_writing() {
            return Ok(true);
        }
        let _roots = self.hold.keep_roots()?;
        self.is_unchanged()
    }

    pub(crate) fn is_unchanged(&self) -> Result<bool> {
        let writer = self.writer.lock();
        let sequence = newest_sequence(&**self.data(), &self.identity.id)?;
        Ok(
            sequence == Some(writer.root.sequence)
                && writer.log.is_unchanged(writer.head.number)?,
        )
    }
}
