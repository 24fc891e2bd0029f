//! Many threads and tasks on a pool much smaller than the pages.

mod source;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use buffer::Pool;
use futures::future::{Either, select};
use source::{check, give_way, now, pool};

const PAGES: u32 = 3000;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(limit)) as u32
    }

    /// Half of the time one of a few pages.
    fn page(&mut self) -> u32 {
        match self.below(2) {
            0 => self.below(20),
            _ => self.below(PAGES),
        }
    }
}

/// After all is quiet every frame must be usable, and each page in at most one of them. A prefetch that was asked for
/// before may begin only now, and takes a frame for a moment; one that is lost stays so.
fn check_whole(pool: &Pool) {
    let begun = Instant::now();
    while let Err(what) = whole(pool) {
        assert!(begun.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn whole(pool: &Pool) -> Result<(), String> {
    let statistics = pool.statistics();
    assert_eq!(statistics.takeovers, 0, "somebody was not woken");
    assert!(statistics.resident <= statistics.frames);
    pool.clear();
    if pool.statistics().resident > 0 || (statistics.pinned, statistics.lent) != (0, 0) {
        return Err(format!("not quiet: {:?}", pool.statistics()));
    }
    let pins = (0..statistics.frames as u32).map(|page| now(pool.pin(page)));
    let pins: Vec<_> = pins
        .collect::<Result<_, _>>()
        .map_err(|error| format!("a frame was lost: {error}"))?;
    let mut starts: Vec<_> = pins.iter().map(|pin| pin.as_ptr()).collect();
    starts.sort_unstable();
    starts.dedup();
    assert_eq!(starts.len(), statistics.frames, "no frame is there twice");
    Ok(())
}

#[test]
fn threads_read_what_they_pinned() {
    let (pool, source) = pool(2, 24, 3);
    source.yields.store(1, Ordering::Relaxed);
    let threads = 12;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let pool = &pool;
            scope.spawn(move || {
                let mut random = Random(thread);
                for _ in 0..8000 {
                    let (one, two) = (random.page(), random.page());
                    let first = now(pool.pin(one)).unwrap();
                    let second = now(pool.pin(two)).unwrap();
                    check(one, 0, &first);
                    match second.into_owned(pool) {
                        Ok(owned) => check(two, 0, &owned),
                        Err(pin) => check(two, 0, &pin),
                    }
                }
            });
        }
    });
    let statistics = pool.statistics();
    assert_eq!(statistics.hits + statistics.misses, threads * 8000 * 2);
    assert!(statistics.evictions > 1000);
    check_whole(&pool);
}

#[test]
fn tasks_that_wait_fail_and_vanish_leave_no_trace() {
    let (pool, source) = pool(2, 8, 1);
    source.yields.store(2, Ordering::Relaxed);
    source.broken.lock().unwrap().extend([5, 6, 7]);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(6)
        .build()
        .unwrap();
    let ends = Arc::new(AtomicBool::new(false));
    let disturber = {
        let (pool, ends) = (pool.clone(), ends.clone());
        std::thread::spawn(move || {
            let mut random = Random(99);
            while !ends.load(Ordering::Relaxed) {
                match random.below(50) {
                    0 => pool.clear(),
                    1 => {
                        let from = random.below(PAGES);
                        pool.prefetch(&[from, from + 1, from + 2]);
                    }
                    // Pinned pages may stay.
                    _ => drop(pool.discard(random.page())),
                }
                std::thread::yield_now();
            }
        })
    };
    let tasks: Vec<_> = (0..40)
        .map(|task| {
            let pool = pool.clone();
            runtime.spawn(async move {
                let mut random = Random(task);
                for _ in 0..3000 {
                    let page = random.page();
                    let impatience = async {
                        for _ in 0..random.below(12) {
                            give_way().await;
                        }
                    };
                    let pin = match select(Box::pin(pool.pin(page)), Box::pin(impatience)).await {
                        Either::Left((pin, _)) => pin,
                        Either::Right(_) => continue,
                    };
                    match pin {
                        Ok(pin) => {
                            give_way().await;
                            check(page, 0, &pin);
                        }
                        Err(error) => assert!((5..8).contains(&page), "{error}"),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        now(task).unwrap();
    }
    ends.store(true, Ordering::Relaxed);
    disturber.join().unwrap();
    drop(runtime);
    source.broken.lock().unwrap().clear();
    // Prefetches outside the runtime may still be under way.
    while source.waiting.load(Ordering::SeqCst) > 0 || pool.statistics().pinned > 0 {
        std::thread::yield_now();
    }
    assert!(pool.statistics().waits > 0, "frames were never short");
    check_whole(&pool);
}

/// What `./test-races` must find: one writes to a page that another has pinned, as if it were alone.
#[cfg(planted_race)]
#[test]
fn a_planted_race() {
    let (pool, _) = pool(1, 8, 1);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..1000 {
                    let pin = now(pool.pin(3)).unwrap();
                    let first = pin.as_ptr().cast_mut();
                    // SAFETY: none: this is a data race, and compiled only to see that it is found.
                    unsafe { *first = std::hint::black_box((*first).wrapping_add(round as u8)) };
                }
            });
        }
    });
}
