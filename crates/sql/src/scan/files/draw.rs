//! Draws the pieces of files on a thread of their own, so that workers sleep while the device is waited for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::SinkExt;
use futures::channel::mpsc::{self, Receiver, Sender};
use ingest::{Dataset, Piece, Request};

use crate::error::{Error, Result};

/// Pieces that are drawn before somebody asks for them.
const AHEAD: usize = 2;

/// The pieces of a dataset as they are drawn. Dropping it ends the reading.
pub(crate) type Pieces = Receiver<Result<Piece>>;

/// Begins to draw the pieces.
pub(crate) fn begin(dataset: &Arc<Dataset>, request: Request) -> Pieces {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let once = dataset.is_once();
    let dataset = Arc::clone(dataset);
    let (drawing, mut failing) = (sender.clone(), sender.clone());
    let draw = move || {
        // Decoders of damaged data have been seen to panic, which must not look like the end of the file.
        let drawn = catch_unwind(AssertUnwindSafe(|| all(&dataset, &request, drawing)));
        if let Err(panic) = drawn {
            let panic = crate::error::panicked(panic.as_ref());
            let error = Error::File {
                path: dataset.path().into(),
                message: format!("cannot be decoded: {panic}"),
            };
            let _ = futures::executor::block_on(failing.send(Err(error)));
        }
    };
    if once {
        // A pipe may never say another word; the runtime would wait for that when it ends.
        let mut refused = sender;
        let spawned = std::thread::Builder::new().name("pipe".into()).spawn(draw);
        if let Err(e) = spawned {
            let message = format!("no thread to read files with: {e}");
            let _ = refused.try_send(Err(Error::Execution { message }));
        }
    } else {
        tokio::task::spawn_blocking(draw);
    }
    receiver
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
