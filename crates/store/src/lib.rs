//! A crash-safe store of pages and a catalog in one file.
//!
//! * A [`Store`] is a data file and its log. One process may write, or any number may read.
//! * A [`Transaction`] writes pages and changes the catalog, an ordered map from keys to values
//!   in numbered spaces. Its [`commit`](Transaction::commit) is durable when it returns.
//! * A [`Snapshot`] is the store as one commit left it; readers never wait.
//! * Pages are read through the [`buffer::Pool`] of the store, which checks their checksums.
//! * A [`PageStore`] is made of the same parts: bare pages that are allocated, written over and
//!   released.
//!
//! ```
//! # futures::executor::block_on(async {
//! use store::{Kind, Options, Store};
//!
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("islands.atoll");
//! let store = Store::create(&path, &Options::default())?;
//!
//! let mut transaction = store.begin()?;
//! let page = transaction.write_page(b"coral", 0, Kind::Blob)?;
//! transaction.put(0, b"reef", &page.to_le_bytes());
//! transaction.commit()?;
//! store.close()?;
//!
//! let store = Store::open(&path, &Options::read_only())?;
//! let snapshot = store.snapshot();
//! assert_eq!(snapshot.get(0, b"reef").as_deref(), Some(&page.to_le_bytes()[..]));
//! assert_eq!(&*snapshot.pool().pin(page).await?, b"coral");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod bytes;
mod catalog;
mod changes;
mod check;
mod checkpoint;
mod codec;
mod creation;
mod disk;
mod error;
mod extents;
mod format;
mod hold;
mod kind;
mod log;
mod map;
mod options;
mod pending;
mod place;
mod raw;
mod reclaim;
mod recovery;
mod repair;
mod report;
mod snapshot;
mod source;
mod statistics;
mod store;
mod transaction;
mod tree;

pub use buffer::PageId;
pub use catalog::Entries;
pub use check::Problem;
pub use error::{Error, Region, Result};
pub use format::{FORMAT_VERSION, is_part, is_store};
pub use io::Holder;
pub use kind::{Codec, Kind};
pub use options::{Access, Damage, Options, PoolOptions};
pub use place::Place;
pub use raw::{PageBatch, PagePin, PageStatistics, PageStore, PageView};
pub use repair::{Repair, repair};
pub use report::{Dropped, Recovery};
pub use snapshot::Snapshot;
pub use statistics::{Share, Statistics};
pub use store::{CHECKPOINT_BYTES, Store};
pub use transaction::Transaction;
