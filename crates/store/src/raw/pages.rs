//! The page store itself: create, open, reserve, write, close.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::executor::block_on;
use io::Device;
use parking_lot::RwLock;

use super::batch::PageBatch;
use super::bitmap::Bitmap;
use super::place::Places;
use super::view::{PageStatistics, PageView, kept_in};
use super::{DIRECTORY, PLACES, RECORD, holds_pages};
use crate::changes::Changes;
use crate::check::Problem;
use crate::error::{Error, Region, Result};
use crate::kind::Kind;
use crate::options::Options;
use crate::report::Recovery;
use crate::snapshot::Snapshot;
use crate::store::Store;

/// A store of bare pages of one size, from 4 KiB to 1 MiB (row B1): one data file and its log.
///
/// Pages are numbered from 0. A page is *allocated* before it is used and *released* after;
/// an allocated page that was never written reads as zeros. Every page whose number is a multiple
/// of 8 x page size is protected: it holds the allocation bits (row B5). The home node of page *n*
/// is *n* modulo 256 modulo the nodes (row B4).
///
/// All changes are made in a [`PageBatch`], atomically and durably; readers look at a
/// [`PageView`], which no later batch changes.
///
/// ```
/// use store::{Options, PageStore};
///
/// let directory = tempfile::tempdir()?;
/// let options = Options { page_size: 4096, ..Options::default() };
/// let store = PageStore::create(directory.path().join("reef.pages"), &options)?;
///
/// let mut batch = store.begin()?;
/// let page = batch.alloc()?;
/// batch.write(page, &[7; 4096])?;
/// batch.commit()?;
///
/// let mut bytes = vec![0; 4096];
/// store.view().read(page, &mut bytes)?;
/// assert_eq!(bytes, [7; 4096]);
/// store.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PageStore {
    store: Arc<Store>,
    published: RwLock<Published>,
    zeros: Arc<[u8]>,
    /// Where the next batch begins to search for free pages.
    next: AtomicU64,
}

/// A version, and its allocation bits.
#[derive(Debug, Clone)]
pub(super) struct Published {
    pub(super) snapshot: Snapshot,
    pub(super) bitmap: Bitmap,
}

impl PageStore {
    /// Creates a store without pages: the data file `path` and the log `path.log`, neither of
    /// which may exist.
    ///
    /// # Errors
    /// As [`Store::create`].
    pub fn create(path: impl AsRef<Path>, options: &Options) -> Result<PageStore> {
        PageStore::over(Store::create_holding(
            path.as_ref(),
            options,
            Some(&no_pages()),
        )?)
    }

    /// Creates a store on two empty devices.
    ///
    /// # Errors
    /// As [`create`](PageStore::create).
    pub fn create_on(
        data: Arc<dyn Device>,
        log: Arc<dyn Device>,
        options: &Options,
    ) -> Result<PageStore> {
        let first = no_pages();
        PageStore::over(Store::create_holding_on(data, log, options, Some(&first))?)
    }

    /// Opens the store at `path` and brings it to its last commit.
    ///
    /// # Errors
    /// As [`Store::open`], and [`Error::NotPages`] if it is a store of something else, or one of
    /// nothing yet that was not created for pages.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<PageStore> {
        PageStore::over(Store::open(path, options)?)
    }

    /// Opens the store on two devices.
    ///
    /// # Errors
    /// As [`open`](PageStore::open).
    pub fn open_on(
        data: Arc<dyn Device>,
        log: Arc<dyn Device>,
        options: &Options,
    ) -> Result<PageStore> {
        PageStore::over(Store::open_on(data, log, options)?)
    }

    fn over(store: Arc<Store>) -> Result<PageStore> {
        let snapshot = store.snapshot();
        if !holds_pages(&snapshot) {
            return Err(Error::NotPages {
                path: store.path().to_path_buf(),
            });
        }
        Ok(PageStore {
            zeros: vec![0; store.page_size()].into(),
            published: RwLock::new(Published::load(snapshot)?),
            next: AtomicU64::new(0),
            store,
        })
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.store.page_size()
    }

    /// The data file.
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// What opening the store found in its log.
    pub fn recovery(&self) -> &Recovery {
        self.store.recovery()
    }

    /// The pool through which pages are read.
    pub fn pool(&self) -> &Arc<buffer::Pool> {
        self.store.pool()
    }

    /// The pages as the last commit left them. Never waits for a batch.
    pub fn view(&self) -> PageView {
        PageView::new(self.published.read().clone(), self.zeros.clone())
    }

    /// Starts a batch of changes, after the one that is under way has ended.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Latched`].
    pub fn begin(&self) -> Result<PageBatch<'_>> {
        let transaction = self.store.begin()?;
        // A batch publishes before the next one begins, so this is what it starts from.
        let published = self.published.read().clone();
        debug_assert_eq!(published.snapshot.version(), transaction.base().version());
        let next = self.next.load(Ordering::Relaxed);
        Ok(PageBatch::new(self, transaction, published, next))
    }

    /// Makes room for `pages` more pages to be allocated, durably, and sets room for their bytes
    /// aside on the disk for as long as the store is open: a disk that is too full says so now and
    /// not when the pages are written. What is written next uses that room up, whichever pages it
    /// is; some network file systems cannot set any aside.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::OutOfPageIds`], and those of [`PageBatch::commit`].
    pub fn reserve(&self, pages: u64) -> Result<()> {
        let mut batch = self.begin()?;
        batch.reserve(pages)?;
        self.store
            .reserve(pages.saturating_mul(self.page_size() as u64))?;
        batch.commit().map(drop)
    }

    /// Writes one page, durably: a batch of one write.
    ///
    /// # Errors
    /// Those of [`PageBatch::write`] and [`PageBatch::commit`].
    pub fn write(&self, page: u32, bytes: &[u8]) -> Result<()> {
        let mut batch = self.begin()?;
        batch.write(page, bytes)?;
        batch.commit().map(drop)
    }

    /// What `commit` of a batch calls when its changes are durable, in the order of the commits.
    pub(super) fn publish(&self, new: Published, next: u64) {
        self.next.store(next, Ordering::Relaxed);
        let old = std::mem::replace(&mut *self.published.write(), new);
        // Views are made under the lock, so nothing else is done there.
        drop(old);
    }

    /// Folds the log into the data file.
    ///
    /// # Errors
    /// As [`Store::checkpoint`].
    pub fn checkpoint(&self) -> Result<()> {
        self.store.checkpoint()
    }

    /// Folds the log into the data file and closes it. Dropping a store without this is no loss.
    ///
    /// # Errors
    /// As [`Store::close`].
    pub fn close(self) -> Result<()> {
        let PageStore {
            store, published, ..
        } = self;
        // A snapshot that is held keeps the pages freed after it.
        drop(published);
        store.close()
    }

    /// Figures about pages and file.
    pub fn statistics(&self) -> PageStatistics {
        let view = self.view();
        PageStatistics {
            size: view.size(),
            allocated: view.allocated(),
            protected: view.protected(),
            store: self.store.statistics(),
        }
    }

    /// Reads and verifies everything in the file, and that the allocation bits agree with what
    /// is kept. `progress` is told pages done and pages in all.
    ///
    /// # Errors
    /// Those of [`Store::check`]; what is wrong with the file is in the list.
    pub fn check(&self, progress: &dyn Fn(u64, u64)) -> Result<Vec<Problem>> {
        let problems = self.store.check(progress)?;
        let view = self.view();
        let numbers: std::collections::HashMap<_, _> =
            view.places().map(|(page, place)| (place, page)).collect();
        // Below, pages have other numbers: say the ones that the caller knows.
        let mut problems: Vec<_> = problems
            .into_iter()
            .map(|problem| match &problem {
                Problem::Damaged(
                    error @ Error::Damaged {
                        region: Region::Page(place),
                        ..
                    },
                ) if numbers.contains_key(place) => Problem::Page {
                    page: numbers[place],
                    detail: error.to_string(),
                },
                _ => problem,
            })
            .collect();
        problems.extend(view.contradictions());
        Ok(problems)
    }
}

impl Published {
    /// Reads the allocation bits of `snapshot`.
    pub(super) fn load(snapshot: Snapshot) -> Result<Published> {
        let store = snapshot.store();
        let damaged = |region, detail: &str| Error::damaged(store.path(), region, 0, detail);
        let space = Region::Space(DIRECTORY);
        let size = snapshot
            .get(DIRECTORY, RECORD)
            .and_then(|record| Some(u64::from_le_bytes((&*record).try_into().ok()?)))
            .filter(|&size| size <= 1 << 32)
            .ok_or_else(|| damaged(space, "the number of pages makes no sense"))?;
        let page_size = store.page_size();
        let mut groups = Vec::new();
        for protected in (0..size).step_by(8 * page_size) {
            let protected = protected as u32;
            let place = kept_in(&snapshot, protected)
                .ok_or_else(|| damaged(Region::Space(PLACES), "an allocation table is missing"))?;
            let pin = block_on(store.pool().pin(place))
                .map_err(|cause| Error::unreadable(protected, cause))?;
            groups.push(pin.to_vec());
        }
        let bitmap =
            Bitmap::read(page_size, size, &groups).map_err(|(page, what)| Error::Allocation {
                path: store.path().to_path_buf(),
                page,
                detail: what,
            })?;
        Ok(Published { snapshot, bitmap })
    }
}

/// The first commit of every page store: there are no pages. From it on a store is one of pages.
fn no_pages() -> Changes {
    let mut changes = Changes {
        next_space: PLACES,
        ..Changes::default()
    };
    let size = 0u64.to_le_bytes();
    let key = (DIRECTORY, RECORD.into());
    changes.keys.insert(key, Some(size.as_slice().into()));
    changes
}

/// The kind that pages are written as.
pub(super) const KIND: Kind = Kind::Blob;

/// The placement bucket of a page (row B4).
pub(super) fn bucket(page: u32) -> u8 {
    page as u8
}

/// The places of the chunk that `page` is in.
pub(super) fn places(entry: Option<Arc<[u8]>>) -> Places {
    Places::of(entry.as_deref())
}
