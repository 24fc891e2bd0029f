//! Pins, discarding and clearing.

use buffer::Error;
use futures::FutureExt;

use crate::source::{check, now, pool};

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
