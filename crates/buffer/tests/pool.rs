//! What a pool promises, one by one.

mod source;

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use buffer::{Config, Error, Pool};
use futures::FutureExt;
use source::{PAGE, Patterns, check, now, pool};

fn config(bytes: u64, page_size: usize, nodes: usize) -> Config {
    Config {
        bytes,
        page_size,
        partitions_per_node: 4,
        nodes: vec![None; nodes],
    }
}

fn make(config: &Config, budget: u64) -> Result<Arc<Pool>, Error> {
    let source = Arc::new(Patterns::default());
    Pool::new(config, source, memory::Budget::new(budget))
}

#[test]
fn impossible_shapes_are_refused_with_what_to_do() {
    for page_size in [0, 1000, 2048, 5000, 2 << 20] {
        let error = make(&config(1 << 30, page_size, 1), u64::MAX).unwrap_err();
        assert!(matches!(error, Error::PageSize { .. }), "{error}");
    }
    for nodes in [0, 257] {
        let error = make(&config(1 << 30, PAGE, nodes), u64::MAX).unwrap_err();
        assert!(matches!(error, Error::Nodes { .. }), "{error}");
    }
    let error = make(&config(4 * 8 * 4096 - 1, PAGE, 4), u64::MAX).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a pool of 131071 bytes is too small, it needs at least 131072; raise --pool"
    );
    let error = make(&config(u64::MAX / 2, PAGE, 1), u64::MAX).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert!(error.to_string().contains("lower --pool"), "{error}");
}

#[test]
fn a_size_is_rounded_down_to_whole_frames_on_each_node() {
    let pool = make(&config(3 * 10 * 4096 + 4095, PAGE, 3), u64::MAX).unwrap();
    assert_eq!((pool.frames(), pool.bytes()), (30, 30 * 4096));
    let pool = make(&config(3 * 10 * 4096 - 1, PAGE, 3), u64::MAX).unwrap();
    assert_eq!(pool.frames(), 27);
    assert_eq!(
        pool.statistics().nodes[0].partitions,
        1,
        "8 frames each at least"
    );
}

#[test]
fn the_budget_is_taken_and_given_back() {
    let budget = memory::Budget::new(1 << 20);
    let source = Arc::new(Patterns::default());
    let config = config(1 << 19, PAGE, 2);
    let first = Pool::new(&config, source.clone(), budget.clone()).unwrap();
    let _second = Pool::new(&config, source.clone(), budget.clone()).unwrap();
    assert_eq!(budget.used(), 1 << 20);
    let error = Pool::new(&config, source.clone(), budget.clone()).unwrap_err();
    assert!(matches!(error, Error::Memory { .. }), "{error}");
    drop(first);
    assert_eq!(budget.used(), 1 << 19);
    Pool::new(&config, source, budget).unwrap();
}

#[test]
fn a_page_is_loaded_once_and_then_hit() {
    let (pool, source) = pool(1, 16, 2);
    assert!(pool.try_pin(5).is_none());
    let first = now(pool.pin(5)).unwrap();
    check(5, 0, &first);
    assert_eq!(first.as_ptr() as usize % 64, 0);
    let second = pool.try_pin(5).unwrap();
    assert_eq!(second.as_ptr(), first.as_ptr());
    drop(now(pool.pin(5)).unwrap());
    assert_eq!(source.loads.load(Ordering::SeqCst), 1);
    let statistics = pool.statistics();
    assert_eq!((statistics.hits, statistics.misses), (2, 1));
    assert_eq!((statistics.loads, statistics.pinned), (1, 1));
    assert_eq!(statistics.loaded_bytes, source::length(5) as u64);
    drop((first, second));
    let statistics = pool.statistics();
    assert_eq!((statistics.resident, statistics.pinned), (1, 0));
}

#[test]
fn pages_lie_in_the_memory_of_their_node() {
    let (pool, _) = pool(3, 16, 2);
    let memory: Vec<_> = pool.memory().collect();
    let bytes = memory
        .iter()
        .map(|range| range.end as u64 - range.start as u64);
    assert_eq!(bytes.sum::<u64>(), pool.bytes());
    for page in 0..6 {
        let pin = now(pool.pin(page)).unwrap();
        let inside = memory
            .iter()
            .position(|range| range.contains(&pin.as_ptr()));
        assert_eq!(inside, Some(pin.node()));
    }
}

#[test]
fn page_ids_have_their_full_range() {
    let (pool, _) = pool(1, 8, 1);
    for page in [0, u32::MAX / 2, u32::MAX] {
        check(page, 0, &now(pool.pin(page)).unwrap());
    }
}

#[test]
fn all_who_miss_a_page_share_one_load() {
    let (pool, source) = pool(1, 16, 2);
    source.hold(3);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| check(3, 0, &now(pool.pin(3)).unwrap()));
        }
        while pool.statistics().misses < 8 {
            std::thread::yield_now();
        }
        source.release(3);
    });
    assert_eq!(source.loads.load(Ordering::SeqCst), 1);
}

#[test]
fn a_dropped_loader_leaves_the_page_to_another() {
    let (pool, source) = pool(1, 8, 1);
    source.hold(3);
    let mut loader = Box::pin(pool.pin(3));
    let mut waiter = Box::pin(pool.pin(3));
    assert!(loader.as_mut().now_or_never().is_none());
    assert!(waiter.as_mut().now_or_never().is_none());
    assert_eq!(source.loads.load(Ordering::SeqCst), 1);
    drop(loader);
    source.release(3);
    check(3, 0, &now(waiter).unwrap());
    assert_eq!(source.loads.load(Ordering::SeqCst), 2);
    assert_eq!(pool.statistics().failures, 1);

    // A dropped waiter disturbs nobody.
    source.hold(4);
    let mut loader = Box::pin(pool.pin(4));
    assert!(loader.as_mut().now_or_never().is_none());
    let mut waiter = Box::pin(pool.pin(4));
    assert!(waiter.as_mut().now_or_never().is_none());
    drop(waiter);
    source.release(4);
    check(4, 0, &now(loader).unwrap());
}

#[test]
fn a_loader_that_stands_still_is_replaced() {
    let (pool, source) = pool(1, 8, 1);
    pool.set_patience(Duration::from_millis(50));
    source.hold(3);
    let mut loader = Box::pin(pool.pin(3));
    assert!(loader.as_mut().now_or_never().is_none());
    source.release(3);
    // Nobody polls the loader, and nobody drops it.
    let pin = now(pool.pin(3)).unwrap();
    check(3, 0, &pin);
    assert_eq!(source.loads.load(Ordering::SeqCst), 2);
    assert_eq!(pool.statistics().takeovers, 1);
    // Its frame comes back when it ends; what it gets is the page that is there.
    let late = now(loader).unwrap();
    assert_eq!(late.as_ptr(), pin.as_ptr());
    drop((late, pin));

    // The same where the first is dropped, or fails, after it was replaced.
    for fails in [false, true] {
        let page = 4 + u32::from(fails);
        source.hold(page);
        let mut loader = Box::pin(pool.pin(page));
        assert!(loader.as_mut().now_or_never().is_none());
        source.release(page);
        let pin = now(pool.pin(page)).unwrap();
        if fails {
            source.broken.lock().unwrap().insert(page);
            assert!(now(loader).is_err());
        } else {
            drop(loader);
        }
        check(page, 0, &pin);
        drop(pin);
        check(page, 0, &pool.try_pin(page).unwrap());
    }
    source.broken.lock().unwrap().clear();
    let pins: Vec<_> = (0..8).map(|i| now(pool.pin(50 + i)).unwrap()).collect();
    assert_eq!(pins.len(), 8, "no frame was lost");
}

#[test]
fn dropped_and_failed_loads_lose_no_frames() {
    let (pool, source) = pool(1, 8, 1);
    for page in 0..50 {
        source.hold(page);
        let mut loader = Box::pin(pool.pin(page));
        assert!(loader.as_mut().now_or_never().is_none());
        drop(loader);
        source.release(page);
        source.broken.lock().unwrap().insert(page);
        assert!(now(pool.pin(page)).is_err());
        source.broken.lock().unwrap().remove(&page);
    }
    let pins: Vec<_> = (0..8).map(|page| now(pool.pin(page)).unwrap()).collect();
    for (page, pin) in pins.iter().enumerate() {
        check(page as u32, 0, pin);
    }
}

#[test]
fn a_failed_load_is_told_to_all_who_waited() {
    let (pool, source) = pool(1, 16, 2);
    source.broken.lock().unwrap().insert(3);
    source.hold(3);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let error = now(pool.pin(3)).unwrap_err();
                assert_eq!(error.to_string(), "page 3: checksum of page 3 is wrong");
                assert!(matches!(error, Error::Load { page: 3, .. }));
            });
        }
        while pool.statistics().misses < 4 {
            std::thread::yield_now();
        }
        source.release(3);
    });
    source.broken.lock().unwrap().clear();
    check(3, 0, &now(pool.pin(3)).unwrap());
}

#[test]
fn a_source_that_overstates_a_length_is_an_error() {
    struct Liar;
    impl buffer::Source for Liar {
        fn bucket(&self, _: u32) -> u8 {
            0
        }
        fn load<'a>(
            &'a self,
            _: u32,
            frame: &'a mut [u8],
        ) -> futures::future::BoxFuture<'a, Result<usize, buffer::LoadError>> {
            let len = frame.len() + 1;
            Box::pin(async move { Ok(len) })
        }
    }
    let budget = memory::Budget::new(u64::MAX);
    let pool = Pool::new(&config(8 * 4096, PAGE, 1), Arc::new(Liar), budget).unwrap();
    let error = now(pool.pin(9)).unwrap_err();
    assert!(
        matches!(
            error,
            Error::TooLong {
                page: 9,
                len: 4097,
                ..
            }
        ),
        "{error}"
    );
}

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
fn a_discarded_page_is_gone_unless_pinned() {
    let (pool, source) = pool(1, 8, 1);
    pool.discard(7).unwrap();
    let pin = now(pool.pin(7)).unwrap();
    let second = pool.try_pin(7).unwrap();
    let error = pool.discard(7).unwrap_err();
    assert!(
        matches!(error, Error::Pinned { page: 7, pins: 2 }),
        "{error}"
    );
    drop((pin, second));
    source.versions.lock().unwrap().insert(7, 1);
    pool.discard(7).unwrap();
    assert!(pool.try_pin(7).is_none());
    check(7, 1, &now(pool.pin(7)).unwrap());
}

#[test]
fn a_page_discarded_while_loading_is_loaded_again() {
    let (pool, source) = pool(1, 8, 1);
    source.hold(7);
    let mut loader = Box::pin(pool.pin(7));
    assert!(loader.as_mut().now_or_never().is_none());
    let mut waiter = Box::pin(pool.pin(7));
    assert!(waiter.as_mut().now_or_never().is_none());
    // The first load has read version 0 by now.
    source.versions.lock().unwrap().insert(7, 1);
    pool.discard(7).unwrap();
    source.release(7);
    check(7, 1, &now(loader).unwrap());
    check(7, 1, &now(waiter).unwrap());
}

#[test]
fn clear_empties_what_is_not_pinned() {
    let (pool, _) = pool(2, 16, 2);
    let kept = now(pool.pin(3)).unwrap();
    for page in 0..20 {
        now(pool.pin(page)).unwrap();
    }
    pool.clear();
    assert_eq!(pool.statistics().resident, 1);
    check(3, 0, &kept);
    assert_eq!(pool.statistics().evictions, 0);
    let pins: Vec<_> = (4..34).map(|page| now(pool.pin(page)).unwrap()).collect();
    assert_eq!(pool.statistics().evictions, 0, "all frames were free");
    drop(pins);
}

#[test]
fn owned_pins_are_bounded_and_hold_their_page() {
    let (first, _) = pool(1, 8, 1);
    let (second, _) = pool(1, 8, 1);
    assert_eq!(first.lend_limit(), 2);
    let pin = now(first.pin(0)).unwrap();
    let pin = pin.into_owned(&second).unwrap_err();
    let zero = pin.into_owned(&first).unwrap();
    let one = now(first.pin(1)).unwrap().into_owned(&first).unwrap();
    let pin = now(first.pin(2)).unwrap().into_owned(&first).unwrap_err();
    check(2, 0, &pin);
    assert_eq!(first.statistics().lent, 2);
    drop(one);
    let two = pin.into_owned(&first).unwrap();
    for page in 10..40 {
        now(first.pin(page)).unwrap();
    }
    let lent = std::thread::spawn(move || {
        // The pool lives on in its pins.
        check(0, 0, &zero);
        assert_eq!((zero.page(), zero.node()), (0, 0));
        zero
    });
    drop(first);
    check(2, 0, &two);
    drop(lent.join().unwrap());
}

#[test]
fn pages_lie_on_the_node_of_their_bucket() {
    let (pool, _) = pool(4, 16, 2);
    let mut ranges = vec![(usize::MAX, 0); 4];
    for page in 0..1000u32 {
        let pin = now(pool.pin(page)).unwrap();
        let node = page as usize % 256 % 4;
        assert_eq!(pin.node(), node);
        assert_eq!(pool.node_of(page as u8), node);
        let start = pin.as_ptr() as usize;
        let (low, high) = ranges[node];
        ranges[node] = (start.min(low), (start + PAGE).max(high));
    }
    // No node ever used more than its own 16 frames, and no two share any.
    for &(low, high) in &ranges {
        assert_eq!(high - low, 16 * PAGE);
    }
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    for node in pool.statistics().nodes {
        assert_eq!((node.frames, node.resident, node.partitions), (16, 16, 2));
        assert_eq!((node.loads, node.evictions), (250, 234));
    }
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
    let frames = 1 << 14;
    let (pool, _) = pool(1, frames, 1);
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
    assert!(most <= 1025, "{most} frames for one eviction");
    // What fell out are the least used of those the hand passed.
    let gone = (0..frames).filter(|&page| !pool.is_resident(page));
    assert!(gone.clone().count() > 0 && gone.clone().all(|page| page % 7 == 0));
    // All pinned but one page, which is found wherever the hand stands.
    let (pool, _) = source::pool(1, 3000, 1);
    let mut pins: Vec<_> = (0..3000).map(|page| now(pool.pin(page)).unwrap()).collect();
    for left in [0, 1500, 2998] {
        drop(pins.swap_remove(left));
        pins.push(now(pool.pin(5000 + left as u32)).unwrap());
    }
    assert_eq!(pool.statistics().evictions, 3);
}

fn until(what: &str, reached: impl Fn() -> bool) {
    let begin = Instant::now();
    while !reached() {
        assert!(begin.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn prefetched_pages_are_hits() {
    let (pool, source) = pool(2, 32, 2);
    source.broken.lock().unwrap().insert(3);
    pool.prefetch(&[1, 2, 3, 4]);
    until("three pages", || pool.statistics().prefetched == 3);
    assert!(pool.try_pin(1).is_some() && pool.try_pin(4).is_some());
    assert!(pool.try_pin(3).is_none());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async { pool.prefetch(&[1, 2, 10, 11]) });
    until("two more", || pool.statistics().prefetched == 5);
    assert_eq!(pool.statistics().misses, 0);
    // A whole table does not push everything else out.
    let many: Vec<u32> = (100..1000).collect();
    pool.prefetch(&many);
    until("a quarter of the frames", || {
        pool.statistics().prefetched == 5 + 16
    });
}

#[test]
fn prefetch_waits_for_nobody() {
    let (pool, source) = pool(1, 8, 1);
    let pins: Vec<_> = (0..8).map(|page| now(pool.pin(page)).unwrap()).collect();
    pool.prefetch(&[20, 21]);
    until("giving up", || pool.statistics().failures == 2);
    assert_eq!(pool.statistics().waits, 0);
    drop(pins);
    // A prefetch under way does not keep the pool alive for longer than its load.
    source.hold(30);
    pool.prefetch(&[30, 31]);
    until("begin", || source.waiting.load(Ordering::SeqCst) == 1);
    let weak = Arc::downgrade(&pool);
    drop(pool);
    source.release(30);
    until("end", || weak.upgrade().is_none());
}

#[test]
fn who_joins_a_prefetch_that_fails_tries_for_himself() {
    let (pool, source) = pool(1, 8, 1);
    source.broken.lock().unwrap().insert(3);
    source.hold(3);
    pool.prefetch(&[3]);
    until("the prefetch", || {
        source.waiting.load(Ordering::SeqCst) == 1
    });
    let mut joined: Vec<_> = (0..2).map(|_| Box::pin(pool.pin(3))).collect();
    for pin in &mut joined {
        assert!(pin.as_mut().now_or_never().is_none());
    }
    source.release(3);
    until("its failure", || pool.statistics().failures == 1);
    // The second attempt would succeed.
    source.broken.lock().unwrap().clear();
    for pin in joined {
        check(3, 0, &now(pin).unwrap());
    }
    assert_eq!(source.loads.load(Ordering::SeqCst), 2);

    // Where it fails again, that is told, to all.
    source.broken.lock().unwrap().insert(4);
    source.hold(4);
    pool.prefetch(&[4]);
    until("the prefetch", || {
        source.waiting.load(Ordering::SeqCst) == 1
    });
    let mut joined: Vec<_> = (0..2).map(|_| Box::pin(pool.pin(4))).collect();
    for pin in &mut joined {
        assert!(pin.as_mut().now_or_never().is_none());
    }
    source.release(4);
    until("its failure", || pool.statistics().failures == 2);
    let outcomes = now(futures::future::join_all(joined));
    assert!(
        outcomes
            .iter()
            .all(|pin| matches!(pin, Err(Error::Load { page: 4, .. })))
    );
}

#[test]
fn one_thread_loads_ahead_outside_a_runtime() {
    #[derive(Default)]
    struct Threads(Mutex<HashSet<ThreadId>>);
    impl buffer::Source for Threads {
        fn bucket(&self, _: u32) -> u8 {
            0
        }
        fn load<'a>(
            &'a self,
            page: u32,
            frame: &'a mut [u8],
        ) -> futures::future::BoxFuture<'a, Result<usize, buffer::LoadError>> {
            self.0.lock().unwrap().insert(std::thread::current().id());
            assert!(page != 7, "a bug in a source");
            Box::pin(async move { Ok(source::fill(page, 0, frame)) })
        }
    }
    let source = Arc::new(Threads::default());
    let budget = memory::Budget::new(u64::MAX);
    let pool = Pool::new(&config(64 * 4096, PAGE, 1), source.clone(), budget).unwrap();
    for page in 0..32 {
        pool.prefetch(&[page]);
        let done = || pool.statistics().prefetched + pool.statistics().failures;
        until("a page", || done() == u64::from(page) + 1);
    }
    assert_eq!(
        pool.statistics().failures,
        1,
        "the panic cost its own page only"
    );
    assert_eq!(source.0.lock().unwrap().len(), 1);
}
