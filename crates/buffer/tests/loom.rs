//! The word of a page under every interleaving of a few threads.
//!
//! The module is compiled here against loom's atomics, and frames are loom cells, which detect
//! an access that is not ordered with a write.

#[path = "../src/word.rs"]
#[allow(dead_code, reason = "the pool uses all of it, the models below a part")]
mod word;

#[path = "../src/version.rs"]
#[allow(dead_code, reason = "the pool uses all of it, the models below a part")]
mod version;

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
}

use atomic::{AtomicU64, Ordering};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, fence};
use loom::thread;
use version::Version;
use word::{Discarded, Located, Published, Swept, Word};

/// In a frame, filling it or not.
fn at(frame: u32) -> Located {
    Located {
        frame,
        full: frame.is_multiple_of(2),
    }
}

/// Two pages and one frame; what is in the frame is the number of a page.
struct Small {
    words: [AtomicU64; 2],
    frame: UnsafeCell<u64>,
    /// Set while somebody believes to own the frame.
    owned: AtomicBool,
}

impl Small {
    fn new() -> Arc<Small> {
        Arc::new(Small {
            words: [AtomicU64::new(0), AtomicU64::new(0)],
            frame: UnsafeCell::new(u64::MAX),
            owned: AtomicBool::new(false),
        })
    }

    fn word(&self, page: usize) -> Word<'_> {
        Word(&self.words[page])
    }

    /// Fills the frame, as its owner.
    fn fill(&self, page: usize) {
        assert!(!self.owned.swap(true, Ordering::Relaxed), "two owners");
        // SAFETY: loom checks that nobody else accesses the cell at the same time.
        self.frame.with_mut(|bytes| unsafe { *bytes = page as u64 });
        assert!(self.owned.swap(false, Ordering::Relaxed));
    }

    fn load(&self, page: usize) {
        assert!(self.word(page).begin(0, page as u32));
        self.fill(page);
        assert_eq!(
            self.word(page).publish(page as u32, at(0)),
            Published::Resident
        );
    }

    /// Whether the page was resident; if so the frame must hold it.
    fn read(&self, page: usize) -> bool {
        let Ok(found) = self.word(page).pin() else {
            return false;
        };
        assert_eq!(found, at(0));
        self.frame.with(|bytes| {
            // SAFETY: loom checks that nobody writes to the cell at the same time.
            assert_eq!(unsafe { *bytes }, page as u64);
        });
        self.word(page).unpin();
        true
    }
}

#[test]
fn a_pinned_page_is_not_evicted_under_its_reader() {
    loom::model(|| {
        let small = Small::new();
        small.load(0);
        small.word(0).unpin();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let small = small.clone();
                thread::spawn(move || small.read(0))
            })
            .collect();
        if small.word(0).evict(0) == Swept::Evicted {
            small.load(1);
        }
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn a_frame_falls_to_one_of_the_clock_and_discard() {
    loom::model(|| {
        let small = Small::new();
        small.load(0);
        small.word(0).unpin();
        let clock = {
            let small = small.clone();
            thread::spawn(move || {
                let mut won = small.word(0).age(0) == Swept::Evicted;
                won |= !won && small.word(0).age(0) == Swept::Evicted;
                if won {
                    small.fill(1);
                }
                won
            })
        };
        let reader = {
            let small = small.clone();
            thread::spawn(move || {
                small.read(0);
            })
        };
        let freed = match small.word(0).discard() {
            Discarded::Freed(0) => {
                small.fill(1);
                true
            }
            _ => false,
        };
        let evicted = clock.join().unwrap();
        reader.join().unwrap();
        assert!(!(freed && evicted), "both got the frame");
        assert_eq!(small.word(0).load().is_absent(), freed || evicted);
    });
}

#[test]
fn two_who_miss_do_not_both_load() {
    loom::model(|| {
        let small = Small::new();
        let missers: Vec<_> = (0..2)
            .map(|claim| {
                let small = small.clone();
                thread::spawn(move || {
                    let word = small.word(0);
                    if small.read(0) || !word.begin(3, claim) {
                        return false;
                    }
                    small.fill(0);
                    assert_eq!(word.publish(claim, at(0)), Published::Resident);
                    assert!(small.read(0));
                    word.unpin();
                    true
                })
            })
            .collect();
        let loads = missers
            .into_iter()
            .map(|misser| usize::from(misser.join().unwrap()))
            .sum::<usize>();
        assert_eq!(loads, 1);
        assert_eq!(small.word(0).load().resident_in(0), Some(0));
    });
}

#[test]
fn what_was_discarded_while_loading_is_not_published() {
    loom::model(|| {
        let small = Small::new();
        assert!(small.word(0).begin(0, 9));
        let loader = {
            let small = small.clone();
            thread::spawn(move || {
                small.fill(0);
                let published = small.word(0).publish(9, at(0)) == Published::Resident;
                if published {
                    small.word(0).unpin();
                }
                published
            })
        };
        let discarded = small.word(0).discard();
        let published = loader.join().unwrap();
        match discarded {
            Discarded::Doomed => assert!(!published),
            Discarded::Absent => panic!("it was loading"),
            Discarded::Freed(frame) => {
                assert_eq!(frame, 0);
                assert!(published);
                small.fill(1);
            }
            Discarded::Pinned(pins) => assert!(published && pins == 1),
        }
        let absent = !matches!(discarded, Discarded::Pinned(_));
        assert_eq!(small.word(0).load().is_absent(), absent);
    });
}

#[test]
fn of_a_loader_and_who_takes_over_one_publishes() {
    loom::model(|| {
        let small = Small::new();
        assert!(small.word(0).begin(5, 1));
        let seen = small.word(0).load();
        // The first comes back to life, with a frame of its own, while the other takes over.
        let first = {
            let small = small.clone();
            thread::spawn(move || small.word(0).publish(1, at(10)))
        };
        let other = {
            let small = small.clone();
            thread::spawn(move || {
                let word = small.word(0);
                word.take_over(seen, 2).then(|| word.publish(2, at(11)))
            })
        };
        let (first, other) = (first.join().unwrap(), other.join().unwrap());
        let frame = match (first, other) {
            (Published::Resident, None) => 10,
            (Published::Superseded, Some(Published::Resident)) => 11,
            unexpected => panic!("{unexpected:?}"),
        };
        assert_eq!(small.word(0).load().resident_in(frame), Some(1));
        assert!(!small.word(0).abandon(1) && !small.word(0).abandon(2));
    });
}

#[test]
fn who_waits_for_a_frame_sees_it_or_is_seen() {
    // The two sides of `starve`. Loom takes sequentially consistent accesses for acquire and
    // release ones, so fences stand for what they guarantee; what is checked here is the order
    // of the steps, and that without that guarantee they would not do (take the fences away).
    loom::model(|| {
        let small = Small::new();
        let flag = Arc::new(AtomicBool::new(false));
        small.load(0);
        let unpinner = {
            let (small, flag) = (small.clone(), flag.clone());
            thread::spawn(move || {
                let last = small.word(0).unpin();
                fence(Ordering::SeqCst);
                last && flag.load(Ordering::SeqCst)
            })
        };
        flag.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let found = small.word(0).evict(0) == Swept::Evicted;
        let woken = unpinner.join().unwrap();
        assert!(found || woken, "the waiter would sleep for ever");
    });
}

/// Two pages and one frame of two words, which optimistic readers copy while others write: its
/// bytes are atomics here, as the reads are volatile there. Both words hold the same, of one page.
struct Versioned {
    words: [AtomicU64; 2],
    version: Version,
    bytes: [AtomicU64; 2],
}

impl Versioned {
    /// With page 0 in the frame, in its state 0.
    fn new() -> Arc<Versioned> {
        let versioned = Versioned {
            words: [AtomicU64::new(0), AtomicU64::new(0)],
            version: Version::default(),
            bytes: [AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX)],
        };
        versioned.load(0, 0);
        Arc::new(versioned)
    }

    fn word(&self, page: usize) -> Word<'_> {
        Word(&self.words[page])
    }

    fn write(&self, value: u64) {
        for half in &self.bytes {
            half.store(value, Ordering::Relaxed);
        }
    }

    /// Loads a state of a page into the frame, as its owner; nobody pins it.
    fn load(&self, page: usize, state: u64) {
        assert!(self.word(page).begin(0, 1));
        self.version.begin();
        self.write(page as u64 * 100 + state);
        self.version.end();
        assert_eq!(self.word(page).publish(1, at(0)), Published::Resident);
        self.word(page).unpin();
    }

    /// What an optimistic read of a page gives.
    fn read(&self, page: usize) -> Option<[u64; 2]> {
        let found = self.word(page).peek()?;
        let seen = self.version.seen()?;
        let both = [0, 1].map(|half: usize| self.bytes[half].load(Ordering::Relaxed));
        let here = || self.word(page).peek() == Some(found);
        self.version.is_still(seen, here).then_some(both)
    }
}

#[test]
fn an_optimistic_read_gives_one_state_of_its_page() {
    // Evicted, another page in its frame, and back in the same frame with other bytes.
    loom::model(|| {
        let versioned = Versioned::new();
        let reader = {
            let versioned = versioned.clone();
            thread::spawn(move || versioned.read(0))
        };
        assert_eq!(versioned.word(0).evict(0), Swept::Evicted);
        versioned.load(1, 0);
        assert_eq!(versioned.word(1).evict(0), Swept::Evicted);
        versioned.load(0, 1);
        let read = reader.join().unwrap();
        assert!(matches!(read, None | Some([0, 0] | [1, 1])), "{read:?}");
        assert_eq!(versioned.read(0), Some([1, 1]));
    });
}

#[test]
fn an_optimistic_read_sees_all_of_a_change_or_fails() {
    loom::model(|| {
        let versioned = Versioned::new();
        let reader = {
            let versioned = versioned.clone();
            thread::spawn(move || versioned.read(0))
        };
        assert_eq!(versioned.word(0).try_exclusive(), Ok(at(0)));
        versioned.version.begin();
        versioned.write(5);
        versioned.version.end();
        versioned.word(0).release_exclusive();
        let read = reader.join().unwrap();
        assert!(matches!(read, None | Some([0, 0] | [5, 5])), "{read:?}");
    });
}

#[test]
fn who_holds_a_page_exclusively_is_alone() {
    loom::model(|| {
        let small = Small::new();
        small.load(0);
        small.word(0).unpin();
        let others: Vec<_> = (0..2)
            .map(|which| {
                let small = small.clone();
                thread::spawn(move || match which {
                    0 => drop(small.read(0)),
                    _ if small.word(0).evict(0) == Swept::Evicted => small.fill(1),
                    _ => (),
                })
            })
            .collect();
        if small.word(0).try_exclusive().is_ok() {
            assert!(small.word(0).pin().is_err());
            assert_eq!(small.word(0).discard(), Discarded::Pinned(1));
            // Loom checks that no reader is in the cell.
            small.fill(0);
            small.word(0).release_exclusive();
        }
        for other in others {
            other.join().unwrap();
        }
    });
}
