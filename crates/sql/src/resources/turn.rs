//! The turn to write: one transaction at a time has it.
//!
//! A statement that is a transaction of its own ends by itself, so others wait for it as long as it takes. A transaction
//! of several statements may be forgotten by whoever began it: others wait for it for a limited time.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::error::{Error, Result};

/// How long a statement waits for a transaction of another session, unless the options say something else.
const PATIENCE: Duration = Duration::from_secs(10);

/// Those who want to write, and the one who does.
#[derive(Debug)]
pub(crate) struct Turns {
    lock: Arc<Mutex<()>>,
    /// Whether a transaction of several statements has the turn.
    lent: Arc<AtomicBool>,
    patience: Duration,
}

/// The right to write to a store, as long as it is held: see [`Instance::turn`](crate::Instance::turn).
#[derive(Debug)]
pub struct Turn {
    lent: Arc<AtomicBool>,
    _guard: OwnedMutexGuard<()>,
}

impl Turns {
    /// Turns for which one waits `patience` at most while a transaction of several statements has it.
    pub(crate) fn new(patience: Option<Duration>) -> Turns {
        Turns {
            lock: Arc::default(),
            lent: Arc::default(),
            patience: patience.unwrap_or(PATIENCE),
        }
    }

    /// Whether somebody has the turn, or is about to get it.
    pub(crate) fn is_taken(&self) -> bool {
        self.lock.try_lock().is_err()
    }

    /// Waits for the turn without holding a worker.
    ///
    /// # Errors
    /// [`Error::Conflict`] if a transaction of several statements keeps it for too long.
    pub(crate) async fn wait(&self) -> Result<Turn> {
        let mut lock = pin!(Arc::clone(&self.lock).lock_owned());
        loop {
            match tokio::time::timeout(self.patience, lock.as_mut()).await {
                Ok(guard) => {
                    return Ok(Turn {
                        lent: Arc::clone(&self.lent),
                        _guard: guard,
                    });
                }
                Err(_) if self.lent.load(Ordering::Acquire) => {
                    return Err(Error::Conflict {
                        code: "55P03",
                        message: format!(
                            "a transaction of another session has been writing for {:?}, and one writes at a time: try again when it has ended (`commit` or `rollback`)",
                            self.patience
                        ),
                    });
                }
                Err(_) => {}
            }
        }
    }
}

impl Turn {
    /// From now on a transaction of several statements has it.
    pub(crate) fn lend(&self) {
        self.lent.store(true, Ordering::Release);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.lent.store(false, Ordering::Release);
    }
}
