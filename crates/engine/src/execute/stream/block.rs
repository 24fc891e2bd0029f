//! Execution blocks: rows in flight between operators, and the pool of free blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use algebra::VECTOR_ROWS;
use parking_lot::Mutex;

use crate::execute::pieces::Hold;
use crate::operators::source::Selection;
use crate::options::{Allocation, Execution};
use crate::vector::batch::Batch;

/// A vector of rows in a block.
#[derive(Default)]
pub(crate) struct Part {
    pub batch: Batch,
    pub selection: Selection,
    pub hold: Option<Arc<Hold>>,
    /// The place of these rows in the source; lower numbers come first.
    pub place: u64,
}

/// An execution block. Its last consumer returns it to [`Blocks`].
#[derive(Default)]
pub(crate) struct Block {
    /// Unique among the blocks of a source.
    pub id: u64,
    pub rows: usize,
    parts: Vec<Part>,
    /// How many of the parts hold rows; the others are kept for reuse.
    used: usize,
    /// Whether it held rows before.
    is_used: bool,
}

impl Block {
    /// A block with room for so many vectors of rows.
    fn with_room(parts: usize) -> Block {
        let part = || Part {
            selection: Selection::with_room(VECTOR_ROWS),
            ..Part::default()
        };
        Block {
            parts: std::iter::repeat_with(part).take(parts).collect(),
            ..Block::default()
        }
    }

    pub fn parts(&mut self) -> &mut [Part] {
        &mut self.parts[..self.used]
    }

    /// Adds a part of up to `vars` vectors, which may still hold what it held before.
    pub fn add(&mut self, vars: usize) -> &mut Part {
        if self.used == self.parts.len() {
            self.parts.push(Part {
                batch: Batch::new(vars),
                ..Part::default()
            });
        }
        self.used += 1;
        let part = &mut self.parts[self.used - 1];
        if part.batch.vars() == 0 {
            part.batch = Batch::new(vars);
        }
        part
    }

    /// Moves rows into the block; `batch` and `selection` get buffers that a former part used, to be filled again.
    pub fn take(
        &mut self,
        batch: &mut Batch,
        selection: &mut Selection,
        hold: &Arc<Hold>,
        place: u64,
    ) {
        self.rows += batch.rows;
        let part = self.add(batch.vars());
        std::mem::swap(&mut part.batch, batch);
        std::mem::swap(&mut part.selection, selection);
        part.hold = Some(hold.clone());
        part.place = place;
    }

    /// Drops the rows and releases their pages.
    pub fn clear(&mut self) {
        for part in &mut self.parts[..self.used] {
            part.hold = None;
        }
        (self.used, self.rows) = (0, 0);
    }
}

/// The pool of free blocks.
pub(crate) struct Blocks {
    free: Mutex<Vec<Block>>,
    pub made: AtomicU64,
    pub reused: AtomicU64,
    reuse: bool,
    /// Blocks that are allocated at once.
    count: usize,
    /// The room of each: vectors of rows; 0 where it grows with them.
    parts: usize,
}

impl Blocks {
    /// A pool for up to `flights` blocks in flight, of up to `rows` rows. With `reuse`, returned blocks are handed out again.
    pub fn new(execution: &Execution, flights: usize, rows: usize) -> Blocks {
        let grows = execution.allocation == Allocation::Each;
        let blocks = Blocks {
            free: Mutex::default(),
            made: AtomicU64::new(0),
            reused: AtomicU64::new(0),
            reuse: execution.reuse,
            count: execution.allocation.count(flights),
            parts: if grows { 0 } else { rows.div_ceil(VECTOR_ROWS) },
        };
        if execution.allocation == Allocation::Whole {
            blocks.allocate(&mut blocks.free.lock());
        }
        blocks
    }

    fn allocate(&self, free: &mut Vec<Block>) {
        free.extend((0..self.count).map(|_| Block::with_room(self.parts)));
        self.made.fetch_add(self.count as u64, Ordering::Relaxed);
    }

    /// A block without rows.
    pub fn get(&self) -> Block {
        let mut free = self.free.lock();
        if free.is_empty() {
            self.allocate(&mut free);
        }
        let block = free.pop().unwrap_or_default();
        if block.is_used {
            self.reused.fetch_add(1, Ordering::Relaxed);
        }
        block
    }

    /// Returns a block to the pool.
    pub fn put(&self, mut block: Block) {
        block.clear();
        if self.reuse {
            block.is_used = true;
            self.free.lock().push(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_allocated_as_many_at_once_as_is_asked_for() {
        let made = |allocation, reuse| {
            let execution = Execution {
                allocation,
                reuse,
                ..Execution::default()
            };
            let blocks = Blocks::new(&execution, 8, 2 * VECTOR_ROWS);
            let count = || blocks.made.load(Ordering::Relaxed);
            let before = count();
            let first = [blocks.get(), blocks.get(), blocks.get()];
            let three = count();
            let room = first[0].parts.len();
            first.into_iter().for_each(|block| blocks.put(block));
            blocks.get();
            (before, three, room, blocks.reused.load(Ordering::Relaxed))
        };
        use Allocation::{Each, Fraction, Set, Whole};
        assert_eq!(made(Each, true), (0, 3, 0, 1));
        assert_eq!(made(Set(2), true), (0, 4, 2, 1));
        assert_eq!(made(Fraction(2), true), (0, 4, 2, 1));
        assert_eq!(made(Whole, true), (8, 8, 2, 1));
        assert_eq!(made(Each, false), (0, 3, 0, 0));
    }
}
