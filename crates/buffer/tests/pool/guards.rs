//! Optimistic and exclusive guards.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use buffer::Error;
use futures::FutureExt;
use proptest::prelude::*;

use crate::source::{PAGE, check, length, now, pool};

/// A copy of a resident page.
fn copy(pool: &buffer::Pool, page: u32) -> Option<Vec<u8>> {
    pool.read_optimistic(page, |guard| {
        let mut bytes = vec![0; guard.len()];
        assert!(guard.copy(0, &mut bytes));
        bytes
    })
}

#[test]
fn an_optimistic_read_gives_the_page_and_holds_nothing() {
    let (pool, _) = pool(1, 8, 1);
    assert!(pool.optimistic(1).is_none(), "not resident");
    drop(now(pool.pin(1)).unwrap());
    let before = pool.statistics();
    check(1, 0, &copy(&pool, 1).unwrap());
    assert_eq!(pool.statistics(), before, "nothing was counted");

    let guard = pool.optimistic(1).unwrap();
    assert_eq!((guard.page(), guard.len()), (1, length(1)));
    let word = crate::source::word(1, 0, 3);
    assert_eq!(guard.u64_at(24), Some(word));
    let mut odd = [0; 13];
    assert!(guard.copy(5, &mut odd));
    assert_eq!(odd, now(pool.pin(1)).unwrap()[5..18]);
    // Beyond its length there is nothing.
    assert_eq!(guard.u64_at(length(1) - 7), None);
    assert_eq!(guard.u64_at(usize::MAX), None);
    assert!(!guard.copy(length(1) - 12, &mut odd));
    assert!(!guard.copy(usize::MAX, &mut odd));
    assert!(guard.is_valid(), "a pin changes nothing");
}

#[test]
fn an_evicted_page_is_not_valid_even_when_it_is_back() {
    let (pool, source) = pool(1, 8, 1);
    for version in 0..3 {
        source.versions.lock().unwrap().insert(1, version);
        pool.discard(1).unwrap();
        drop(now(pool.pin(1)).unwrap());
        let guard = pool.optimistic(1).unwrap();
        assert!(guard.is_valid());
        // Back in the same frame, the only free one.
        pool.discard(1).unwrap();
        assert!(!guard.is_valid());
        drop(now(pool.pin(1)).unwrap());
        assert!(!guard.is_valid());
        check(1, version, &copy(&pool, 1).unwrap());
    }
}

#[test]
fn an_exclusive_guard_is_alone_and_changes_the_page() {
    let (pool, _) = pool(1, 8, 1);
    let mut guard = now(pool.exclusive(1)).unwrap();
    assert_eq!((guard.page(), guard.len(), guard.node()), (1, length(1), 0));
    assert!(pool.try_pin(1).is_none() && pool.try_exclusive(1).is_none());
    assert!(pool.optimistic(1).is_none());
    assert!(matches!(
        pool.discard(1),
        Err(Error::Pinned { pins: 1, .. })
    ));
    pool.clear();
    assert_eq!(pool.statistics().pinned, 1);
    assert_eq!(pool.check(), Ok(()));
    guard[0..8].copy_from_slice(b"changed!");
    let mut waits = Box::pin(pool.pin(1));
    assert!(waits.as_mut().now_or_never().is_none());
    drop(guard);
    assert_eq!(now(waits).unwrap()[0..8], *b"changed!");

    let before = pool.optimistic(1).unwrap();
    drop(pool.try_exclusive(1).unwrap());
    assert!(!before.is_valid(), "the version rises on release");
    assert_eq!(copy(&pool, 1).unwrap()[0..8], *b"changed!");
    assert_eq!(pool.check(), Ok(()));
}

#[test]
fn who_wants_a_page_alone_waits_for_its_pins() {
    let (pool, _) = pool(1, 8, 1);
    let (one, two) = (now(pool.pin(1)).unwrap(), now(pool.pin(1)).unwrap());
    let mut waits = Box::pin(pool.exclusive(1));
    assert!(waits.as_mut().now_or_never().is_none());
    drop(one);
    assert!(waits.as_mut().now_or_never().is_none());
    drop(two);
    let guard = now(waits).unwrap();
    // Not for ever, on either side.
    pool.set_patience(Duration::from_millis(20));
    let error = now(pool.pin(1)).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Held {
                page: 1,
                milliseconds: 20
            }
        ),
        "{error}"
    );
    drop(guard);
    let pin = now(pool.pin(1)).unwrap();
    let error = now(pool.exclusive(1)).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Held {
                page: 1,
                milliseconds: 20
            }
        ),
        "{error}"
    );
    check(1, 0, &pin);
}

#[test]
fn threads_that_evict_change_and_read_never_see_a_mixture() {
    // Every word of a page is the same: its number and how often it was changed since it was loaded.
    let (pool, _) = pool(1, 8, 2);
    let (ends, read) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(3);
                while !ends.load(Ordering::Relaxed) {
                    let page = random.u32(0..12) * 16;
                    let words = pool.read_optimistic(page, |guard| {
                        let mut bytes = [0; PAGE];
                        assert!(guard.copy(0, &mut bytes), "all are full");
                        bytes
                    });
                    let Some(bytes) = words else { continue };
                    let first = u64::from_le_bytes(bytes[..8].try_into().unwrap());
                    if first == crate::source::word(page, 0, 0) {
                        check(page, 0, &bytes);
                    } else {
                        assert_eq!(first >> 32, u64::from(page));
                        assert!(bytes.chunks(8).all(|word| word == &bytes[..8]));
                    }
                    read.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut random = fastrand::Rng::with_seed(5);
        for round in 0..20_000u64 {
            let page = random.u32(0..12) * 16;
            if random.bool() {
                drop(now(pool.pin(page)).unwrap());
                continue;
            }
            let mut guard = now(pool.exclusive(page)).unwrap();
            let word = u64::from(page) << 32 | round;
            for chunk in guard.chunks_mut(8) {
                chunk.copy_from_slice(&word.to_le_bytes());
            }
        }
        while read.load(Ordering::Relaxed) < 100 {
            std::thread::yield_now();
        }
        ends.store(true, Ordering::Relaxed);
    });
    assert!(pool.statistics().evictions > 100);
    assert_eq!(pool.check(), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A guard is valid exactly as long as its page was neither changed nor taken out.
    #[test]
    fn guards_know_what_happened(steps in proptest::collection::vec((0u8..5, 0u32..12), 1..80)) {
        let (pool, _) = pool(1, 8, 1);
        let mut guards = Vec::new();
        for (what, page) in steps {
            let before: Vec<bool> = (0..12).map(|page| pool.is_resident(page)).collect();
            match what {
                0 | 1 => drop(now(pool.pin(page)).unwrap()),
                2 => pool.discard(page).unwrap(),
                3 => drop(pool.try_exclusive(page)),
                _ => guards.extend(pool.optimistic(page).map(|guard| (guard, true))),
            }
            for (guard, valid) in &mut guards {
                let changed = what == 3 && guard.page() == page && before[page as usize];
                *valid &= pool.is_resident(guard.page()) && !changed;
                prop_assert_eq!(guard.is_valid(), *valid, "page {}", guard.page());
            }
        }
        prop_assert_eq!(pool.check(), Ok(()));
    }
}
