//! Execution blocks: rows on their way from operator to operator, and where they wait to be used again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use table::Cursor;
use tokio::sync::OwnedSemaphorePermit;

use crate::batch::Batch;
use crate::batches::Arrived;
use crate::error::{Error, Result};
use crate::run::{Job, Opened};
use crate::source::{Feed, Origin, Stored};

/// What the vectors that nobody has read yet are read from. It holds the pages of its rows.
pub(crate) enum Hold {
    /// An opened piece of a scan.
    Scan(Chunk),
    /// Rows that were read.
    Arrived(Arrived),
    /// Rows out of the file of what does not fit in memory.
    Stored(Stored),
    /// What the job's source holds anyway.
    Whole(Arc<Job>),
}

/// An opened piece of a scan, and what it borrows from.
pub(crate) struct Chunk {
    /// Invariant: borrows from nothing but `job`, and is dropped before it.
    cursor: Cursor<'static>,
    job: Arc<Job>,
    /// One of the pieces that may be open at once.
    _permit: OwnedSemaphorePermit,
}

impl Chunk {
    /// Opens piece `piece` of `job`'s scan; `None` if its filters leave no row.
    pub async fn open(
        job: &Arc<Job>,
        piece: table::Morsel,
        filters: &[table::Filter],
        permit: OwnedSemaphorePermit,
    ) -> Result<Option<Chunk>> {
        let Opened::Scan { scan, vars, .. } = &job.source else {
            return Err(Error::internal("a piece of what is no table"));
        };
        let pool = scan.table().snapshot().pool();
        let filters = job.shape.filters(filters, scan, vars);
        let opened = scan.open(pool, piece, &filters, &job.traffic, crate::run::node);
        let opened = opened.await?;
        Ok(opened.map(|cursor| Chunk {
            // SAFETY: the cursor borrows from the scan, its table's pool and the traffic counters, which `job`
            // owns on the heap, never changes and never moves; `job` is kept as long, and dropped after it.
            // Paid for by reading each vector only for the rows that are left when an operator needs it.
            cursor: unsafe { std::mem::transmute::<Cursor<'_>, Cursor<'static>>(cursor) },
            job: job.clone(),
            _permit: permit,
        }))
    }

    /// The next rows; false at the end.
    pub fn advance(&mut self, origin: &mut Origin) -> bool {
        origin.advance(&mut self.cursor)
    }
}

impl Hold {
    pub fn feed(&self) -> Feed<'_, '_> {
        let job = match self {
            Hold::Arrived(arrived) => return Feed::Arrived(arrived),
            Hold::Stored(stored) => return Feed::Stored(stored),
            Hold::Scan(chunk) => &chunk.job,
            Hold::Whole(job) => job,
        };
        match (self, &job.source) {
            (Hold::Scan(chunk), Opened::Scan { vars, .. }) => Feed::Scan(&chunk.cursor, vars),
            (_, Opened::Stored { stored, .. }) => Feed::Stored(stored),
            (_, Opened::Marked { lookup, row, .. }) => Feed::Lookup(lookup, *row),
            _ => unreachable!("what is read by pieces is held by them"),
        }
    }
}

/// A vector of rows of a block.
#[derive(Default)]
pub(crate) struct Part {
    pub batch: Batch,
    pub origin: Origin,
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
    pub fn take(&mut self, batch: &mut Batch, origin: &mut Origin, hold: &Arc<Hold>, place: u64) {
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
