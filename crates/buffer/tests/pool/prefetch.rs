//! Loading ahead.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use buffer::{Error, Pool};
use futures::FutureExt;

use crate::config;
use crate::source::{PAGE, check, now, pool};

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
    until("giving up", || pool.statistics().prefetch_dropped == 2);
    assert_eq!(pool.statistics().waits, 0);
    drop(pins);
    // Used once each, they are not cold before a miss passes by.
    pool.clear();
    // A prefetch under way does not keep the pool alive for longer than its load.
    source.hold(30);
    until("begin", || {
        // Ignored as long as the two before are not forgotten.
        pool.prefetch(&[30, 31]);
        source.waiting.load(Ordering::SeqCst) == 1
    });
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
            Box::pin(async move { Ok(crate::source::fill(page, 0, frame)) })
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
