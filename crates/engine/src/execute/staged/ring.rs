//! The ring of the staged executor: its blocks, each of which is empty, set up, ready or processed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::execute::stream::block::{Block, Part};
use crate::execute::stream::flow::Flow;

/// The state of a block of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Empty,
    Setup,
    Ready,
    Processing,
}

/// A slot of the ring.
struct Slot {
    state: State,
    since: Instant,
    /// Taken out while it is set up.
    block: Block,
    /// The next of its parts that nobody has taken for processing.
    next: usize,
    /// Processing tasks that have yet to leave the block.
    tasks: usize,
    /// Rows that came to the end of the pipeline.
    came: usize,
}

/// The ring of one pipeline.
pub(super) struct Ring {
    slots: Vec<Mutex<Slot>>,
    /// Processing tasks that take each block, at the same time.
    per_block: usize,
    /// Nanoseconds that blocks spent in each state.
    times: [AtomicU64; 4],
    processed: AtomicU64,
    /// Pieces that the source's filters emptied, and blocks that operators emptied.
    dropped: [AtomicU64; 2],
}

/// What the blocks of a ring did.
pub(super) struct Counted {
    /// Nanoseconds empty, set up, ready and processed.
    pub times: [u64; 4],
    pub processed: u64,
    pub dropped: [u64; 2],
}

impl Ring {
    /// With so many blocks, each processed by `per_block` tasks.
    pub fn new(slots: usize, per_block: usize) -> Ring {
        let slot = || Slot {
            state: State::Empty,
            since: Instant::now(),
            block: Block::default(),
            next: 0,
            tasks: 0,
            came: 0,
        };
        Ring {
            slots: std::iter::repeat_with(|| Mutex::new(slot()))
                .take(slots)
                .collect(),
            per_block,
            times: Default::default(),
            processed: AtomicU64::new(0),
            dropped: Default::default(),
        }
    }

    /// How many blocks it has.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Begins to set up an empty block.
    pub fn set_up(&self, slot: usize, flow: &Flow) -> Block {
        self.turn(&mut self.slots[slot].lock(), State::Empty, State::Setup);
        flow.blocks.get()
    }

    /// Puts a block in place that was set up.
    pub fn ready(&self, slot: usize, block: Block) {
        let slot = &mut *self.slots[slot].lock();
        self.turn(slot, State::Setup, State::Ready);
        slot.block = block;
        (slot.next, slot.tasks, slot.came) = (0, self.per_block, 0);
    }

    /// A processing task comes to a block that is ready, or is being processed by others; the rows of a block to which it comes
    /// first.
    pub fn enter(&self, slot: usize) -> Option<usize> {
        let slot = &mut *self.slots[slot].lock();
        let first = slot.state == State::Ready;
        if first {
            self.turn(slot, State::Ready, State::Processing);
        }
        first.then_some(slot.block.rows)
    }

    /// Takes the next part of a block, and its place, which it is given back to.
    pub fn take(&self, slot: usize) -> Option<(usize, Part)> {
        let slot = &mut *self.slots[slot].lock();
        let part = std::mem::take(slot.block.parts().get_mut(slot.next)?);
        slot.next += 1;
        Some((slot.next - 1, part))
    }

    /// Gives a part back, of which so many rows came to the end of the pipeline.
    pub fn give_back(&self, slot: usize, (place, part): (usize, Part), came: usize) {
        let slot = &mut *self.slots[slot].lock();
        slot.block.parts()[place] = part;
        slot.came += came;
    }

    /// A processing task leaves a block. Returns whether it was the last one, which has made the block empty.
    pub fn leave(&self, slot: usize, flow: &Flow) -> bool {
        let slot = &mut *self.slots[slot].lock();
        slot.tasks -= 1;
        if slot.tasks > 0 {
            return false;
        }
        self.turn(slot, State::Processing, State::Empty);
        self.processed.fetch_add(1, Ordering::Relaxed);
        if slot.came == 0 {
            self.dropped[1].fetch_add(1, Ordering::Relaxed);
        }
        flow.blocks.put(std::mem::take(&mut slot.block));
        true
    }

    /// The source's filters emptied a piece.
    pub fn dropped(&self) {
        self.dropped[0].fetch_add(1, Ordering::Relaxed);
    }

    fn turn(&self, slot: &mut Slot, from: State, to: State) {
        debug_assert_eq!(slot.state, from);
        let now = Instant::now();
        let time = (now - slot.since).as_nanos() as u64;
        self.times[from as usize].fetch_add(time, Ordering::Relaxed);
        (slot.state, slot.since) = (to, now);
    }

    /// What its blocks did.
    pub fn counted(&self) -> Counted {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        Counted {
            times: self.times.each_ref().map(read),
            processed: read(&self.processed),
            dropped: self.dropped.each_ref().map(read),
        }
    }
}
