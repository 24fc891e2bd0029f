//! Pages in order, in a window that grows.

use crate::page::PageId;
use crate::prefetch::prefetcher::{Outcome, Prefetcher, pages};

/// Streams that are told apart.
const STREAMS: usize = 16;
/// Pages of the first window.
const FIRST: u32 = 4;
/// Pages of the largest window, as far as the pool allows so many.
const MOST: u32 = 64;

/// Reads ahead as Linux does in files. Two pages in order begin a stream, with a window of four pages
/// after them. The first page of the window named last is a marker: who reads it has the next
/// window named, so that it is loaded while the rest of this one is read. A window is twice as long
/// as the one before if the reader had to wait since that was named, and as long if not. Up to 16
/// streams may be read in turn; pages that are in no order begin none, and hits begin none.
#[derive(Debug)]
pub struct Streams {
    most: u32,
    /// The one used last comes first.
    streams: Vec<Stream>,
}

/// Pages `next..end` were named and are still to be read.
#[derive(Debug, Clone, Copy)]
struct Stream {
    next: PageId,
    end: PageId,
    /// Who reads this page, or one after it, has the next window named.
    marker: PageId,
    /// Pages of the window named last; 0 before there was one.
    window: u32,
    /// Whether the reader had to wait since that was named.
    waited: bool,
}

impl Streams {
    /// A prefetcher that names at most `most` pages at once, at least 1.
    pub fn new(most: u32) -> Streams {
        Streams {
            most: MOST.min(most).max(1),
            streams: Vec::with_capacity(STREAMS),
        }
    }
}

impl Stream {
    /// Whether it goes on with this page. Some may be passed over, as they are on other nodes or not
    /// wanted.
    fn holds(&self, page: PageId) -> bool {
        self.next <= page && page <= self.end
    }

    fn next_window(&mut self, page: PageId, most: u32, wanted: &mut Vec<PageId>) {
        let Some(after) = page.checked_add(1) else {
            return;
        };
        self.window = match self.window {
            0 => FIRST.min(most),
            window if self.waited => window.saturating_mul(2).min(most),
            window => window,
        };
        self.waited = false;
        let first = self.end.max(after);
        wanted.extend(pages(first, 1, self.window));
        self.marker = first;
        self.end = first.saturating_add(self.window);
    }
}

impl Prefetcher for Streams {
    fn accessed(&mut self, page: PageId, outcome: Outcome, wanted: &mut Vec<PageId>) {
        let waits = outcome != Outcome::Hit;
        let Some(at) = self.streams.iter().position(|stream| stream.holds(page)) else {
            if waits {
                self.streams.truncate(STREAMS - 1);
                let next = page.saturating_add(1);
                let new = Stream {
                    next,
                    end: next,
                    marker: next,
                    window: 0,
                    waited: false,
                };
                self.streams.insert(0, new);
            }
            return;
        };
        self.streams[..=at].rotate_right(1);
        let stream = &mut self.streams[0];
        stream.waited |= waits;
        stream.next = page.saturating_add(1);
        if page >= stream.marker {
            stream.next_window(page, self.most, wanted);
        }
    }
}
