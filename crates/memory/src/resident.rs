//! What this process has in memory, watched against a ceiling.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long what was seen is believed: at a gigabyte a second, ten megabytes come in that time.
const BELIEVED: Duration = Duration::from_millis(10);

/// Says whether the process has more in memory than it may. Asking costs a look at the clock, and a system call where the
/// last was a while ago.
#[derive(Debug)]
pub(crate) struct Watch {
    statm: File,
    ceiling: u64,
    page: u64,
    reclaim: fn(),
    since: Instant,
    /// Until when the last look is believed, in nanoseconds since `since`.
    until: AtomicU64,
    /// What was in memory beyond the ceiling when it was last looked at, in all; 0 if nothing was.
    excess: AtomicU64,
}

impl Watch {
    /// A watch over at most `ceiling` bytes, which calls `reclaim` to have freed memory given back to the system; `None`
    /// if the system does not tell what a process has.
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
            excess: AtomicU64::new(0),
        };
        watch.resident().map(|_| watch)
    }

    /// If the process has more in memory than the ceiling though all that is free was given back: how much it has.
    pub(crate) fn excess(&self) -> Option<u64> {
        let now = self.since.elapsed();
        let until = self.until.load(Ordering::Relaxed);
        let next = (now + BELIEVED).as_nanos() as u64;
        // One of those who find it out of date looks again; relaxed, as the counters guard no other data.
        let mine = now.as_nanos() as u64 >= until
            && self
                .until
                .compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if mine {
            self.excess.store(self.look(), Ordering::Relaxed);
        }
        match self.excess.load(Ordering::Relaxed) {
            0 => None,
            excess => Some(excess),
        }
    }

    fn look(&self) -> u64 {
        let over = || self.resident().filter(|bytes| *bytes > self.ceiling);
        if over().is_none() {
            return 0;
        }
        (self.reclaim)();
        over().unwrap_or(0)
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
    use super::*;
    use crate::Budget;

    fn nothing() {}

    #[test]
    fn what_a_process_has_is_within_reason() {
        let watch = Watch::new(u64::MAX, nothing).unwrap();
        let resident = watch.resident().unwrap();
        assert!((1 << 20..1 << 40).contains(&resident), "{resident}");
        assert_eq!(watch.excess(), None);
    }

    #[test]
    fn a_process_that_has_more_gets_nothing() {
        let budget = Budget::new(1 << 30);
        budget.take(1).unwrap();
        budget.watch(0, nothing);
        budget.take(1).unwrap();
        // More than this test has only because nobody can have so little.
        let full = Budget::new(1 << 16);
        full.watch(0, nothing);
        let error = full.take(1).unwrap_err().to_string();
        assert!(error.contains("of 65536"), "{error}");
        assert_eq!(full.used(), 0);
    }

    #[test]
    fn what_is_given_back_in_time_is_no_excess() {
        static MAPPED: std::sync::Mutex<Vec<u8>> = std::sync::Mutex::new(Vec::new());
        fn give_back() {
            *MAPPED.lock().unwrap() = Vec::new();
        }
        let before = Watch::new(u64::MAX, nothing).unwrap().resident().unwrap();
        *MAPPED.lock().unwrap() = vec![1; 256 << 20];
        let watch = Watch::new(before + (128 << 20), give_back).unwrap();
        assert_eq!(watch.excess(), None, "given back when it was looked at");
        assert!(MAPPED.lock().unwrap().is_empty());
    }
}
