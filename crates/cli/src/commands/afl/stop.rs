//! Waiting for a computation that Ctrl-C ends.

use std::sync::Mutex;

use futures::channel::oneshot::{self, Canceled, Receiver};
use futures::executor::block_on;
use futures::future::{Either, FutureExt, Shared, select};

use crate::failure::Failure;
use crate::terminal::interrupt::{self, Guard};

/// What a statement waits for besides its result, until it is dropped.
pub struct Stop {
    asked: Shared<Receiver<()>>,
    _guard: Guard,
}

impl Stop {
    /// Begins to listen.
    pub fn new() -> Stop {
        let (sender, asked) = oneshot::channel();
        let sender = Mutex::new(Some(sender));
        let guard = interrupt::during(move || {
            let sender = sender.lock().map(|mut of| of.take());
            if let Ok(Some(sender)) = sender {
                // Whoever has stopped waiting has its result.
                let _ = sender.send(());
            }
        });
        Stop {
            asked: asked.shared(),
            _guard: guard,
        }
    }

    /// Waits for a result; what computes it is dropped when Ctrl-C is pressed.
    ///
    /// # Errors
    /// [`Failure::Interrupted`].
    pub fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        if interrupt::asked() {
            return Err(Failure::Interrupted);
        }
        let work = std::pin::pin!(work);
        match block_on(select(work, self.asked.clone())) {
            Either::Left((result, _)) => Ok(result),
            Either::Right((Ok(()), _)) => Err(Failure::Interrupted),
            // Nobody can press it any more.
            Either::Right((Err(Canceled), work)) => Ok(block_on(work)),
        }
    }
}
