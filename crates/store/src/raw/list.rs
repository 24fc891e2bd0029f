//! The pages of a view in their order, each with its place, for operators that pass over all.

use std::sync::Arc;

use buffer::PageId;

use super::view::{PagePin, PageView, whole};
use crate::error::Result;

/// The pages that a caller may use (allocated, not protected) of one [`PageView`], ascending. The
/// catalog is asked once for all of them, so that a pin of a resident page is as cheap as the
/// pool's own. Takes 12 bytes of memory a page. Clones share it.
///
/// ```
/// use store::{Options, PageStore};
///
/// let directory = tempfile::tempdir()?;
/// let options = Options { page_size: 4096, ..Options::default() };
/// let store = PageStore::create(directory.path().join("reef.pages"), &options)?;
/// let mut batch = store.begin()?;
/// let page = batch.alloc()?;
/// batch.write(page, &[7; 4096])?;
/// batch.commit()?;
///
/// let list = store.view().list();
/// assert_eq!((list.len(), list.page(0)), (1, page));
/// let pin = futures::executor::block_on(list.pin(0))?;
/// assert_eq!(pin[4095], 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct PageList {
    view: PageView,
    entries: Arc<[Entry]>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    page: u32,
    /// `None` if the page was never written.
    place: Option<PageId>,
}

impl PageView {
    /// The pages that a caller may use, each looked up once.
    pub fn list(&self) -> PageList {
        let mut places = self.places().peekable();
        let mut entries = Vec::new();
        for page in self.runs().flatten() {
            let Ok(page) = u32::try_from(page) else { break };
            if self.is_protected(page) {
                continue;
            }
            // Places of pages that may not be used: of protected ones, or left by damage.
            while places.next_if(|&(kept, _)| kept < page).is_some() {}
            let place = places.next_if(|&(kept, _)| kept == page);
            let place = place.map(|(_, place)| place);
            entries.push(Entry { page, place });
        }
        drop(places);
        PageList {
            view: self.clone(),
            entries: entries.into(),
        }
    }
}

impl PageList {
    /// The pool through which the pages are read.
    pub fn pool(&self) -> &Arc<buffer::Pool> {
        self.view.pool()
    }

    /// How many pages there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of the page at `index`.
    ///
    /// # Panics
    /// If `index` is not below [`len`](PageList::len), as do all that follow.
    pub fn page(&self, index: usize) -> u32 {
        self.entries[index].page
    }

    /// Pins the page at `index` if it needs no load.
    #[inline]
    pub fn try_pin(&self, index: usize) -> Option<PagePin<'_>> {
        match self.entries[index].place {
            None => Some(self.view.zeros()),
            Some(place) => {
                let pin = self.view.pool().try_pin(place)?;
                // A page of another length is an error, which `pin` tells.
                (pin.len() == self.view.page_size()).then(|| PagePin::of(pin))
            }
        }
    }

    /// Pins the page at `index`. Suspends while it is loaded.
    ///
    /// # Errors
    /// As [`PageView::pin`].
    pub async fn pin(&self, index: usize) -> Result<PagePin<'_>> {
        let Entry { page, place } = self.entries[index];
        match place {
            None => Ok(self.view.zeros()),
            Some(place) => {
                let pin = self.view.pool().pin(place).await;
                whole(self.view.snapshot(), (page, place), pin)
            }
        }
    }

    /// Whether the page at `index` can be pinned without a load, at this moment.
    #[inline]
    pub fn is_resident(&self, index: usize) -> bool {
        let place = self.entries[index].place;
        place.is_none_or(|place| self.view.pool().is_resident(place))
    }

    /// How the page at `index`, which was just found not to be resident, is missed.
    pub(super) fn missing(&self, index: usize) -> buffer::prefetch::Outcome {
        let place = self.entries[index].place;
        place.map_or(buffer::prefetch::Outcome::Miss, |place| {
            self.view.pool().missing(place)
        })
    }

    /// Loads pages in the background, as [`buffer::Pool::prefetch`] does: those at `indexes`.
    pub fn prefetch(&self, indexes: impl IntoIterator<Item = usize>) {
        let places = indexes.into_iter().filter_map(|at| self.entries[at].place);
        self.view.pool().prefetch(&places.collect::<Vec<_>>());
    }
}
