//! The allocator: pages full of random bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::executor::block_on;
use workers::{JoinHandle, MAX_THREADS, Queues};

use crate::error::{Error, Result};
use crate::file::PageFile;
use crate::options::within;

/// Bytes that are written before they are committed.
const COMMIT: usize = 64 << 20;
/// Pages that a thread makes at once.
const PIECE: usize = 16;
/// Pieces that each thread has waiting, so that it works while others' are written.
const WAITING: usize = 2;

/// What [`alloc`] fills.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fill {
    /// Pages that are to be allocated afterwards, protected ones not counted; `None`: all that the
    /// store has room for. More that are allocated already stay so.
    pub pages: Option<u64>,
    /// Which random bytes. With the same seed a page has the same bytes each time, whatever the
    /// threads.
    pub seed: u64,
}

/// What [`alloc`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// Pages that were allocated.
    pub allocated: u64,
    /// Pages that were written, these and those that had been allocated before.
    pub written: u64,
}

/// Allocates pages, and fills all that are allocated with random bytes, durably. `threads` make the
/// bytes, the caller writes them and commits every 64 MiB: what a power loss leaves is the pages
/// up to some commit. `stop` is asked before each.
///
/// # Errors
/// [`Error::Setting`] if `threads` is out of range; [`Error::Store`] if the store cannot be written
/// to; [`Error::Interrupted`] if `stop` says so: what was committed stays.
pub fn alloc(
    file: &PageFile,
    threads: usize,
    fill: &Fill,
    stop: &dyn Fn() -> bool,
) -> Result<Filled> {
    within("threads", threads, 1, MAX_THREADS)?;
    let queues = Queues::start(&file.layout(threads))?;
    let held = file.store().statistics();
    let room = held.size - held.protected;
    let had = held.allocated - held.protected;
    let wanted = fill.pages.unwrap_or(room).max(had);
    let per_commit = (COMMIT / file.store().page_size()) as u64;
    let before = file.store().view().list();
    let mut old = (0..before.len()).map(|index| before.page(index));
    let mut written = 0;
    while written < wanted {
        if stop() {
            return Err(Error::Interrupted);
        }
        let mut batch = file.store().begin()?;
        let mut pages = Vec::new();
        for _ in 0..per_commit.min(wanted - written) {
            pages.push(match old.next() {
                Some(page) => page,
                None => batch.alloc()?,
            });
        }
        written += pages.len() as u64;
        let mut made = Made::of(&queues, &pages, file.store().page_size(), fill.seed);
        while let Some((piece, bytes)) = made.next()? {
            for (page, bytes) in piece.iter().zip(bytes) {
                batch.write(*page, &bytes)?;
            }
        }
        batch.commit()?;
    }
    Ok(Filled {
        allocated: wanted - had,
        written,
    })
}

/// The pages of a list in their order, made by the threads some pieces ahead.
struct Made<'a> {
    queues: &'a Queues,
    pieces: std::iter::Enumerate<std::slice::Chunks<'a, u32>>,
    page_size: usize,
    seed: u64,
    waiting: VecDeque<(Arc<[u32]>, JoinHandle<Bytes>)>,
}

/// The bytes of some pages, one after the other.
type Bytes = Vec<Vec<u8>>;

/// Some pages, and their bytes.
type Piece = (Arc<[u32]>, Bytes);

impl<'a> Made<'a> {
    fn of(queues: &'a Queues, pages: &'a [u32], page_size: usize, seed: u64) -> Made<'a> {
        Made {
            queues,
            pieces: pages.chunks(PIECE).enumerate(),
            page_size,
            seed,
            waiting: VecDeque::new(),
        }
    }

    fn next(&mut self) -> Result<Option<Piece>> {
        while self.waiting.len() < WAITING * self.queues.len() {
            let Some((number, piece)) = self.pieces.next() else {
                break;
            };
            let piece: Arc<[u32]> = piece.into();
            let (own, page_size, seed) = (piece.clone(), self.page_size, self.seed);
            let task = async move {
                own.iter()
                    .map(|&page| random(page, page_size, seed))
                    .collect()
            };
            let thread = number % self.queues.len();
            self.waiting
                .push_back((piece, self.queues.spawn_on(thread, task)?));
        }
        let Some((piece, handle)) = self.waiting.pop_front() else {
            return Ok(None);
        };
        Ok(Some((piece, block_on(handle)?)))
    }
}

/// The bytes of a page: those of a generator of its own.
fn random(page: u32, page_size: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; page_size];
    // The number times an odd one: neighbours begin far apart, and no two pages alike.
    let own = u64::from(page).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    fastrand::Rng::with_seed(seed ^ own).fill(&mut bytes);
    bytes
}
