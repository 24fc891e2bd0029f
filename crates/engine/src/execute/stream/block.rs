//! Execution blocks: rows in flight between operators, and the pool of free blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::execute::pieces::Hold;
use crate::operators::source::Selection;
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
}

impl Block {
    /// Whether it was just allocated.
    pub fn is_new(&self) -> bool {
        self.parts.is_empty()
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
        &mut self.parts[self.used - 1]
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
#[derive(Default)]
pub(crate) struct Blocks {
    free: Mutex<Vec<Block>>,
    pub made: AtomicU64,
    pub reused: AtomicU64,
    reuse: bool,
}

impl Blocks {
    /// An empty pool. With `reuse`, returned blocks are handed out again.
    pub fn new(reuse: bool) -> Blocks {
        Blocks {
            reuse,
            ..Blocks::default()
        }
    }

    /// Whether blocks are reused.
    pub fn reuse(&self) -> bool {
        self.reuse
    }

    /// A block without rows.
    pub fn get(&self) -> Block {
        let free = if self.reuse {
            self.free.lock().pop()
        } else {
            None
        };
        match &free {
            Some(_) => self.reused.fetch_add(1, Ordering::Relaxed),
            None => self.made.fetch_add(1, Ordering::Relaxed),
        };
        free.unwrap_or_default()
    }

    /// Returns a block to the pool.
    pub fn put(&self, mut block: Block) {
        block.clear();
        if self.reuse {
            self.free.lock().push(block);
        }
    }
}
