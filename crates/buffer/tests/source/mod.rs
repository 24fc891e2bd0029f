//! A source for tests: patterned pages, and switches to make loads wait or fail.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use buffer::{Config, LoadError, PageId, Pool, Source};
use futures::future::BoxFuture;

pub const PAGE: usize = 4096;

#[derive(Debug)]
pub struct Broken(pub PageId);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "checksum of page {} is wrong", self.0)
    }
}

impl std::error::Error for Broken {}

/// Pages whose words follow from their number and version; bucket is the page number mod 256.
#[derive(Debug, Default)]
pub struct Patterns {
    pub loads: AtomicU64,
    pub versions: Mutex<HashMap<PageId, u64>>,
    pub broken: Mutex<HashSet<PageId>>,
    /// While set, loads of these pages wait before they end.
    pub held: Mutex<HashSet<PageId>>,
    pub hold_all: AtomicBool,
    /// Loads that have begun and wait.
    pub waiting: AtomicU32,
    /// How often a load yields before it fills the frame.
    pub yields: AtomicU32,
}

/// A page's length differs from page to page.
pub fn length(page: PageId) -> usize {
    PAGE - (page as usize % 16) * 8
}

/// What stands in a version of a page, 8 bytes at a time: number `index` of them.
pub fn word(page: PageId, version: u64, index: usize) -> u64 {
    let mut z = u64::from(page) << 32 | (index as u64) ^ version << 16;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 27)
}

/// Writes a version of a page into `frame`; gives its length in bytes.
pub fn fill(page: PageId, version: u64, frame: &mut [u8]) -> usize {
    let len = length(page);
    for (index, chunk) in frame[..len].chunks_exact_mut(8).enumerate() {
        chunk.copy_from_slice(&word(page, version, index).to_le_bytes());
    }
    // Old bytes of another page past the length must not be visible.
    len
}

/// Panics unless the bytes are exactly this page's.
pub fn check(page: PageId, version: u64, bytes: &[u8]) {
    assert_eq!(bytes.len(), length(page), "length of page {page}");
    for (index, chunk) in bytes.chunks_exact(8).enumerate() {
        let expected = word(page, version, index).to_le_bytes();
        assert_eq!(chunk, expected, "page {page}, word {index}");
    }
}

pub async fn give_way() {
    let mut first = true;
    std::future::poll_fn(|context| {
        if !std::mem::take(&mut first) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Patterns {
    fn is_held(&self, page: PageId) -> bool {
        self.hold_all.load(Ordering::SeqCst) || self.held.lock().unwrap().contains(&page)
    }

    /// Makes loads of a page wait, until it is released.
    pub fn hold(&self, page: PageId) {
        self.held.lock().unwrap().insert(page);
    }

    /// Lets loads of a page end again.
    pub fn release(&self, page: PageId) {
        self.held.lock().unwrap().remove(&page);
    }

    /// The version of a page that loads give; 0 unless it was changed.
    pub fn version(&self, page: PageId) -> u64 {
        *self.versions.lock().unwrap().get(&page).unwrap_or(&0)
    }
}

/// Counts a load until it goes on, or is dropped.
struct UnderWay<'a>(&'a AtomicU32);

impl<'a> UnderWay<'a> {
    fn new(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        UnderWay(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Source for Patterns {
    fn bucket(&self, page: PageId) -> u8 {
        page as u8
    }

    fn load<'a>(
        &'a self,
        page: PageId,
        frame: &'a mut [u8],
    ) -> BoxFuture<'a, Result<usize, LoadError>> {
        Box::pin(async move {
            self.loads.fetch_add(1, Ordering::SeqCst);
            let version = self.version(page);
            // Scribble first: nobody may see a page that is half there.
            frame.fill(0xee);
            let under_way = UnderWay::new(&self.waiting);
            for _ in 0..self.yields.load(Ordering::Relaxed) {
                give_way().await;
            }
            while self.is_held(page) {
                give_way().await;
            }
            drop(under_way);
            if self.broken.lock().unwrap().contains(&page) {
                return Err(Arc::new(Broken(page)) as LoadError);
            }
            Ok(fill(page, version, frame))
        })
    }
}

/// A pool of `frames` frames on each of `nodes` logical nodes.
pub fn pool(nodes: usize, frames: usize, partitions: usize) -> (Arc<Pool>, Arc<Patterns>) {
    let source = Arc::new(Patterns::default());
    let config = Config {
        bytes: (nodes * frames * PAGE) as u64,
        page_size: PAGE,
        partitions_per_node: partitions,
        nodes: vec![None; nodes],
        placement: buffer::Placement::default(),
        replacement: buffer::Policy::default(),
        prefetch: buffer::Prefetching::default(),
    };
    let pool = Pool::new(&config, source.clone(), memory::Budget::new(u64::MAX)).unwrap();
    (pool, source)
}

/// Waits for a future on this thread.
pub fn now<F: Future>(future: F) -> F::Output {
    futures::executor::block_on(future)
}
