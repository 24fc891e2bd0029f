//! Reading through every prefetcher, on pools down to the smallest.

mod source;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use buffer::{Config, FRAMES_PER_NODE, Policy, Pool, Prefetching, Reader};
use futures::FutureExt;
use proptest::prelude::*;
use source::{PAGE, Patterns, check, now};

fn make(frames: usize, replacement: Policy, prefetch: Prefetching) -> (Arc<Pool>, Arc<Patterns>) {
    let source = Arc::new(Patterns::default());
    let config = Config {
        bytes: (frames * PAGE) as u64,
        page_size: PAGE,
        partitions_per_node: 2,
        nodes: vec![None],
        placement: buffer::Placement::default(),
        replacement,
        prefetch,
    };
    let pool = Pool::new(&config, source.clone(), memory::Budget::new(u64::MAX));
    (pool.unwrap(), source)
}

fn until(what: &str, reached: impl Fn() -> bool) {
    let begin = Instant::now();
    while !reached() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Every prefetched page was used, left without, or is still there.
fn check_counters(pool: &Pool) {
    until("all prefetched pages have a fate", || {
        let now = pool.statistics();
        now.prefetched == now.prefetch_used + now.prefetch_wasted + now.prefetch_unused as u64
    });
    let now = pool.statistics();
    assert!(now.prefetch_late <= now.prefetched);
    assert!(
        now.accuracy()
            .is_none_or(|share| (0.0..=1.0).contains(&share))
    );
    assert!(
        now.coverage()
            .is_none_or(|share| (0.0..=1.0).contains(&share))
    );
}

#[derive(Debug, Clone)]
enum Step {
    /// Reads so many pages from one on, at this distance.
    Run(u32, u32, u32),
    Pin(u32),
    /// Keeps a pin for a while.
    Keep(u32),
    LetGo(usize),
    Discard(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let page = 0..300u32;
    prop_oneof![
        4 => (page.clone(), 1..40u32, 1..9u32).prop_map(|(from, len, far)| Step::Run(from, len, far)),
        6 => page.clone().prop_map(Step::Pin),
        2 => page.clone().prop_map(Step::Keep),
        2 => (0..8usize).prop_map(Step::LetGo),
        1 => page.prop_map(Step::Discard),
    ]
}

/// All but one frame may stay pinned: no prefetch takes the last from who wants it.
fn run(frames: usize, policy: Policy, kind: Prefetching, steps: &[Step]) {
    let (pool, source) = make(frames, policy, kind);
    source.yields.store(1, Ordering::Relaxed);
    let mut reader = Reader::new(&pool);
    let mut kept = Vec::new();
    for step in steps {
        match *step {
            Step::Run(from, len, far) => {
                for page in (0..len).map(|step| from + step * far) {
                    check(page, 0, &now(reader.pin(page)).unwrap());
                }
            }
            Step::Pin(page) => check(page, 0, &now(reader.pin(page)).unwrap()),
            Step::Keep(page) if kept.len() + 1 < frames => {
                kept.push(now(reader.pin(page)).unwrap());
            }
            Step::LetGo(at) if at < kept.len() => drop(kept.swap_remove(at)),
            Step::Keep(_) | Step::LetGo(_) => {}
            // Pinned pages stay, and those of a prefetch under way are dropped when it ends.
            Step::Discard(page) => drop(pool.discard(page)),
        }
    }
    for pin in &kept {
        check(pin.page(), 0, pin);
    }
    drop(kept);
    check_counters(&pool);
    // Busy as long as a prefetch is under way.
    until("a sound pool", || pool.check() == Ok(()));
    assert_eq!(pool.statistics().takeovers, 0, "somebody was not woken");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn every_prefetcher_gives_the_right_pages(
        steps in prop::collection::vec(step(), 1..40),
        more in prop_oneof![Just(0usize), 1..60usize],
    ) {
        for policy in Policy::ALL {
            for kind in Prefetching::ALL {
                run(FRAMES_PER_NODE + more, policy, kind, &steps);
            }
        }
    }
}

#[test]
fn many_readers_prefetch_on_the_smallest_pool() {
    for kind in Prefetching::ALL {
        let (pool, source) = make(FRAMES_PER_NODE, Policy::default(), kind);
        source.yields.store(1, Ordering::Relaxed);
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let pool = &pool;
                scope.spawn(move || {
                    let mut reader = Reader::new(pool);
                    let mut random = fastrand::Rng::with_seed(u64::from(thread));
                    for step in 0..1500 {
                        let page = match step / 100 % 3 {
                            0 => thread * 50 + step % 100,
                            1 => step % 100 * 3,
                            _ => random.u32(..1000),
                        };
                        let pin = now(reader.pin(page)).unwrap();
                        check(page, 0, &pin);
                    }
                });
            }
        });
        check_counters(&pool);
        assert_eq!(pool.statistics().takeovers, 0, "{kind}");
        until("a sound pool", || pool.check() == Ok(()));
    }
}

/// Prefetches go on between the steps, in this very thread: how far they lag behind depends on nothing else.
#[test]
fn a_working_set_survives_a_scan_that_prefetches() {
    const HOT: u32 = 24;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _within = runtime.enter();
    let let_prefetches_go_on = || runtime.block_on(tokio::task::yield_now());
    for policy in Policy::ALL {
        for kind in [Prefetching::Next, Prefetching::Stride, Prefetching::Stream] {
            let (pool, _) = make(128, policy, kind);
            // Long enough for every policy to learn what is hot.
            for round in 0..10 {
                for page in 0..HOT {
                    now(pool.pin(page)).unwrap();
                    now(pool.pin(10_000 + round * HOT + page)).unwrap();
                }
            }
            let mut scan = Reader::new(&pool);
            let before = pool.statistics();
            let mut missed = 0;
            for step in 0..2000 {
                // Once in 48 pages of the scan: a hand needs longer to come round.
                let hot = step % HOT;
                missed += u32::from(!pool.is_resident(hot));
                check(hot, 0, &now(pool.pin(hot)).unwrap());
                for page in [2 * step, 2 * step + 1] {
                    now(scan.pin(100_000 + page)).unwrap();
                    let_prefetches_go_on();
                }
            }
            let after = pool.statistics();
            assert!(after.prefetched > before.prefetched, "{policy:?}, {kind}");
            // SIEVE resists no scan, and 2Q forgets uses in its first queue: what has left comes back.
            let most = match policy {
                Policy::Clock | Policy::S3Fifo => 60,
                _ => 400,
            };
            assert!(missed < most, "{policy:?}, {kind}: {missed} of 2000");
            check_counters(&pool);
        }
    }
}

#[test]
fn a_prefetch_takes_no_frame_of_a_page_that_is_wanted_again() {
    let (pool, _) = make(64, Policy::Clock, Prefetching::None);
    for _ in 0..4 {
        for page in 0..64 {
            now(pool.pin(page)).unwrap();
        }
    }
    pool.prefetch(&[100, 101, 102]);
    until("three are dropped", || {
        pool.statistics().prefetch_dropped == 3
    });
    assert_eq!(pool.statistics().prefetched, 0);
    assert!((0..64).all(|page| pool.is_resident(page)));
    // Nor that of another prefetch: one page makes room, and only for one.
    pool.discard(7).unwrap();
    pool.prefetch(&[103]);
    until("one is loaded", || pool.statistics().prefetched == 1);
    pool.prefetch(&[104]);
    until("one is dropped", || pool.statistics().prefetch_dropped == 4);
    assert!(pool.is_resident(103));
}

#[test]
fn accuracy_and_coverage_are_counted() {
    let (pool, source) = make(64, Policy::Clock, Prefetching::None);
    assert_eq!(
        (pool.statistics().accuracy(), pool.statistics().coverage()),
        (None, None)
    );
    pool.prefetch(&[1, 2, 3, 4]);
    until("four are loaded", || pool.statistics().prefetched == 4);
    assert_eq!(pool.statistics().prefetch_unused, 4);
    now(pool.pin(1)).unwrap();
    let held = now(pool.pin(2)).unwrap();
    assert_eq!(pool.statistics().prefetch_used, 2);
    drop(held);
    // One is discarded before it is used, one after.
    pool.discard(3).unwrap();
    pool.discard(1).unwrap();
    // One is asked for before it has come.
    source.hold(9);
    pool.prefetch(&[9]);
    until("it begins", || source.waiting.load(Ordering::SeqCst) == 1);
    let mut early = Box::pin(pool.pin(9));
    assert!(early.as_mut().now_or_never().is_none());
    source.release(9);
    drop(now(early).unwrap());
    // And one is missed.
    now(pool.pin(50)).unwrap();
    let statistics = pool.statistics();
    assert_eq!(statistics.prefetched, 5);
    assert_eq!(statistics.prefetch_used, 3);
    assert_eq!(statistics.prefetch_late, 1);
    assert_eq!(statistics.prefetch_wasted, 1);
    assert_eq!(statistics.prefetch_unused, 1);
    assert_eq!(statistics.accuracy(), Some(0.6));
    assert_eq!(
        statistics.coverage(),
        Some(0.5),
        "two of four: 9 and 50 were waited for"
    );
    pool.clear();
    assert_eq!(pool.statistics().prefetch_wasted, 2);
}
