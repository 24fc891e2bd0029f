//! The turn to write: one transaction at a time has it.
//!
//! A statement that is a transaction of its own ends by itself, so others wait for it as long as it takes. A transaction
//! of several statements may be forgotten by whoever began it: others wait for it for a limited time.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catalog::locks::{TurnClaim, timed_out};
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
    /// What others see of it.
    claim: Option<TurnClaim>,
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

    /// Waits for the turn without holding a worker, for as long as the session of `claim` waits for locks.
    ///
    /// # Errors
    /// [`Error::Conflict`] if a transaction of several statements keeps it for too long.
    pub(crate) async fn wait(&self, claim: Option<TurnClaim>) -> Result<Turn> {
        let limit = claim.as_ref().and_then(TurnClaim::timeout);
        let turn = match limit {
            Some(limit) => tokio::time::timeout(limit, self.come()).await,
            None => Ok(self.come().await),
        };
        let mut turn = turn.map_err(|_| timed_out())??;
        if let Some(claim) = &claim {
            claim.grant();
        }
        turn.claim = claim;
        Ok(turn)
    }

    async fn come(&self) -> Result<Turn> {
        let mut lock = pin!(Arc::clone(&self.lock).lock_owned());
        loop {
            match tokio::time::timeout(self.patience, lock.as_mut()).await {
                Ok(guard) => {
                    return Ok(Turn {
                        lent: Arc::clone(&self.lent),
                        claim: None,
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

    /// A statement `what` of who has it changes these tables, too.
    pub(crate) fn changes(&self, what: &str, names: &[&str]) {
        if let Some(claim) = &self.claim {
            claim.more(what, names);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.lent.store(false, Ordering::Release);
    }
}
