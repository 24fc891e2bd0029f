//! Misses and loads.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use buffer::{Error, Pool};
use futures::FutureExt;

use crate::config;
use crate::source::{PAGE, check, now, pool};

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
    assert_eq!(statistics.loaded_bytes, crate::source::length(5) as u64);
    drop((first, second));
    let statistics = pool.statistics();
    assert_eq!((statistics.resident, statistics.pinned), (1, 0));
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
fn a_page_is_located_before_its_bucket_is_asked_for() {
    /// A source that knows a page's bucket only after it was located.
    #[derive(Default)]
    struct Distant {
        located: std::sync::Mutex<std::collections::HashSet<u32>>,
        asked: std::sync::atomic::AtomicU32,
    }
    impl buffer::Source for Distant {
        fn bucket(&self, page: u32) -> u8 {
            assert!(self.located.lock().unwrap().contains(&page));
            1
        }
        fn locate(&self, page: u32) -> Option<futures::future::BoxFuture<'_, ()>> {
            if self.located.lock().unwrap().contains(&page) {
                return None;
            }
            self.asked.fetch_add(1, Ordering::SeqCst);
            let mut waited = false;
            Some(Box::pin(futures::future::poll_fn(move |context| {
                if std::mem::replace(&mut waited, true) {
                    self.located.lock().unwrap().insert(page);
                    return std::task::Poll::Ready(());
                }
                context.waker().wake_by_ref();
                std::task::Poll::Pending
            })))
        }
        fn load<'a>(
            &'a self,
            page: u32,
            frame: &'a mut [u8],
        ) -> futures::future::BoxFuture<'a, Result<usize, buffer::LoadError>> {
            frame[0] = page as u8;
            Box::pin(async move { Ok(1) })
        }
    }
    let source = Arc::new(Distant::default());
    let budget = memory::Budget::new(u64::MAX);
    let pool = Pool::new(&config(64 * 4096, PAGE, 2), source.clone(), budget).unwrap();
    // Given up while it is located, nothing is left behind.
    assert!(pool.pin(9).now_or_never().is_none());
    for page in [9, 10] {
        let pin = now(pool.pin(page)).unwrap();
        assert_eq!((pin[0], pin.node()), (page as u8, 1));
    }
    pool.prefetch(&[11]);
    while !pool.is_resident(11) {
        std::thread::yield_now();
    }
    assert_eq!(source.asked.load(Ordering::SeqCst), 4);
    pool.check().unwrap();
}
