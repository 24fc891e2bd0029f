//! Reads the pieces of files on a thread of their own, so that no worker waits for the device. What is in memory is drawn
//! where it is asked for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::channel::mpsc;
use futures::channel::mpsc::{Receiver, Sender};
use futures::{SinkExt, StreamExt};
use ingest::{Dataset, Piece, Request};

use crate::error::{Error, Result};

/// Pieces that are read before somebody asks for them.
const AHEAD: usize = 2;

/// The pieces of a dataset as they are read. Dropping it ends the reading.
pub(super) enum Pieces {
    /// Read by a thread.
    Coming(Receiver<Result<Piece>>),
    /// In memory.
    Here(ingest::Pieces),
}

impl std::fmt::Debug for Pieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pieces").finish_non_exhaustive()
    }
}

impl Pieces {
    /// The next one; none after the last.
    pub async fn next(&mut self) -> Option<Result<Piece>> {
        match self {
            Pieces::Coming(pieces) => pieces.next().await,
            Pieces::Here(pieces) => Some(pieces.next()?.map_err(Error::from)),
        }
    }
}

/// Begins to read the pieces that `request` asks for.
pub(super) fn begin(dataset: &Arc<Dataset>, request: Request) -> Pieces {
    if dataset.is_at_hand(&request) {
        return Pieces::Here(match dataset.pieces(&request) {
            Ok(pieces) => pieces,
            Err(error) => Box::new(std::iter::once(Err(error))),
        });
    }
    let (sender, receiver) = mpsc::channel(AHEAD);
    let once = dataset.is_once();
    let dataset = Arc::clone(dataset);
    let (pieces, mut failing) = (sender.clone(), sender.clone());
    let read = move || {
        // Decoders of damaged data have been seen to panic, which must not look like the end of the file.
        let outcome = catch_unwind(AssertUnwindSafe(|| all(&dataset, &request, pieces)));
        if let Err(panic) = outcome {
            let panic = Error::of_panic(panic.as_ref());
            let error = Error::File {
                path: dataset.path().into(),
                message: format!("cannot be decoded: {panic}"),
            };
            let _ = futures::executor::block_on(failing.send(Err(error)));
        }
    };
    if once {
        // A pipe may stay silent forever, and the runtime would wait for it when it shuts down: a thread of its own
        // does not.
        let mut refused = sender;
        let spawned = std::thread::Builder::new().name("pipe".into()).spawn(read);
        if let Err(e) = spawned {
            let message = format!("no thread to read files with: {e}");
            let _ = refused.try_send(Err(Error::Execution {
                code: "XX000",
                message,
            }));
        }
    } else {
        tokio::task::spawn_blocking(read);
    }
    Pieces::Coming(receiver)
}

fn all(dataset: &Arc<Dataset>, request: &Request, mut sender: Sender<Result<Piece>>) {
    let pieces = match dataset.pieces(request) {
        Ok(pieces) => pieces,
        Err(error) => {
            let _ = futures::executor::block_on(sender.send(Err(error.into())));
            return;
        }
    };
    for piece in pieces {
        let piece = piece.map_err(Error::from);
        let failed = piece.is_err();
        if futures::executor::block_on(sender.send(piece)).is_err() || failed {
            return;
        }
    }
}
