//! A request: what is to be read, where it goes, and who waits for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::channel::oneshot;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::room::Room;

/// One read that somebody waits for.
pub(super) struct Request {
    pub(super) device: Arc<dyn Device>,
    pub(super) offset: u64,
    pub(super) len: usize,
    /// Where the bytes go. Invariant: `len` bytes of the room that `owner` has.
    pub(super) into: *mut u8,
    pub(super) registered: bool,
    owner: Box<dyn Owner>,
}

// SAFETY: `into` points into the room, which may be sent and moves with the request.
unsafe impl Send for Request {}

/// The room and whom it goes back to.
trait Owner: Send {
    fn is_gone(&self) -> bool;
    fn answer(self: Box<Self>, result: Result<()>);
}

struct Slot<R> {
    room: R,
    sender: oneshot::Sender<Result<R>>,
}

impl<R: Room> Owner for Slot<R> {
    fn is_gone(&self) -> bool {
        self.sender.is_canceled()
    }

    fn answer(self: Box<Self>, result: Result<()>) {
        let Slot { room, sender } = *self;
        // Whoever has gone since does not want to know.
        let _ = sender.send(result.map(|()| room));
    }
}

impl Request {
    /// A request to fill the first `len` bytes of `room`, or why there cannot be one.
    pub(super) fn new<R: Room>(
        device: &Arc<dyn Device>,
        offset: u64,
        len: usize,
        mut room: R,
    ) -> std::result::Result<(Request, Filling<R>), Filling<R>> {
        let (into, size) = room.bytes();
        let end = offset.checked_add(len as u64);
        // The operating system counts positions with a sign.
        let possible = end.is_some_and(|end| i64::try_from(end).is_ok());
        if size < len || !possible {
            let path = device.path().to_owned();
            let error = if size < len {
                Error::Room {
                    path,
                    offset,
                    wanted: len,
                    size,
                }
            } else {
                Error::ShortRead {
                    path,
                    offset,
                    wanted: len,
                    got: 0,
                }
            };
            return Err(Filling::refused(error));
        }
        if len == 0 {
            return Err(Filling {
                state: State::Empty(Some(room)),
            });
        }
        let registered = room.registered();
        let (sender, receiver) = oneshot::channel();
        let request = Request {
            device: device.clone(),
            offset,
            len,
            into,
            registered,
            owner: Box::new(Slot { room, sender }),
        };
        let filling = Filling {
            state: State::Waits(receiver),
        };
        Ok((request, filling))
    }

    /// The position after the last byte.
    pub(super) fn end(&self) -> u64 {
        self.offset + self.len as u64
    }

    /// Whether nobody waits for it any more.
    pub(super) fn is_gone(&self) -> bool {
        self.owner.is_gone()
    }

    /// Tells whoever waits, on this thread.
    pub(super) fn answer(self, result: Result<()>) {
        self.owner.answer(result);
    }
}

#[derive(Debug)]
enum State<R> {
    Waits(oneshot::Receiver<Result<R>>),
    Refused(Option<Error>),
    Empty(Option<R>),
}

/// A read under way into a [`Room`]; see [`Queue::fill`](crate::Queue::fill). Dropping it takes the
/// request back if it was not yet begun; else the room is dropped when the read is done.
#[derive(Debug)]
#[must_use = "the room comes back through this future"]
pub struct Filling<R> {
    state: State<R>,
}

impl<R> Filling<R> {
    /// One that fails.
    pub(super) fn refused(error: Error) -> Filling<R> {
        Filling {
            state: State::Refused(Some(error)),
        }
    }
}

// The room is never pinned: it is only moved.
impl<R> Unpin for Filling<R> {}

impl<R> Future for Filling<R> {
    type Output = Result<R>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.state {
            State::Waits(receiver) => Pin::new(receiver)
                .poll(context)
                .map(|answer| answer.unwrap_or_else(|_| Err(gone()))),
            State::Refused(error) => Poll::Ready(Err(error.take().unwrap_or_else(gone))),
            State::Empty(room) => Poll::Ready(room.take().ok_or_else(gone)),
        }
    }
}

/// A read under way; see [`Queue::read`](crate::Queue::read).
#[derive(Debug)]
#[must_use = "the bytes come through this future"]
pub struct Reading(pub(super) Filling<Vec<u8>>);

impl Future for Reading {
    type Output = Result<Vec<u8>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

fn gone() -> Error {
    Error::Threads {
        why: "the queue was shut down before the read was served".to_owned(),
    }
}
