//! Reading page after page, with a prefetcher that watches.

use std::sync::Arc;

use crate::config::PageId;
use crate::error::Result;
use crate::pin::Pin;
use crate::pool::Pool;
use crate::prefetch::Outcome;
use crate::read_ahead::ReadAhead;

/// One caller that pins page after page, such as a scan or a search. The prefetcher that
/// [`Config::prefetch`](crate::Config::prefetch) names watches it and has pages loaded meanwhile.
///
/// ```
/// # use std::sync::Arc;
/// # use buffer::{LoadError, PageId, Pool, Source};
/// # struct Zeros;
/// # impl Source for Zeros {
/// #     fn bucket(&self, _: PageId) -> u8 { 0 }
/// #     fn load<'a>(&'a self, _: PageId, _: &'a mut [u8])
/// #         -> futures::future::BoxFuture<'a, Result<usize, LoadError>> {
/// #         Box::pin(async { Ok(4096) })
/// #     }
/// # }
/// use buffer::{Config, Policy, Prefetching, Reader};
///
/// let config = Config {
///     bytes: 64 * 4096,
///     page_size: 4096,
///     partitions_per_node: 1,
///     nodes: vec![None],
///     placement: buffer::Placement::default(),
///     replacement: Policy::default(),
///     prefetch: Prefetching::Stream,
/// };
/// let pool = Pool::new(&config, Arc::new(Zeros), memory::Budget::new(1 << 20))?;
/// let mut reader = Reader::new(&pool);
/// for page in 0..1000 {
///     let pin = futures::executor::block_on(reader.pin(page))?;
///     assert_eq!(pin.len(), 4096);
/// }
/// // How many misses that spared depends on how fast the loads are.
/// assert!(pool.statistics().coverage().is_some());
/// # Ok::<(), buffer::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader<'p> {
    pool: &'p Arc<Pool>,
    ahead: ReadAhead,
}

impl<'p> Reader<'p> {
    /// A caller that begins to read.
    pub fn new(pool: &'p Arc<Pool>) -> Reader<'p> {
        Reader {
            pool,
            ahead: pool.read_ahead(),
        }
    }

    /// As [`Pool::pin`].
    ///
    /// # Errors
    /// Those of [`Pool::pin`].
    #[inline]
    pub async fn pin(&mut self, page: PageId) -> Result<Pin<'p>> {
        let pin = self.pool.try_pin(page);
        if !self.ahead.is_off() {
            let outcome = match pin {
                Some(_) => Outcome::Hit,
                None => self.pool.missing(page),
            };
            let wanted = self.ahead.accessed(page, outcome);
            if !wanted.is_empty() {
                self.pool.prefetch(wanted);
            }
        }
        match pin {
            Some(pin) => Ok(pin),
            None => self.pool.pin_missing(page).await,
        }
    }
}

impl Pool {
    /// How a page that was just found not to be resident is missed, for a [`ReadAhead`] that is told
    /// of it.
    pub fn missing(&self, page: PageId) -> Outcome {
        match self.translation.word(page) {
            Some(word) if !word.load().is_absent() => Outcome::Late,
            _ => Outcome::Miss,
        }
    }
}
