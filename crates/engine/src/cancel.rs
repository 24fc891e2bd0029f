//! Cancelling a query.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::{Error, Result};

tokio::task_local! {
    /// The switch of the query that this task works for.
    static PRESENT: Stop;
}

/// A switch that cancels a query. Clones are the same switch.
///
/// Dropping the future of a query cancels it too, but only where that future next yields. The switch acts sooner:
/// every worker checks it after each vector of 2,048 rows.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Switch>);

#[derive(Debug, Default)]
struct Switch {
    /// [`RAISED`] and [`SEALED`]. Whichever of the two was set first wins until the seal is broken.
    state: AtomicU8,
    above: Option<Stop>,
}

/// Somebody asked for the end.
const RAISED: u8 = 1;
/// What runs can no longer be cancelled: it has begun to commit.
const SEALED: u8 = 2;

impl Stop {
    /// Cancels the query. False if it is [sealed](Stop::seal): then it goes on, and its outcome counts.
    pub fn stop(&self) -> bool {
        self.0.state.fetch_or(RAISED, Ordering::AcqRel) & SEALED == 0
    }

    /// Whether the query was cancelled.
    pub fn stopped(&self) -> bool {
        self.0.state.load(Ordering::Acquire) == RAISED
            || self.0.above.as_ref().is_some_and(Stop::stopped)
    }

    /// Runs `work` with this as the switch that functions in it look at, which get no other context.
    pub fn over<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        PRESENT.scope(self, work)
    }

    /// Runs what does not await anything likewise.
    pub fn within<T>(self, work: impl FnOnce() -> T) -> T {
        PRESENT.sync_scope(self, work)
    }

    /// The switch of the query that this task works for; if it works for none, one that never stops anything. A task that is
    /// spawned must be given it: it works for none by itself.
    pub fn present() -> Stop {
        PRESENT.try_with(Stop::clone).unwrap_or_default()
    }

    /// From here on nothing cancels the query, so that whoever asks for it waits for the outcome of a commit instead of
    /// being told that there is none.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if it was cancelled before.
    pub fn seal(&self) -> Result<()> {
        let sealed = |state: u8| (state != RAISED).then_some(state | SEALED);
        let set = self
            .0
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, sealed);
        set.map_err(|_| Error::Cancelled)?;
        match &self.0.above {
            None => Ok(()),
            Some(above) => above.seal().inspect_err(|_| self.unseal()),
        }
    }

    /// What runs from here on can be cancelled again, and is at once if somebody asked for it meanwhile.
    pub fn unseal(&self) {
        self.0.state.fetch_and(!SEALED, Ordering::AcqRel);
    }

    /// A child switch: raised by itself or with this one, but never raising this one. To seal it seals this one, too.
    pub fn below(&self) -> Stop {
        Stop(Arc::new(Switch {
            state: AtomicU8::new(0),
            above: Some(self.clone()),
        }))
    }

    /// Fails if the query was cancelled.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn check(&self) -> Result<()> {
        if self.stopped() {
            Err(Error::Cancelled)
        } else {
            Ok(())
        }
    }
}

/// Cancels the query when it is dropped, so that workers stop at their next morsel.
pub(crate) struct StopOnDrop(pub Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use crate::cancel::Stop;

    #[test]
    fn work_knows_its_switch() {
        let stop = Stop::default();
        stop.stop();
        assert!(!Stop::present().stopped());
        assert!(stop.clone().within(|| Stop::present().stopped()));
        let other = Stop::default();
        assert!(!stop.within(|| other.within(|| Stop::present().stopped())));
        assert!(!Stop::present().stopped());
    }

    #[test]
    fn a_switch_below_follows_and_does_not_lead() {
        let above = Stop::default();
        let (one, other) = (above.below(), above.below());
        one.stop();
        assert!(one.check().is_err());
        assert!(!above.stopped() && !other.stopped());
        above.stop();
        assert!(other.clone().below().check().is_err());
    }

    #[test]
    fn what_is_sealed_goes_on_until_the_seal_is_broken() {
        let above = Stop::default();
        let below = above.below();
        below.seal().unwrap();
        assert!(!above.stop(), "a commit has begun");
        assert!(!above.stopped() && !below.stopped());
        above.unseal();
        assert!(above.stopped() && below.stopped());
        assert!(below.seal().is_err() && above.seal().is_err());
        // What failed to seal has left no seal behind.
        assert!(below.stop());
    }

    #[test]
    fn one_of_seal_and_stop_wins() {
        for _ in 0..1000 {
            let (above, below) = {
                let above = Stop::default();
                (above.clone(), above.below())
            };
            let committed = std::thread::spawn(move || below.seal().is_ok());
            let stopped = above.stop();
            assert_ne!(committed.join().unwrap(), stopped);
        }
    }
}
