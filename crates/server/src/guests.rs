//! Connections that nobody has been let in by yet: where there is no room they make place for those who come.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// The connections of a listener.
#[derive(Debug, Default)]
pub(crate) struct Guests {
    /// How many there are of all listeners.
    all: Arc<AtomicUsize>,
    /// How many there are.
    open: AtomicUsize,
    /// Those by which nobody has been let in, by the order in which they came.
    strangers: Mutex<BTreeMap<u64, TcpStream>>,
    next: Mutex<u64>,
}

/// A connection, for as long as it is served.
#[derive(Debug)]
pub(crate) struct Guest {
    number: u64,
    of: Arc<Guests>,
}

impl Guests {
    /// Those of a listener; `all` counts them with those of others.
    pub(crate) fn new(all: Arc<AtomicUsize>) -> Arc<Guests> {
        Arc::new(Guests {
            all,
            ..Guests::default()
        })
    }

    /// Takes a connection in. Where there are `most`, the one by which nobody has been let in for the longest time is
    /// closed for it: whoever says nothing keeps nobody out.
    ///
    /// None if somebody was let in by each of them.
    pub(crate) fn take_in(self: &Arc<Guests>, socket: &TcpStream, most: usize) -> Option<Guest> {
        let open = self.open.fetch_add(1, Ordering::AcqRel);
        // The thread of one that is closed needs a moment to end.
        if open >= most && (open >= most.saturating_mul(2) || !self.close_one()) {
            self.open.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        self.all.fetch_add(1, Ordering::AcqRel);
        let mut next = self.next.lock();
        let number = *next;
        *next += 1;
        drop(next);
        if let Ok(socket) = socket.try_clone() {
            self.strangers.lock().insert(number, socket);
        }
        Some(Guest {
            number,
            of: Arc::clone(self),
        })
    }

    /// Closes the connection that has been there for the longest time without anybody; false if there is none.
    fn close_one(&self) -> bool {
        let oldest = self.strangers.lock().pop_first();
        oldest.is_some_and(|(_, socket)| {
            let _ = socket.shutdown(Shutdown::Both);
            true
        })
    }
}

impl Guest {
    /// Somebody was let in: the connection is kept.
    pub(crate) fn is_known(&self) {
        self.of.strangers.lock().remove(&self.number);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.is_known();
        self.of.open.fetch_sub(1, Ordering::AcqRel);
        self.of.all.fetch_sub(1, Ordering::AcqRel);
    }
}
