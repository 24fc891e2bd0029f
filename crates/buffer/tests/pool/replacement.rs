//! Every replacement policy under the pool.

use std::sync::Arc;

use buffer::{Config, Policy, Pool};

use crate::source::{PAGE, Patterns, check, now};

fn make(replacement: Policy, frames: usize) -> Arc<Pool> {
    let config = Config {
        bytes: (frames * PAGE) as u64,
        page_size: PAGE,
        partitions_per_node: 1,
        nodes: vec![None],
        placement: buffer::Placement::default(),
        replacement,
        prefetch: buffer::Prefetching::default(),
    };
    let source = Arc::new(Patterns::default());
    Pool::new(&config, source, memory::Budget::new(u64::MAX)).unwrap()
}

#[test]
fn a_scan_does_not_wash_out_the_working_set() {
    for policy in Policy::ALL {
        let pool = make(policy, 200);
        let hot = 0..60u32;
        // What is hot is used again and again, between pages that are used once.
        for round in 0..12 {
            for page in hot.clone() {
                now(pool.pin(page)).unwrap();
                now(pool.pin(1000 + round * 60 + page)).unwrap();
            }
        }
        for page in 10_000..10_200 {
            now(pool.pin(page)).unwrap();
        }
        let left = hot.filter(|page| pool.is_resident(*page)).count();
        assert!(left >= 54, "{policy:?}: {left} of 60 hot pages left");
        assert_eq!(pool.check(), Ok(()), "{policy:?}");
    }
}

#[test]
fn every_policy_finds_the_one_frame_without_pins() {
    for policy in Policy::ALL {
        let pool = make(policy, 2000);
        let mut pins: Vec<_> = (0..2000).map(|page| now(pool.pin(page)).unwrap()).collect();
        drop(pins.swap_remove(1234));
        for page in 5000..5010 {
            check(page, 0, &now(pool.pin(page)).unwrap());
        }
        assert_eq!(pool.check(), Ok(()), "{policy:?}");
        // Discarded and cleared frames come back, too.
        drop(pins);
        for page in 0..1000 {
            pool.discard(page).unwrap();
        }
        for page in 0..4000 {
            check(page, 0, &now(pool.pin(page)).unwrap());
        }
        pool.clear();
        for page in 0..4000 {
            now(pool.pin(page)).unwrap();
        }
        assert_eq!(pool.statistics().resident, 2000, "{policy:?}");
        assert_eq!(pool.check(), Ok(()), "{policy:?}");
    }
}
