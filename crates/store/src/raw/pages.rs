//! The page store itself: create, open, look at, close.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use io::Device;
use parking_lot::RwLock;

use super::keys::{DIRECTORY, PLACES, RECORD, holds_pages};
use super::published::Published;
use super::view::{PageStatistics, PageView};
use crate::catalog::changes::Changes;
use crate::error::{Error, Region, Result};
use crate::format::structures::BLOCK;
use crate::log::report::Recovery;
use crate::maintenance::check::Problem;
use crate::maintenance::vacuum::Vacuum;
use crate::options::Options;
use crate::store::handle::Store;

/// A store of bare pages of one size, from 4 KiB to 1 MiB (row B1): one data file and its log.
///
/// Pages are numbered from 0. A page is *allocated* before it is used and *released* after;
/// an allocated page that was never written reads as zeros. Every page whose number is a multiple
/// of 8 x page size is protected: it holds the allocation bits (row B5). The home node of page *n*
/// is *n* modulo 256 modulo the nodes (row B4).
///
/// All changes are made in a [`PageBatch`](super::PageBatch), atomically and durably; readers look at a
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
    pub(super) store: Arc<Store>,
    /// What readers see.
    pub(super) published: RwLock<Published>,
    /// What the next batch begins from, which is perhaps not durable yet.
    pub(super) newest: RwLock<Published>,
    zeros: Arc<[u8]>,
    /// Where the next batch begins to search for free pages.
    pub(super) next: AtomicU64,
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
            &for_pages(options),
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
        PageStore::over(Store::create_holding_on(
            data,
            log,
            &for_pages(options),
            Some(&first),
        )?)
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
        let published = Published::load(snapshot)?;
        Ok(PageStore {
            zeros: vec![0; store.page_size()].into(),
            newest: RwLock::new(published.clone()),
            published: RwLock::new(published),
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

    /// What `commit` of a batch calls when its changes are logged, in the order of the commits.
    pub(super) fn begin_from(&self, new: Published, next: u64) {
        self.next.store(next, Ordering::Relaxed);
        let old = std::mem::replace(&mut *self.newest.write(), new);
        // Others begin under the lock, so nothing else is done there.
        drop(old);
    }

    /// What `commit` of a batch calls when its changes are durable, in any order.
    pub(super) fn publish(&self, mut new: Published) {
        let mut published = self.published.write();
        if new.snapshot.version() > published.snapshot.version() {
            std::mem::swap(&mut *published, &mut new);
        }
        // Views are made under the lock, so nothing else is done there.
        drop(published);
    }

    /// Folds the log into the data file.
    ///
    /// # Errors
    /// As [`Store::checkpoint`].
    pub fn checkpoint(&self) -> Result<()> {
        self.store.checkpoint()
    }

    /// Makes the data file as short as what it holds.
    ///
    /// # Errors
    /// As [`Store::vacuum`].
    pub fn vacuum(&self) -> Result<Vacuum> {
        self.store.vacuum()
    }

    /// Folds the log into the data file and closes it. Dropping a store without this is no loss.
    ///
    /// # Errors
    /// As [`Store::close`].
    pub fn close(self) -> Result<()> {
        let PageStore {
            store,
            published,
            newest,
            ..
        } = self;
        // A snapshot that is held keeps the pages freed after it.
        drop((published, newest));
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

/// Bare pages are whole blocks of the file, so that direct reads fill frames.
fn for_pages(options: &Options) -> Options {
    Options {
        alignment: options.alignment.max(BLOCK as u32),
        ..options.clone()
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
