//! The resident memory of this process, watched against a ceiling.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a reading of the resident memory stays valid: at one gigabyte per second it grows by ten megabytes in that
/// time.
const BELIEVED: Duration = Duration::from_millis(10);

/// Has freed memory given back to the system when the process has more than it should.
#[derive(Debug)]
pub(crate) struct Watch {
    statm: File,
    ceiling: u64,
    page: u64,
    reclaim: fn(),
    since: Instant,
    /// Until when the last reading is valid, in nanoseconds since `since`.
    until: AtomicU64,
}

impl Watch {
    /// A watch over at most `ceiling` bytes, which calls `reclaim` to have freed memory given back; `None` if the system
    /// does not tell what a process has.
    pub(crate) fn new(ceiling: u64, reclaim: fn()) -> Option<Watch> {
        // SAFETY: asks for a constant of the system.
        let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
        let watch = Watch {
            statm: File::open("/proc/self/statm").ok()?,
            ceiling,
            page,
            reclaim,
            since: Instant::now(),
            until: AtomicU64::new(0),
        };
        watch.resident().map(|_| watch)
    }

    /// Reads the resident memory unless the last reading is still valid, and calls `reclaim` where it is above the
    /// ceiling. Costs a reading of the clock, and at times a system call.
    pub(crate) fn look(&self) {
        let now = self.since.elapsed();
        let until = self.until.load(Ordering::Relaxed);
        let next = (now + BELIEVED).as_nanos() as u64;
        // One of those who find the last look out of date takes the next; relaxed, as it guards no other data.
        let mine = now.as_nanos() as u64 >= until
            && self
                .until
                .compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if mine && self.resident().is_some_and(|bytes| bytes > self.ceiling) {
            (self.reclaim)();
        }
    }

    /// Bytes that the process has in memory.
    fn resident(&self) -> Option<u64> {
        let mut text = [0u8; 128];
        let read = self.statm.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..read]).ok()?;
        let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some(pages * self.page)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::Budget;

    #[test]
    fn what_a_process_has_is_within_reason() {
        fn never() {
            panic!("nobody has so much");
        }
        let watch = Watch::new(u64::MAX, never).unwrap();
        let resident = watch.resident().unwrap();
        assert!((1 << 20..1 << 40).contains(&resident), "{resident}");
        watch.look();
    }

    #[test]
    fn a_process_that_has_more_gives_back_and_goes_on() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        fn give_back() {
            CALLS.fetch_add(1, Ordering::Relaxed);
        }
        // Nobody can have so little.
        let budget = Budget::new(1 << 16);
        budget.watch(0, give_back);
        budget.take(1).unwrap();
        budget.take(1).unwrap();
        assert_eq!(budget.used(), 2, "what is counted decides what is granted");
        assert!(CALLS.load(Ordering::Relaxed) >= 1);
    }
}
