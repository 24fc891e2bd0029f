//! A crash-safe store of pages and a catalog in one file.
//!
//! * A [`Store`] is a data file and its log. One process may write, or any number may read.
//! * A [`Transaction`] writes pages and changes the catalog, an ordered map from keys to values
//!   in numbered spaces. When its [`commit`](Transaction::commit) returns it survives what its
//!   [`Durability`] says: a loss of power, unless less is asked for. Several that commit at the same
//!   time share one sync.
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

mod catalog;
mod error;
mod format;
mod log;
mod maintenance;
mod options;
mod raw;
mod recovery;
mod space;
mod state;
mod store;
mod transaction;

pub use buffer::{PageId, Placement};
pub use catalog::spaces::Entries;
pub use error::{Error, Region, Result};
pub use format::kind::{Codec, Kind};
pub use format::structures::{FORMAT_VERSION, is_part, is_store};
pub use io::{Direct, Holder};
pub use log::report::{Dropped, Recovery};
pub use maintenance::check::Problem;
pub use maintenance::place::Place;
pub use maintenance::repair::{Repair, repair};
pub use maintenance::statistics::{Share, Statistics, WrittenBack};
pub use maintenance::vacuum::Vacuum;
pub use options::{
    Access, CHECKPOINT_BYTES, DIRTY_BYTES, Damage, Durability, MAP_BYTES, Options, PoolOptions,
    SMALL_COMMIT,
};
pub use raw::{PageBatch, PageList, PagePin, PageReader, PageStatistics, PageStore, PageView};
pub use store::handle::Store;
pub use transaction::snapshot::Snapshot;
pub use transaction::write::Transaction;
