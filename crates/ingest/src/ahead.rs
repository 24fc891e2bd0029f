//! Read-ahead: draws pieces on a thread of its own, for slow files (pipes and compressed files).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::error::{Error, Result, panicked};
use crate::piece::{Piece, Pieces};

/// How often a waiting reader checks whether it is to stop.
const TICK: Duration = Duration::from_millis(50);

/// The same pieces; up to `depth` of them are drawn before they are asked for.
///
/// When `stop` becomes true, waiting ends with [`Error::Stopped`], even if the file never yields another byte.
pub fn ahead(pieces: Pieces, depth: usize, stop: &Arc<AtomicBool>) -> Pieces {
    let (send, drawn) = mpsc::sync_channel::<Result<Piece>>(depth.max(1));
    let draw = move || {
        // A decompressor that panicked must not look like the end of the file.
        let drawing = catch_unwind(AssertUnwindSafe(|| {
            for piece in pieces {
                let failed = piece.is_err();
                if send.send(piece).is_err() || failed {
                    return;
                }
            }
        }));
        if let Err(panic) = drawing {
            let _ = send.send(Err(Error::Options(format!(
                "reading a file failed: {}",
                panicked(panic.as_ref())
            ))));
        }
    };
    let thread = std::thread::Builder::new()
        .name("ingest".into())
        .spawn(draw);
    let stop = Arc::clone(stop);
    let mut failed = thread
        .err()
        .map(|error| Error::Options(format!("no thread to read with: {error}")));
    let mut ended = false;
    Box::new(std::iter::from_fn(move || {
        if let Some(error) = failed.take() {
            ended = true;
            return Some(Err(error));
        }
        while !ended {
            if stop.load(Ordering::Acquire) {
                ended = true;
                return Some(Err(Error::Stopped));
            }
            match drawn.recv_timeout(TICK) {
                Ok(piece) => return Some(piece),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => ended = true,
            }
        }
        None
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(rows: u64) -> Piece {
        Piece {
            number: 0,
            rows: Some(rows),
            bytes: 0,
            read: Box::new(|| Ok(Box::new(std::iter::empty()))),
        }
    }

    #[test]
    fn pieces_come_in_order_and_failures_are_told() {
        let stop = Arc::new(AtomicBool::new(false));
        let all = ahead(Box::new((0..100).map(|n| Ok(piece(n)))), 2, &stop);
        assert!(all.map(|piece| piece.unwrap().rows.unwrap()).eq(0..100));
        let panicking = (0..3).map(|n| {
            if n == 2 {
                panic!("no more")
            } else {
                Ok(piece(n))
            }
        });
        let all: Vec<_> = ahead(Box::new(panicking), 2, &stop).collect();
        assert!(all.len() == 3 && all[2].is_err());
    }

    #[test]
    fn waiting_for_ever_can_be_stopped() {
        let stop = Arc::new(AtomicBool::new(false));
        let (_hold, never) = mpsc::channel::<()>();
        let waiting = std::iter::from_fn(move || {
            let _ = never.recv();
            None
        });
        let mut all = ahead(Box::new(waiting), 2, &stop);
        let later = Arc::clone(&stop);
        std::thread::spawn(move || later.store(true, Ordering::Release));
        assert!(matches!(all.next(), Some(Err(Error::Stopped))));
        assert!(all.next().is_none());
    }
}
