//! Sizes, nodes and ids.

use std::sync::Arc;

use buffer::{Error, Pool};

use crate::source::{PAGE, Patterns, check, now, pool};
use crate::{config, make};

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
fn words_of_pages_count_where_pages_were_loaded() {
    const WORDS: u64 = 256 << 10;
    let budget = memory::Budget::new((1 << 19) + 2 * WORDS);
    let source = Arc::new(Patterns::default());
    let pool = Pool::new(&config(1 << 19, PAGE, 1), source, budget.clone()).unwrap();
    assert_eq!(pool.word_bytes(), 0);
    for (pages, blocks) in [([0, 1], 1), ([32_767, 32_768], 2), ([1 << 31, u32::MAX], 4)] {
        for page in pages {
            check(page, 0, &now(pool.pin(page)).unwrap());
        }
        assert_eq!(pool.word_bytes(), blocks * WORDS);
        // There is room for two; the others are read all the same.
        assert_eq!(budget.used(), (1 << 19) + blocks.min(2) * WORDS);
    }
    drop(pool);
    assert_eq!(budget.used(), 0);
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
