//! Frames: waiting for one, borrowing, evicting.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use buffer::{Config, Error, Placement, Policy, Pool};

use crate::source::{PAGE, Patterns, check, now, pool};

#[test]
fn exhaustion_is_an_error_within_bounded_time() {
    let (pool, _) = pool(2, 8, 1);
    pool.set_patience(Duration::from_millis(100));
    let mut pins: Vec<_> = (0..16).map(|i| now(pool.pin(i)).unwrap()).collect();
    let begin = Instant::now();
    let error = now(pool.pin(100)).unwrap_err();
    let waited = begin.elapsed();
    assert!(waited >= Duration::from_millis(100), "{waited:?}");
    assert!(waited < Duration::from_secs(3), "{waited:?}");
    assert_eq!(
        error.to_string(),
        "page 100: 16 of the 16 frames of the pool are in use and none became free; the pool of \
         65536 bytes is smaller than this query needs; raise --pool"
    );
    // One frame on the other node is enough.
    let other = pins.iter().position(|pin| pin.node() == 1).unwrap();
    pins.swap_remove(other);
    check(100, 0, &now(pool.pin(100)).unwrap());
    drop(pins);
    check(101, 0, &now(pool.pin(101)).unwrap());
    assert_eq!(pool.statistics().waits, 1);
}

#[test]
fn a_page_borrows_a_frame_where_its_node_has_none() {
    let (pool, _) = pool(3, 16, 2);
    // All of node 0, and nothing elsewhere; then half of node 1 too.
    let pins: Vec<_> = (0..16).map(|i| now(pool.pin(i * 3)).unwrap()).collect();
    assert!(pins.iter().all(|pin| pin.node() == 0));
    assert_eq!(pool.statistics().borrowed, 0);
    let more: Vec<_> = (16..48).map(|i| now(pool.pin(i * 3)).unwrap()).collect();
    for pin in &more {
        check(pin.page(), 0, pin);
        assert_ne!(pin.node(), 0, "where it says it lies");
    }
    let statistics = pool.statistics();
    assert_eq!((statistics.pinned, statistics.waits), (48, 0));
    assert_eq!(statistics.borrowed, 32);
    assert_eq!(statistics.nodes[0].borrowed, 32);
    assert_eq!(statistics.evictions, 0);
    // A resident page that nobody has pinned makes room for a page of another node too.
    drop(more);
    let again: Vec<_> = (48..80).map(|i| now(pool.pin(i * 3)).unwrap()).collect();
    assert_eq!(pool.statistics().evictions, 32);
    drop((pins, again));
    // With room at home, a page comes home.
    pool.clear();
    assert_eq!(now(pool.pin(243)).unwrap().node(), 0);
}

#[test]
fn a_bound_pool_takes_no_frame_of_another_node() {
    let config = Config {
        placement: Placement::Bind,
        ..crate::config(2 * 8 * PAGE as u64, PAGE, 2)
    };
    let (source, budget) = (Arc::new(Patterns::default()), memory::Budget::new(1 << 30));
    let pool = Pool::new(&config, source, budget).unwrap();
    pool.set_patience(Duration::from_millis(20));
    // All of node 0; node 1 is empty.
    let pins: Vec<_> = (0..8).map(|i| now(pool.pin(i * 2)).unwrap()).collect();
    let error = now(pool.pin(16)).unwrap_err();
    let of_node = (8, 8, 8 * PAGE as u64);
    assert!(
        matches!(error, Error::Exhausted { frames, pinned, bytes, .. } if (frames, pinned, bytes) == of_node),
        "{error:?}"
    );
    assert_eq!(now(pool.pin(1)).unwrap().node(), 1);
    drop(pins);
    assert_eq!(now(pool.pin(16)).unwrap().node(), 0);
    assert_eq!(pool.statistics().borrowed, 0);
}

#[test]
fn wherever_memory_comes_from_pages_are_what_they_are() {
    for placement in [Placement::Interleave, Placement::FirstUse, Placement::Bind] {
        let config = Config {
            placement,
            nodes: vec![Some(0), Some(0)],
            ..crate::config(2 * 8 * PAGE as u64, PAGE, 2)
        };
        let (source, budget) = (Arc::new(Patterns::default()), memory::Budget::new(1 << 30));
        let pool = Pool::new(&config, source, budget).unwrap();
        for page in 0..100 {
            check(page, 0, &now(pool.pin(page)).unwrap());
        }
        pool.check().unwrap();
    }
}

#[test]
fn an_unpin_on_any_node_wakes_who_waits() {
    let (pool, _) = pool(2, 8, 1);
    let mut pins: Vec<_> = (0..16).map(|i| now(pool.pin(i)).unwrap()).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| check(100, 0, &now(pool.pin(100)).unwrap()));
        while pool.statistics().waits == 0 {
            std::thread::yield_now();
        }
        let other = pins.iter().position(|pin| pin.node() == 1).unwrap();
        pins.swap_remove(other);
    });
}

#[test]
fn those_who_wait_for_a_frame_get_the_next_free_one() {
    let (pool, _) = pool(1, 8, 1);
    let mut pins: Vec<_> = (0..8).map(|i| now(pool.pin(i)).unwrap()).collect();
    std::thread::scope(|scope| {
        for page in 100..106 {
            let pool = &pool;
            scope.spawn(move || check(page, 0, &now(pool.pin(page)).unwrap()));
        }
        while pool.statistics().waits < 6 {
            std::thread::yield_now();
        }
        // One frame for six: each of them frees it for the next.
        pins.pop();
    });
    assert_eq!(pool.statistics().pinned, 7);
}

#[test]
fn tasks_that_block_each_other_are_not_all_given_up() {
    // Eight tasks hold a frame each and want a second one: no more than all but a few may fail.
    let (pool, _) = pool(1, 8, 1);
    pool.set_patience(Duration::from_millis(500));
    let held = std::sync::Barrier::new(8);
    let failed = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for task in 0..8 {
            let (pool, held, failed) = (&pool, &held, &failed);
            scope.spawn(move || {
                let _first = now(pool.pin(task)).unwrap();
                held.wait();
                if now(pool.pin(100 + task)).is_err() {
                    failed.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    let failed = failed.into_inner();
    assert!((1..8).contains(&failed), "{failed} failed");
}

#[test]
fn pages_of_one_partition_may_fill_the_node() {
    let (pool, _) = pool(1, 32, 4);
    pool.set_patience(Duration::from_millis(50));
    let pins: Vec<_> = (0..32).map(|i| now(pool.pin(i * 4)).unwrap()).collect();
    assert!(matches!(
        now(pool.pin(1)),
        Err(Error::Exhausted {
            frames: 32,
            pinned: 32,
            ..
        })
    ));
    drop(pins);
    check(1, 0, &now(pool.pin(1)).unwrap());
}

#[test]
fn used_pages_outlive_a_scan() {
    let (pool, _) = pool(1, 16, 1);
    for _ in 0..8 {
        now(pool.pin(0)).unwrap();
    }
    for page in 100..150 {
        now(pool.pin(page)).unwrap();
        now(pool.pin(0)).unwrap();
    }
    assert_eq!(pool.statistics().nodes[0].misses, 51, "page 0 stayed");
    // Not used any more, it goes: nothing stays for ever.
    for page in 200..400 {
        now(pool.pin(page)).unwrap();
    }
    assert!(!pool.is_resident(0));
}

/// In a full pool whose pages all count as used, one eviction looks at a bounded number of frames.
#[test]
fn an_eviction_looks_at_few_frames() {
    for policy in Policy::ALL {
        looks_at_few_frames(policy);
    }
    // All pinned but one page, which is found wherever the hand stands.
    let (pool, _) = pool(1, 3000, 1);
    let mut pins: Vec<_> = (0..3000).map(|page| now(pool.pin(page)).unwrap()).collect();
    for left in [0, 1500, 2998] {
        drop(pins.swap_remove(left));
        pins.push(now(pool.pin(5000 + left as u32)).unwrap());
    }
    assert_eq!(pool.statistics().evictions, 3);
}

fn looks_at_few_frames(replacement: Policy) {
    let frames = 1 << 14;
    let config = Config {
        bytes: (frames * PAGE) as u64,
        page_size: PAGE,
        partitions_per_node: 1,
        nodes: vec![None],
        placement: Placement::default(),
        replacement,
        prefetch: buffer::Prefetching::default(),
    };
    let source = Arc::new(Patterns::default());
    let pool = Pool::new(&config, source, memory::Budget::new(u64::MAX)).unwrap();
    let frames = frames as u32;
    for page in 0..frames {
        now(pool.pin(page)).unwrap();
        // Used as often as can be counted.
        for _ in 0..if page % 7 == 0 { 2 } else { 6 } {
            drop(pool.try_pin(page).unwrap());
        }
    }
    assert_eq!(pool.statistics().looks, 0, "nothing was evicted yet");
    let mut most = 0;
    for page in frames..frames + 300 {
        let before = pool.statistics().looks;
        now(pool.pin(page)).unwrap();
        most = most.max(pool.statistics().looks - before);
    }
    assert_eq!(pool.statistics().evictions, 300);
    assert!(
        most <= 1025,
        "{replacement:?}: {most} frames for one eviction"
    );
    // Under the clock what fell out are the least used of those the hand passed.
    let mut gone = (0..frames)
        .filter(|&page| !pool.is_resident(page))
        .peekable();
    assert!(gone.peek().is_some(), "{replacement:?}");
    if replacement == Policy::Clock {
        assert!(gone.all(|page| page % 7 == 0));
    }
}
