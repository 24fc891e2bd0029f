//! Translation: the word of each page id, which says where the page is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memory::{Account, Budget, Reserve};

use crate::config::PageId;
use crate::error::{Error, Result};
use crate::word::Word;

/// The least number of page ids that a pool has words for.
const LEAST: usize = 1 << 20;
/// Where not all words can be reserved, addresses are limited, and others need them, too: of the power of two that could be
/// had the words get this part.
const PART: usize = 8;
/// Words that share a bit of `touched`.
const BLOCK: usize = 1 << 15;

/// A flat array of words, one for each page id there can be; it takes memory only where pages are.
#[derive(Debug)]
pub(crate) struct Translation {
    words: Reserve,
    /// A bit for each block of words in which a page was ever loaded, so that all pages can be
    /// visited without touching the memory of those that never were.
    touched: Box<[AtomicU64]>,
    /// What the touched blocks take of memory.
    account: Account,
}

impl Translation {
    /// Words whose memory is counted in `budget` as it is touched. What it has no room for is owed: no load
    /// fails for it.
    pub(crate) fn new(budget: Arc<Budget>) -> Result<Translation> {
        // All page ids are 32 GiB of addresses. Where that is refused (a limit on virtual memory,
        // a small machine), fewer pages can be translated.
        let all = usize::try_from(1u64 << PageId::BITS).unwrap_or(LEAST);
        let mut pages = all;
        let mut is_probed = false;
        loop {
            match Reserve::new(pages * size_of::<AtomicU64>()) {
                Ok(_) if pages < all && !is_probed => {
                    pages = (pages / PART).max(LEAST);
                    is_probed = true;
                }
                Ok(words) => {
                    // Without them a pin waits for the address of its word, too. Where the system
                    // has none, nothing is lost.
                    let _ = words.huge();
                    let blocks = words.words().len().div_ceil(BLOCK);
                    let touched = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0));
                    return Ok(Translation {
                        words,
                        touched: touched.collect(),
                        account: Account::new(budget),
                    });
                }
                Err(_) if pages > LEAST => pages /= 2,
                Err(source) => {
                    return Err(Error::Memory {
                        source: Arc::new(source),
                    });
                }
            }
        }
    }

    #[inline]
    pub(crate) fn word(&self, page: PageId) -> Option<Word<'_>> {
        self.words.words().get(page as usize).map(Word)
    }

    /// Notes that a page is being loaded.
    pub(crate) fn touch(&self, page: PageId) {
        let block = page as usize / BLOCK;
        if let Some(bits) = self.touched.get(block / 64) {
            let bit = 1 << (block % 64);
            // Mostly set already, and then no thread disturbs another.
            if bits.load(Ordering::Relaxed) & bit == 0
                && bits.fetch_or(bit, Ordering::Relaxed) & bit == 0
            {
                self.account.must((BLOCK * size_of::<AtomicU64>()) as u64);
            }
        }
    }

    /// The pages whose words need not be zero, in order.
    pub(crate) fn touched(&self) -> impl Iterator<Item = PageId> {
        let blocks = (0..self.touched.len() * 64).filter(|block| {
            self.touched[block / 64].load(Ordering::Relaxed) & (1 << (block % 64)) != 0
        });
        let end = self.words.words().len();
        blocks
            .flat_map(move |block| block * BLOCK..((block + 1) * BLOCK).min(end))
            .map(|page| page as PageId)
    }

    /// Bytes of the blocks of words in which a page was ever loaded.
    pub(crate) fn bytes(&self) -> u64 {
        self.account.bytes()
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.words.words().len() as u64
    }
}
