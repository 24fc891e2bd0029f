//! Translation: the word of each page id, which says where the page is.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use memory::Reserve;

use crate::config::PageId;
use crate::error::{Error, Result};
use crate::word::Word;

/// The least number of page ids that a pool has words for.
const LEAST: usize = 1 << 20;

/// A flat array of words, one for each page id there can be; it takes memory only where pages are.
#[derive(Debug)]
pub(crate) struct Translation {
    words: Reserve,
}

impl Translation {
    pub(crate) fn new() -> Result<Translation> {
        // All page ids are 32 GiB of addresses. Where that is refused (a limit on virtual memory,
        // a small machine), fewer pages can be translated.
        let mut pages = usize::try_from(1u64 << PageId::BITS).unwrap_or(LEAST);
        loop {
            match Reserve::new(pages * size_of::<AtomicU64>()) {
                Ok(words) => return Ok(Translation { words }),
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

    pub(crate) fn capacity(&self) -> u64 {
        self.words.words().len() as u64
    }
}
