//! The buffer pool: pages of a store in frames on the memory of their home nodes.
//!
//! The pool knows pages by number and asks a [`Source`] for their bytes. [`Pool::pin`] returns a
//! guard through which the page can be read for as long as the guard lives; a page that nobody has
//! pinned may make room for another.
//!
//! ```
//! use std::sync::Arc;
//! use buffer::{Config, LoadError, PageId, Pool, Source};
//! use futures::future::BoxFuture;
//!
//! /// A source whose pages hold their own number.
//! struct Numbers;
//!
//! impl Source for Numbers {
//!     fn bucket(&self, page: PageId) -> u8 {
//!         page as u8
//!     }
//!     fn load<'a>(
//!         &'a self,
//!         page: PageId,
//!         frame: &'a mut [u8],
//!     ) -> BoxFuture<'a, Result<usize, LoadError>> {
//!         Box::pin(async move {
//!             frame[..4].copy_from_slice(&page.to_le_bytes());
//!             Ok(4)
//!         })
//!     }
//! }
//!
//! let config = Config {
//!     bytes: 1 << 20,
//!     page_size: 4096,
//!     partitions_per_node: 2,
//!     nodes: vec![None, None], // two logical nodes
//!     placement: buffer::Placement::default(),
//!     replacement: buffer::Policy::default(),
//!     prefetch: buffer::Prefetching::default(),
//! };
//! let pool = Pool::new(&config, Arc::new(Numbers), memory::Budget::new(1 << 30))?;
//!
//! let page = futures::executor::block_on(pool.pin(7))?;
//! assert_eq!(*page, 7u32.to_le_bytes());
//! assert_eq!(page.node(), 1);
//! assert!(pool.try_pin(7).is_some(), "resident now");
//! assert!(pool.try_pin(8).is_none());
//! # drop(page);
//! # Ok::<(), buffer::Error>(())
//! ```
//!
//! # How it works
//!
//! * A flat array holds one atomic word for each page: its state, frame, pins and usage count
//!   (`word`). Pinning a resident page is one compare-and-swap on that word, with no lock and
//!   no counter that others write.
//! * Each frame has a version (`version`), odd while its owner may write. [`Pool::optimistic`] reads
//!   without a pin and without a write to memory that others read: it copies, and looks afterwards
//!   whether the page was still in the frame and the version the same. [`Pool::exclusive`] waits for
//!   all pins to go and lends the bytes of a page to be changed.
//! * Each node has an arena of frames. Its frames are dealt to partitions, each with a lock, a free
//!   list and a clock hand (`partition`); only misses come there. A partition short of frames
//!   takes one of another partition of its node. Where every frame of a node is in use, its pages
//!   borrow frames of other nodes: reading them there is slower than at home, and faster than
//!   waiting.
//! * Which page makes room for another is the choice of a [`Policy`], which looks at a bounded number
//!   of frames at a time (`replacement`). S3-FIFO lets new pages through a small queue, so that
//!   a scan leaves those that are wanted again; the clock takes a use off each page it passes, as PostgreSQL does (row B3).
//! * A miss suspends the task. The first to come loads, the others wait for it (`load`).
//! * [`Pool::prefetch`] loads pages before they are asked for, into frames that are free or whose
//!   page is cold. Which pages, the caller says, or a prefetcher guesses that watches what one
//!   [`Reader`] reads (`prefetch`). Accuracy and coverage are counted without a look at a pin: a page
//!   loaded ahead has no use until it is pinned.
//! * When all frames are in use, tasks wait until one is unpinned (`starve`), for a bounded time.
//!
//! The pool never writes pages to their source, so it has no dirty ones: what was changed under an
//! exclusive guard is there for as long as the page is in its frame. Dirty pages are the store's.

mod ahead;
mod atomic;
mod background;
mod check;
mod config;
mod error;
mod exclusive;
mod frames;
mod hits;
mod load;
mod optimistic;
mod page;
mod partition;
mod pin;
mod pool;
pub mod prefetch;
mod read_ahead;
mod reader;
pub mod replacement;
mod source;
mod starve;
mod statistics;
mod timer;
mod together;
mod translation;
mod version;
mod word;

pub use check::Damage;
pub use config::{Config, LoadError, PageId, Placement};
pub use error::{Error, Result};
pub use exclusive::Exclusive;
pub use frames::FRAMES_PER_NODE;
pub use optimistic::Optimistic;
pub use pin::{OwnedPin, Pin};
pub use pool::Pool;
pub use prefetch::Prefetching;
pub use read_ahead::ReadAhead;
pub use reader::Reader;
pub use replacement::Policy;
pub use source::{Source, Space};
pub use statistics::{NodeStatistics, Statistics};
pub use word::Swept;
