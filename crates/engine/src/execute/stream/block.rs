//! Execution blocks: rows on their way from operator to operator, and where they wait to be used again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::execute::pieces::Hold;
use crate::operators::source::Selection;
use crate::vector::batch::Batch;

/// A vector of rows of a block.
#[derive(Default)]
pub(crate) struct Part {
    pub batch: Batch,
    pub origin: Selection,
    pub hold: Option<Arc<Hold>>,
    /// Where the source has these rows: what comes first there has the lower number.
    pub place: u64,
}

/// An execution block. Whoever consumes it last gives it back to [`Blocks`].
#[derive(Default)]
pub(crate) struct Block {
    /// Unlike that of any other block from the same source.
    pub id: u64,
    pub rows: usize,
    parts: Vec<Part>,
    /// How many of them hold rows; the others are there to be used again.
    used: usize,
}

impl Block {
    /// Whether it has never held anything.
    pub fn is_new(&self) -> bool {
        self.parts.is_empty()
    }

    pub fn parts(&mut self) -> &mut [Part] {
        &mut self.parts[..self.used]
    }

    /// One more part, of up to `vars` vectors, with whatever it held before.
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

    /// Takes rows over; in their place stays what the part held before.
    pub fn take(
        &mut self,
        batch: &mut Batch,
        origin: &mut Selection,
        hold: &Arc<Hold>,
        place: u64,
    ) {
        self.rows += batch.rows;
        let part = self.add(batch.vars());
        std::mem::swap(&mut part.batch, batch);
        std::mem::swap(&mut part.origin, origin);
        part.hold = Some(hold.clone());
        part.place = place;
    }

    /// Forgets the rows, and lets go of their pages.
    pub fn clear(&mut self) {
        for part in &mut self.parts[..self.used] {
            part.hold = None;
        }
        (self.used, self.rows) = (0, 0);
    }
}

/// Blocks that nobody uses now.
#[derive(Default)]
pub(crate) struct Blocks {
    free: Mutex<Vec<Block>>,
    pub made: AtomicU64,
    pub reused: AtomicU64,
    reuse: bool,
}

impl Blocks {
    /// None yet. With `reuse`, blocks that were given back are given out again.
    pub fn new(reuse: bool) -> Blocks {
        Blocks {
            reuse,
            ..Blocks::default()
        }
    }

    /// Whether they are used again.
    pub fn reuse(&self) -> bool {
        self.reuse
    }

    /// A block without rows.
    pub fn get(&self) -> Block {
        let free = match self.reuse {
            true => self.free.lock().pop(),
            false => None,
        };
        match &free {
            Some(_) => self.reused.fetch_add(1, Ordering::Relaxed),
            None => self.made.fetch_add(1, Ordering::Relaxed),
        };
        free.unwrap_or_default()
    }

    /// Takes back a block whose last consumer is done with it.
    pub fn put(&self, mut block: Block) {
        block.clear();
        if self.reuse {
            self.free.lock().push(block);
        }
    }
}
