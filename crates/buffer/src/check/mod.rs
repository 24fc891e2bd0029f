//! The check of a pool: whether its words, frames, free lists and counts agree (row B7).

use std::sync::atomic::Ordering;

use crate::config::PageId;
use crate::pool::Pool;
use crate::word::MAPPED;

/// What [`Pool::check`] found to be wrong (row B7). Each is a bug in the pool or memory that was
/// overwritten: stop using the pool, and open its store anew.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The pool was never at rest for long enough to be checked.
    #[error("the pool cannot be checked while pages come and go; check it when its tasks are done")]
    Busy,
    /// The descriptor of a frame is not as the pool made it.
    #[error(
        "frame {frame}: bad descriptor: it says node {node}, partition {partition}, {len} bytes of \
         page {page}"
    )]
    Descriptor {
        /// The frame.
        frame: u32,
        /// The logical node the descriptor names.
        node: u32,
        /// The partition the descriptor names.
        partition: u32,
        /// The page the descriptor names.
        page: PageId,
        /// The length of the page in bytes, as the descriptor has it.
        len: usize,
    },
    /// A frame without a page is in no free list.
    #[error("frame {frame}: free, but in no free list")]
    FreeUnlisted {
        /// The frame.
        frame: u32,
    },
    /// A frame that holds a page is in a free list.
    #[error("frame {frame}: holds page {page}, but is in a free list")]
    AllocatedListed {
        /// The frame.
        frame: u32,
        /// The page in it.
        page: PageId,
    },
    /// A frame is in the free lists twice.
    #[error("frame {frame}: in the free lists twice")]
    ListedTwice {
        /// The frame.
        frame: u32,
    },
    /// A frame is in the free list of a partition that does not own it, or there is no such frame.
    #[error(
        "frame {frame}: in the free list of partition {partition}, to which it does not belong"
    )]
    ListedElsewhere {
        /// The frame.
        frame: u32,
        /// The partition whose list it is in.
        partition: u32,
    },
    /// The word of a page that is in no frame is not empty, or has no valid state.
    #[error("page {page}: free, but its word maps it to a frame")]
    FreeMapped {
        /// The page.
        page: PageId,
    },
    /// The word of a page names a frame that does not exist.
    #[error("page {page}: mapped to frame {frame}, the pool has {frames}")]
    NoSuchFrame {
        /// The page.
        page: PageId,
        /// The frame its word names.
        frame: u32,
        /// All frames of the pool.
        frames: usize,
    },
    /// The word of a page names a frame whose descriptor names another page.
    #[error("page {page}: mapped to frame {frame}, which holds page {holds}")]
    Mismatch {
        /// The page.
        page: PageId,
        /// The frame its word names.
        frame: u32,
        /// The page that frame says it holds.
        holds: PageId,
    },
    /// Two pages are mapped to one frame. (One page cannot have two: its word names one.)
    #[error("frame {frame}: pages {first} and {second} are both mapped to it")]
    Shared {
        /// The frame.
        frame: u32,
        /// The lower page.
        first: PageId,
        /// The higher page.
        second: PageId,
    },
    /// The word of a page says that it is being loaded, and nobody loads.
    #[error("page {page}: marked as being loaded, but nobody loads it")]
    NoLoader {
        /// The page.
        page: PageId,
    },
    /// A node counts another number of free frames than its lists have.
    #[error("node {node}: counts {counted} free frames, its free lists have {listed}")]
    FreeCount {
        /// The logical node.
        node: usize,
        /// What it counts.
        counted: usize,
        /// What the lists of its partitions have together.
        listed: usize,
    },
}

/// How often the check begins again because pages came or went meanwhile.
const ATTEMPTS: usize = 8;

/// What is known of a frame so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Unknown,
    Listed,
    Holds(PageId),
}

impl Pool {
    /// Checks that words, frames, free lists and counts agree, and names the first page or frame
    /// where they do not. Looks at every frame and at the words of all pages ever loaded: for
    /// tests, and for when something seems wrong. Pins may come and go meanwhile; loads and
    /// evictions make it begin again, a few times.
    ///
    /// # Errors
    /// A [`Damage`] for each failure (row B7); [`Damage::Busy`] where the pool never rests.
    pub fn check(&self) -> Result<(), Damage> {
        for _ in 0..ATTEMPTS {
            let before = self.moves();
            let found = self.check_once();
            if before.is_some() && self.moves() == before {
                return found;
            }
            std::thread::yield_now();
        }
        Err(Damage::Busy)
    }

    /// A number that grows whenever a frame changes hands; `None` while one does.
    fn moves(&self) -> Option<u64> {
        let moves = self.partitions.iter().map(|partition| {
            let counts = &partition.counts;
            let each = [&counts.loads, &counts.failures, &counts.evictions];
            each.map(|counter| counter.load(Ordering::SeqCst))
                .iter()
                .sum::<u64>()
        });
        let claims = self.claims.load(Ordering::SeqCst);
        let freed = self.partitions.freed.load(Ordering::SeqCst);
        let sum = moves.sum::<u64>() + freed + u64::from(claims);
        // A load that was dropped may leave its frame with the operating system for a while.
        let spaces = self.partitions.spaces.load(Ordering::SeqCst);
        (self.loading.load(Ordering::SeqCst) == 0 && spaces == 0).then_some(sum)
    }

    fn check_once(&self) -> Result<(), Damage> {
        self.check_descriptors()?;
        let mut uses = vec![Use::Unknown; self.frames.len()];
        self.check_lists(&mut uses)?;
        self.check_words(&mut uses)?;
        match uses.iter().position(|found| *found == Use::Unknown) {
            Some(frame) => Err(Damage::FreeUnlisted {
                frame: frame as u32,
            }),
            None => Ok(()),
        }
    }

    fn check_descriptors(&self) -> Result<(), Damage> {
        for (number, frame) in self.frames.iter() {
            if !self.frames.is_sound(number, self.shape) {
                return Err(Damage::Descriptor {
                    frame: number,
                    node: frame.node,
                    partition: frame.partition,
                    page: frame.page(),
                    len: frame.len(),
                });
            }
        }
        Ok(())
    }

    fn check_lists(&self, uses: &mut [Use]) -> Result<(), Damage> {
        let mut listed = vec![0; self.shape.nodes];
        for (partition, part) in (0u32..).zip(self.partitions.iter()) {
            for frame in self.partitions.free(partition) {
                let owned = uses.get(frame as usize).is_some()
                    && self.frames.get(frame).partition == partition;
                if !owned {
                    return Err(Damage::ListedElsewhere { frame, partition });
                }
                if uses[frame as usize] == Use::Listed {
                    return Err(Damage::ListedTwice { frame });
                }
                uses[frame as usize] = Use::Listed;
                listed[part.node] += 1;
            }
        }
        for (node, listed) in listed.into_iter().enumerate() {
            let counted = self.partitions.node(node).free.load(Ordering::SeqCst);
            if counted != listed {
                return Err(Damage::FreeCount {
                    node,
                    counted,
                    listed,
                });
            }
        }
        Ok(())
    }

    fn check_words(&self, uses: &mut [Use]) -> Result<(), Damage> {
        for page in self.translation.touched() {
            let Some(word) = self.translation.word(page) else {
                continue;
            };
            let value = word.load();
            if value.is_broken() {
                return Err(Damage::FreeMapped { page });
            }
            if value.loading().is_some() {
                return Err(Damage::NoLoader { page });
            }
            let Some(frame) = value.frame().filter(|frame| *frame != MAPPED) else {
                continue;
            };
            let Some(found) = uses.get_mut(frame as usize) else {
                return Err(Damage::NoSuchFrame {
                    page,
                    frame,
                    frames: self.frames.len(),
                });
            };
            match *found {
                Use::Listed => return Err(Damage::AllocatedListed { frame, page }),
                Use::Holds(first) => {
                    return Err(Damage::Shared {
                        frame,
                        first,
                        second: page,
                    });
                }
                Use::Unknown => *found = Use::Holds(page),
            }
            let holds = self.frames.get(frame).page();
            // Where two pages share the frame, that is the clearer thing to say: it is found
            // when the second is met.
            if holds != page && !self.is_in(holds, frame) {
                return Err(Damage::Mismatch { page, frame, holds });
            }
        }
        Ok(())
    }

    fn is_in(&self, page: PageId, frame: u32) -> bool {
        let word = self.translation.word(page);
        word.and_then(|word| word.load().frame()) == Some(frame)
    }
}

#[cfg(test)]
mod tests;
