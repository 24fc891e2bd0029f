//! Each failure of the check, planted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::Damage;
use crate::config::{Config, LoadError, PageId};
use crate::error::Error;
use crate::pool::Pool;
use crate::source::Source;

struct Empty;

impl Source for Empty {
    fn bucket(&self, page: PageId) -> u8 {
        page as u8
    }

    fn load<'a>(
        &'a self,
        page: PageId,
        _: &'a mut [u8],
    ) -> BoxFuture<'a, Result<usize, LoadError>> {
        async move {
            if page == 999 {
                futures::future::pending::<()>().await;
            }
            Ok(8)
        }
        .boxed()
    }
}

fn config() -> Config {
    Config {
        bytes: 2 * 32 * 4096,
        page_size: 4096,
        partitions_per_node: 2,
        nodes: vec![None; 2],
        placement: crate::Placement::default(),
        replacement: crate::replacement::Policy::default(),
        prefetch: crate::Prefetching::default(),
    }
}

/// A pool of 64 frames with pages 0 to 9 in it, found to be sound.
fn sound() -> Arc<Pool> {
    let pool = Pool::new(&config(), Arc::new(Empty), memory::Budget::new(u64::MAX)).unwrap();
    assert_eq!(pool.check(), Ok(()));
    for page in 0..10 {
        futures::executor::block_on(pool.pin(page)).unwrap();
    }
    assert_eq!(pool.check(), Ok(()));
    pool
}

fn frame_of(pool: &Pool, page: PageId) -> u32 {
    let word = pool.translation.word(page).unwrap();
    word.load().frame().unwrap()
}

fn set_word(pool: &Pool, page: PageId, value: u64) {
    pool.translation.touch(page);
    let word = pool.translation.word(page).unwrap();
    word.0.store(value, Ordering::SeqCst);
}

fn word_of(pool: &Pool, page: PageId) -> u64 {
    pool.translation
        .word(page)
        .unwrap()
        .0
        .load(Ordering::SeqCst)
}

#[test]
fn a_pool_in_use_is_sound() {
    let pool = sound();
    let pin = pool.try_pin(3).unwrap();
    for page in 0..500 {
        futures::executor::block_on(pool.pin(page)).unwrap();
    }
    assert_eq!(pool.check(), Ok(()));
    drop(pin);
    pool.discard(499).unwrap();
    pool.clear();
    assert_eq!(pool.check(), Ok(()));
    futures::executor::block_on(pool.pin(u32::MAX)).unwrap();
    assert_eq!(pool.check(), Ok(()), "the last page id");
}

#[test]
fn a_pool_with_a_load_under_way_is_busy() {
    let pool = sound();
    let mut load = Box::pin(pool.pin(999));
    assert!(load.as_mut().now_or_never().is_none());
    assert_eq!(pool.check(), Err(Damage::Busy));
    drop(load);
    assert_eq!(pool.check(), Ok(()));
}

#[test]
fn a_free_frame_in_no_list() {
    let pool = sound();
    let frame = frame_of(&pool, 4);
    set_word(&pool, 4, 0);
    assert_eq!(pool.check(), Err(Damage::FreeUnlisted { frame }));
}

#[test]
fn an_allocated_page_in_a_free_list() {
    let pool = sound();
    let frame = frame_of(&pool, 4);
    pool.partitions.give(frame, &pool.frames);
    let damage = pool.check().unwrap_err();
    assert_eq!(damage, Damage::AllocatedListed { frame, page: 4 });
    assert_eq!(
        damage.to_string(),
        format!("frame {frame}: holds page 4, but is in a free list")
    );
}

#[test]
fn a_frame_listed_twice_or_in_a_list_of_others() {
    let pool = sound();
    let frame = *pool.partitions.free(0).last().unwrap();
    pool.partitions.plant(0, frame);
    assert_eq!(pool.check(), Err(Damage::ListedTwice { frame }));
    for frame in [*pool.partitions.free(3).last().unwrap(), 64] {
        let pool = sound();
        pool.partitions.plant(0, frame);
        let expected = Damage::ListedElsewhere {
            frame,
            partition: 0,
        };
        assert_eq!(pool.check(), Err(expected));
    }
}

#[test]
fn a_free_page_mapped_to_a_frame() {
    let pool = sound();
    // Bits of a frame in an absent word, and a state that there is not.
    for value in [7, u64::MAX] {
        set_word(&pool, 50, value);
        assert_eq!(pool.check(), Err(Damage::FreeMapped { page: 50 }));
    }
}

#[test]
fn pages_mapped_to_frames_of_others() {
    let pool = sound();
    let frame = frame_of(&pool, 4);
    set_word(&pool, 50, word_of(&pool, 4));
    let expected = Damage::Shared {
        frame,
        first: 4,
        second: 50,
    };
    assert_eq!(pool.check(), Err(expected));

    let pool = sound();
    let frame = frame_of(&pool, 4);
    set_word(&pool, 50, word_of(&pool, 4));
    set_word(&pool, 4, 0);
    let expected = Damage::Mismatch {
        page: 50,
        frame,
        holds: 4,
    };
    assert_eq!(pool.check(), Err(expected));

    let pool = sound();
    set_word(&pool, 50, word_of(&pool, 4) | 1 << 20);
    let damage = pool.check().unwrap_err();
    assert!(
        matches!(
            damage,
            Damage::NoSuchFrame {
                page: 50,
                frames: 64,
                ..
            }
        ),
        "{damage}"
    );
}

#[test]
fn a_load_that_nobody_does() {
    let pool = sound();
    pool.translation.touch(50);
    assert!(pool.translation.word(50).unwrap().begin(1, 1));
    assert_eq!(pool.check(), Err(Damage::NoLoader { page: 50 }));
}

#[test]
fn a_bad_descriptor() {
    let pool = sound();
    let frame = frame_of(&pool, 4);
    pool.frames.get(frame).describe(4, 4097);
    let damage = pool.check().unwrap_err();
    assert!(
        matches!(
            damage,
            Damage::Descriptor {
                page: 4,
                len: 4097,
                ..
            }
        ),
        "{damage}"
    );
}

#[test]
fn a_wrong_count_of_free_frames() {
    let pool = sound();
    let free = &pool.partitions.node(1).free;
    let listed = free.fetch_add(1, Ordering::SeqCst);
    let expected = Damage::FreeCount {
        node: 1,
        counted: listed + 1,
        listed,
    };
    assert_eq!(pool.check(), Err(expected));
}

#[test]
fn a_size_that_is_not_whole_and_a_pool_out_of_memory() {
    let mut config = config();
    config.whole().unwrap();
    config.bytes += 1;
    assert_eq!(
        config.whole().unwrap_err().to_string(),
        "a pool of 262145 bytes is not a multiple of 8192, the bytes of one page on each of its \
         nodes; use 262144 or 270336"
    );
    let refused = Pool::new(&config, Arc::new(Empty), memory::Budget::new(8192));
    assert!(matches!(refused, Err(Error::Memory { .. })));
}
