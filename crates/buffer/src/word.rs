//! The word of a page: where it is and who holds it, in one atomic.
//!
//! ```text
//!  63  62 61 60  59   56 55            32 31                             0
//! +------+--+--+-------+-----------------+--------------------------------+
//! | state|F |D | usage |      pins       |  frame                         |  resident
//! |      |  |  |         claim           |  partition                     |  loading
//! +------+--+--+-------+-----------------+--------------------------------+
//! ```
//!
//! | state    | means                                          | left by                        |
//! |----------|------------------------------------------------|--------------------------------|
//! | absent   | no frame; the whole word is zero               | [`begin`](Word::begin)         |
//! | loading  | the loader with this claim owns the page; D: its result is unwanted | [`publish`](Word::publish), [`abandon`](Word::abandon) |
//! | resident | in `frame`, which stays while `pins` is not 0  | [`age`](Word::age), [`evict`](Word::evict), [`discard`](Word::discard) |
//!
//! Pins that are all ones are no number: one caller holds the page exclusively
//! ([`try_exclusive`](Word::try_exclusive)), and nobody can pin it. Pins stop short of that.
//!
//! Invariants:
//! 1. A frame is named by at most one resident word. Who makes a word leave `resident` owns its
//!    frame from then on, alone.
//! 2. A word leaves `resident` only by a compare-and-swap from a value with no pins, so nobody can
//!    find a page and lose it before the pin counts.
//! 3. Only the loader whose claim the word holds leaves `loading`. Another may take the page over,
//!    with a claim and a frame of its own; the first then finds its claim gone, and only has its
//!    frame to give back. (Claims repeat after 2^28; even then each loader has its own frame, so
//!    one of them publishes and the other gives back.)
//! 4. A pin acquires what `publish` released; who takes a frame acquires what every unpin
//!    released. So bytes are written before they are read, and read before they are overwritten.
//!
//! `unpin` and the reading of a word by the clock are sequentially consistent: together with the
//! flag of those who wait for a frame they decide who has to wake whom (see `starve`).
//!
//! This module stands alone, so that `tests/loom.rs` can compile it against loom's atomics.

use crate::atomic::{AtomicU64, Ordering};

const FRAME: u64 = 0xffff_ffff;
const PIN: u64 = 1 << 32;
const PINS: u64 = 0x00ff_ffff << 32;
/// In place of pins: one caller holds the page, alone.
const EXCLUSIVE: u64 = PINS;
/// The most pins that are counted.
const MOST_PINS: u64 = PINS - PIN;
const CLAIM: u64 = PINS | USAGE;
/// The largest claim.
pub(crate) const CLAIMS: u32 = (1 << 28) - 1;
const USE: u64 = 1 << 56;
const USAGE: u64 = 0xf << 56;
const DOOMED: u64 = 1 << 60;
/// F, of a resident page: it is as long as its frame, so whoever pins it need not look how long.
const FULL: u64 = 1 << 61;
const STATE: u64 = 3 << 62;
const ABSENT: u64 = 0;
const LOADING: u64 = 1 << 62;
const RESIDENT: u64 = 2 << 62;

/// The frame of a page that needs none, as its source has it in memory: see
/// [`Source::mapped`](crate::Source::mapped). No clock finds it, so it stays until it is discarded.
pub(crate) const MAPPED: u32 = u32::MAX;

/// The largest usage count, as in PostgreSQL: how many rounds of the clock a page can outlive.
pub(crate) const USAGE_CAP: u32 = 5;
const MOST_USED: u64 = (USAGE_CAP as u64) << 56;

const _: () = assert!(MOST_USED <= USAGE);
const _: () = assert!(FRAME & PINS == 0 && PINS & USAGE == 0 && USAGE & DOOMED == 0);
const _: () = assert!(DOOMED & STATE == 0 && FULL & (STATE | DOOMED) == 0);

/// What a word held at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value(u64);

impl Value {
    pub(crate) fn is_absent(self) -> bool {
        self.0 & STATE == ABSENT
    }

    pub(crate) fn is_resident(self) -> bool {
        self.0 & STATE == RESIDENT
    }

    /// The partition in which those who wait for this load are listed.
    pub(crate) fn loading(self) -> Option<u32> {
        (self.0 & STATE == LOADING).then_some((self.0 & FRAME) as u32)
    }

    /// The pins, if resident in this frame.
    pub(crate) fn resident_in(self, frame: u32) -> Option<u32> {
        (self.is_resident() && self.0 & FRAME == u64::from(frame)).then(|| self.pins())
    }

    /// The frame, if resident.
    pub(crate) fn frame(self) -> Option<u32> {
        self.is_resident().then_some((self.0 & FRAME) as u32)
    }

    /// Whether this is a value that the protocol never leaves behind: absent yet not empty, or of
    /// no state at all.
    pub(crate) fn is_broken(self) -> bool {
        self.0 & STATE == STATE || (self.is_absent() && self.0 != 0)
    }

    /// Whether the page is resident and held by one caller, alone.
    pub(crate) fn is_exclusive(self) -> bool {
        self.is_resident() && self.0 & PINS == EXCLUSIVE
    }

    /// Where the page is, if resident.
    pub(crate) fn located(self) -> Option<Located> {
        self.is_resident().then_some(Located {
            frame: (self.0 & FRAME) as u32,
            full: self.0 & FULL != 0,
        })
    }

    /// How many hold the page: an exclusive holder is one.
    fn pins(self) -> u32 {
        match self.0 & PINS {
            EXCLUSIVE => 1,
            pins => (pins / PIN) as u32,
        }
    }
}

/// The result of one look at a frame, by whoever wants one to evict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swept {
    /// The page is not in this frame: the frame is free, or being loaded.
    Elsewhere,
    /// The page is pinned.
    Pinned,
    /// The page has no pins; this is its usage count now. It was one more if the look took one off.
    Aged(u32),
    /// The page is gone; the frame belongs to the caller.
    Evicted,
}

/// Where a resident page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Located {
    /// Its frame, or [`MAPPED`].
    pub(crate) frame: u32,
    /// Whether it is as long as its frame.
    pub(crate) full: bool,
}

/// The result of publishing a loaded page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Published {
    /// The page is resident, with a pin for the loader.
    Resident,
    /// The page was discarded meanwhile and is absent; the loader keeps its frame.
    Doomed,
    /// Another has taken the page over; the loader keeps its frame.
    Superseded,
}

/// The result of discarding a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Discarded {
    /// It was not here.
    Absent,
    /// It is being loaded; the loader will throw the result away.
    Doomed,
    /// It is gone; the frame belongs to the caller.
    Freed(u32),
    /// It is pinned and stays.
    Pinned(u32),
}

fn loading(partition: u32, claim: u32) -> u64 {
    LOADING | (u64::from(claim & CLAIMS) * PIN) | u64::from(partition)
}

fn is_claim(word: u64, claim: u32) -> bool {
    word & STATE == LOADING && (word & CLAIM) / PIN == u64::from(claim & CLAIMS)
}

/// The word of one page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Word<'a>(pub(crate) &'a AtomicU64);

impl Word<'_> {
    pub(crate) fn load(self) -> Value {
        Value(self.0.load(Ordering::SeqCst))
    }

    /// Adds a pin and a use, and returns where the page is; or why not: the page is not resident, or
    /// has as many pins as can be counted.
    #[inline]
    pub(crate) fn pin(self) -> Result<Located, Value> {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            if seen & STATE != RESIDENT || seen & PINS >= MOST_PINS {
                return Err(Value(seen));
            }
            let used = if seen & USAGE < MOST_USED { USE } else { 0 };
            let next = seen + PIN + used;
            match self
                .0
                .compare_exchange_weak(seen, next, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => {
                    return Ok(Located {
                        frame: (seen & FRAME) as u32,
                        full: seen & FULL != 0,
                    });
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Takes a pin away; true if it was the last. The caller must hold the pin.
    #[inline]
    pub(crate) fn unpin(self) -> bool {
        let before = self.0.fetch_sub(PIN, Ordering::SeqCst);
        debug_assert!(before & STATE == RESIDENT && before & PINS != 0);
        before & PINS == PIN
    }

    /// Where the page is, without a pin: what an optimistic read begins with, and compares at its
    /// end. Acquires what `publish` released.
    #[inline]
    pub(crate) fn peek(self) -> Option<Located> {
        Value(self.0.load(Ordering::Acquire)).located()
    }

    /// Holds a page without pins alone, and counts a use; or why not: the page is not resident, or
    /// is pinned, or held. Acquires what every unpin released, as who takes a frame does.
    pub(crate) fn try_exclusive(self) -> Result<Located, Value> {
        let mut seen = self.load();
        loop {
            let Some(at) = seen.located().filter(|_| seen.0 & PINS == 0) else {
                return Err(seen);
            };
            let used = if seen.0 & USAGE < MOST_USED { USE } else { 0 };
            let next = seen.0 + used + EXCLUSIVE;
            match self
                .0
                .compare_exchange(seen.0, next, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) => return Ok(at),
                Err(now) => seen = Value(now),
            }
        }
    }

    /// Lets go of a page that the caller holds alone: it has no pins then.
    pub(crate) fn release_exclusive(self) {
        let before = self.0.fetch_sub(EXCLUSIVE, Ordering::SeqCst);
        debug_assert!(Value(before).is_exclusive());
    }

    /// Absent to loading; true if the caller is the loader now.
    pub(crate) fn begin(self, partition: u32, claim: u32) -> bool {
        self.0
            .compare_exchange(
                ABSENT,
                loading(partition, claim),
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Makes the caller the loader in place of the one that `seen` named; false if that one has
    /// come to an end, or has been replaced, meanwhile.
    pub(crate) fn take_over(self, seen: Value, claim: u32) -> bool {
        let Some(partition) = seen.loading() else {
            return false;
        };
        self.0
            .compare_exchange(
                seen.0,
                loading(partition, claim),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Loading to resident with one pin, which is the caller's; or, if the page was discarded
    /// meanwhile, to absent. Only for the loader with this claim.
    #[must_use]
    pub(crate) fn publish(self, claim: u32, at: Located) -> Published {
        let full = if at.full { FULL } else { 0 };
        let resident = RESIDENT | full | USE | PIN | u64::from(at.frame);
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let (next, done) = match seen {
                _ if !is_claim(seen, claim) => return Published::Superseded,
                _ if seen & DOOMED != 0 => (ABSENT, Published::Doomed),
                _ => (resident, Published::Resident),
            };
            match self
                .0
                .compare_exchange(seen, next, Ordering::SeqCst, Ordering::Relaxed)
            {
                Ok(_) => return done,
                Err(now) => seen = now,
            }
        }
    }

    /// Loading to absent; false if another has taken the page over. Only for the loader with this
    /// claim.
    pub(crate) fn abandon(self, claim: u32) -> bool {
        let mut seen = self.0.load(Ordering::Relaxed);
        while is_claim(seen, claim) {
            match self
                .0
                .compare_exchange(seen, ABSENT, Ordering::SeqCst, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// One look of the clock: a page in `frame` without pins loses a use, or its frame if it has
    /// none left.
    pub(crate) fn age(self, frame: u32) -> Swept {
        let seen = self.load();
        match seen.resident_in(frame) {
            None => Swept::Elsewhere,
            Some(0) if seen.0 & USAGE != 0 => {
                let next = seen.0 - USE;
                self.swap(seen, next, Swept::Aged(((next & USAGE) / USE) as u32))
            }
            Some(0) => self.swap(seen, ABSENT, Swept::Evicted),
            Some(_) => Swept::Pinned,
        }
    }

    /// As [`age`](Word::age), but changes nothing.
    pub(crate) fn look(self, frame: u32) -> Swept {
        let seen = self.load();
        match seen.resident_in(frame) {
            None => Swept::Elsewhere,
            Some(0) => Swept::Aged(((seen.0 & USAGE) / USE) as u32),
            Some(_) => Swept::Pinned,
        }
    }

    /// Sets the usage count of a page in `frame`, at most [`USAGE_CAP`].
    pub(crate) fn set_uses(self, frame: u32, uses: u32) {
        let mut seen = self.load();
        while seen.resident_in(frame).is_some() {
            let next = (seen.0 & !USAGE) | (u64::from(uses.min(USAGE_CAP)) * USE);
            let swap = self.0;
            match swap.compare_exchange(seen.0, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = Value(now),
            }
        }
    }

    /// As [`age`](Word::age), without regard to uses.
    pub(crate) fn evict(self, frame: u32) -> Swept {
        let seen = self.load();
        match seen.resident_in(frame) {
            None => Swept::Elsewhere,
            Some(0) => self.swap(seen, ABSENT, Swept::Evicted),
            Some(_) => Swept::Pinned,
        }
    }

    /// If the swap fails somebody has just pinned the page, or freed it.
    fn swap(self, seen: Value, next: u64, done: Swept) -> Swept {
        match self
            .0
            .compare_exchange(seen.0, next, Ordering::SeqCst, Ordering::Relaxed)
        {
            Ok(_) => done,
            Err(_) => Swept::Pinned,
        }
    }

    /// Makes the page absent; if it is being loaded, its loader will throw the result away.
    pub(crate) fn discard(self) -> Discarded {
        let mut seen = self.load();
        loop {
            let (next, done) = match seen.0 & STATE {
                ABSENT => return Discarded::Absent,
                LOADING => (seen.0 | DOOMED, Discarded::Doomed),
                _ if seen.pins() > 0 => return Discarded::Pinned(seen.pins()),
                _ => (ABSENT, Discarded::Freed((seen.0 & FRAME) as u32)),
            };
            match self
                .0
                .compare_exchange(seen.0, next, Ordering::SeqCst, Ordering::Relaxed)
            {
                Ok(_) => return done,
                Err(now) => seen = Value(now),
            }
        }
    }
}
