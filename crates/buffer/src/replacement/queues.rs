//! Queues of slots linked through one array, and a bounded memory of pages that left.

use std::collections::{HashMap, VecDeque};

use crate::page::PageId;
use crate::replacement::policy::{Slots, Victim};

const NONE: u32 = u32::MAX;

/// Two first-in-first-out queues over the same slots; a slot is in at most one of them.
#[derive(Debug)]
pub(crate) struct Queues {
    links: Box<[Link]>,
    ends: [End; 2],
}

#[derive(Debug, Clone, Copy)]
struct Link {
    older: u32,
    newer: u32,
    queue: Option<u8>,
}

#[derive(Debug, Clone, Copy)]
struct End {
    oldest: u32,
    newest: u32,
    len: u32,
}

impl Queues {
    pub(crate) fn new(slots: u32) -> Queues {
        let link = Link {
            older: NONE,
            newer: NONE,
            queue: None,
        };
        let end = End {
            oldest: NONE,
            newest: NONE,
            len: 0,
        };
        Queues {
            links: vec![link; slots as usize].into_boxed_slice(),
            ends: [end; 2],
        }
    }

    pub(crate) fn len(&self, queue: u8) -> u32 {
        self.ends[usize::from(queue)].len
    }

    pub(crate) fn oldest(&self, queue: u8) -> Option<u32> {
        some(self.ends[usize::from(queue)].oldest)
    }

    /// The slot that came next into the queue of this one.
    pub(crate) fn newer(&self, slot: u32) -> Option<u32> {
        some(self.links[slot as usize].newer)
    }

    /// Makes a slot the newest of a queue, wherever it was before.
    pub(crate) fn push(&mut self, queue: u8, slot: u32) {
        self.remove(slot);
        let end = &mut self.ends[usize::from(queue)];
        let older = std::mem::replace(&mut end.newest, slot);
        end.len += 1;
        match some(older) {
            Some(older) => self.links[older as usize].newer = slot,
            None => end.oldest = slot,
        }
        self.links[slot as usize] = Link {
            older,
            newer: NONE,
            queue: Some(queue),
        };
    }

    /// Evicts the oldest page of the first queue that has any, if it has no pins now.
    pub(crate) fn evict_oldest(&mut self, queues: [u8; 2], slots: &dyn Slots) -> Victim {
        let oldest = queues.into_iter().find_map(|queue| self.oldest(queue));
        match oldest {
            Some(slot) if slots.evict(slot) => {
                self.remove(slot);
                Victim::Taken(slot)
            }
            _ => Victim::More,
        }
    }

    /// The first of the slots from this one on, to newer ones, that is as asked for; looks at `most`.
    pub(crate) fn find(
        &self,
        from: Option<u32>,
        most: u32,
        wanted: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let mut line = std::iter::successors(from, |&slot| self.newer(slot)).take(most as usize);
        line.find(|&slot| wanted(slot))
    }

    /// Takes a slot out of its queue, if it is in one.
    pub(crate) fn remove(&mut self, slot: u32) {
        let link = self.links[slot as usize];
        let Some(queue) = link.queue else {
            return;
        };
        let end = &mut self.ends[usize::from(queue)];
        end.len -= 1;
        match some(link.older) {
            Some(older) => self.links[older as usize].newer = link.newer,
            None => end.oldest = link.newer,
        }
        match some(link.newer) {
            Some(newer) => self.links[newer as usize].older = link.older,
            None => end.newest = link.older,
        }
        self.links[slot as usize].queue = None;
    }
}

fn some(slot: u32) -> Option<u32> {
    (slot != NONE).then_some(slot)
}

/// The pages that left last, up to a number of them.
#[derive(Debug)]
pub(crate) struct Ghosts {
    order: VecDeque<(PageId, u64)>,
    /// When each page left last; older entries of `order` are void.
    left: HashMap<PageId, u64>,
    clock: u64,
    most: usize,
}

impl Ghosts {
    pub(crate) fn new(most: usize) -> Ghosts {
        Ghosts {
            order: VecDeque::new(),
            left: HashMap::new(),
            clock: 0,
            most: most.max(1),
        }
    }

    /// Remembers a page, and forgets the oldest where there are too many.
    pub(crate) fn add(&mut self, page: PageId) {
        self.clock += 1;
        self.left.insert(page, self.clock);
        self.order.push_back((page, self.clock));
        while self.order.len() > self.most {
            if let Some((page, when)) = self.order.pop_front()
                && self.left.get(&page) == Some(&when)
            {
                self.left.remove(&page);
            }
        }
    }

    /// Whether a page left not long ago; it is forgotten then.
    pub(crate) fn take(&mut self, page: PageId) -> bool {
        self.left.remove(&page).is_some()
    }
}
