//! Blocking callers that wait for statements, and interrupt them.

use std::sync::Arc;

use governor::runtime::Runtime;
use sql::Canceller;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::error::{Error, Result};

/// Interrupts the statement that a [`Session`](crate::Session) runs, from any thread.
#[derive(Clone, Debug)]
pub struct Interrupter(Arc<Notify>);

impl Interrupter {
    /// Stops the statement that the session runs at this moment, which then returns [`Error::Interrupted`], and has done
    /// nothing. If it runs none, or has begun to commit, nothing happens: the statement returns what has become of it.
    pub fn interrupt(&self) {
        self.0.notify_waiters();
    }
}

/// What a session waits with.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// The workers.
    pub handle: Handle,
    /// Told to interrupt.
    stop: Arc<Notify>,
    governing: Arc<Runtime>,
}

impl Waiting {
    pub(crate) fn new(handle: Handle, governing: Arc<Runtime>) -> Waiting {
        Waiting {
            handle,
            stop: Arc::new(Notify::new()),
            governing,
        }
    }

    /// The same, which another handle interrupts.
    pub(crate) fn apart(&self) -> Waiting {
        Waiting {
            stop: Arc::new(Notify::new()),
            ..self.clone()
        }
    }

    /// A handle that interrupts whoever waits.
    pub(crate) fn interrupter(&self) -> Interrupter {
        Interrupter(Arc::clone(&self.stop))
    }

    /// Waits for `work` or an interrupt, whichever comes first; an interrupt drops the work and waits for its end.
    pub(crate) fn wait<T, E: Into<Error>>(
        &self,
        work: impl Future<Output = std::result::Result<T, E>>,
    ) -> Result<T> {
        let canceller = Canceller::default();
        let work = canceller.over(work);
        self.wait_for(canceller, work)
    }

    /// Waits for `work`, which runs over `canceller`, or an interrupt. Work that has begun to commit is not interrupted: what
    /// has become of it is returned, as whoever is told that it was interrupted would do it again.
    pub(crate) fn wait_for<T, E: Into<Error>>(
        &self,
        canceller: Canceller,
        work: impl Future<Output = std::result::Result<T, E>>,
    ) -> Result<T> {
        not_in_a_task()?;
        // This comes first, so that no interrupt is missed from here on.
        let stopped = self.stop.notified();
        let _running = self.governing.begin();
        self.handle.block_on(async {
            let mut work = Box::pin(work);
            tokio::select! {
                biased;
                () = stopped => {}
                done = &mut work => return done.map_err(Into::into),
            }
            if !canceller.cancel() {
                return work.await.map_err(Into::into);
            }
            drop(work);
            canceller.ended().await;
            Err(Error::Interrupted)
        })
    }
}

/// Fails within an asynchronous task: blocking there would block one of the threads that are to do the work.
pub(crate) fn not_in_a_task() -> Result<()> {
    match Handle::try_current() {
        Ok(_) => Err(Error::Blocking),
        Err(_) => Ok(()),
    }
}
