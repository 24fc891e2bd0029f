//! Coalescing: how many reads a batch becomes, and what they read.

use futures::executor::block_on;
use futures::future::join_all;
use io::{Backend, Queue, Settings, Statistics};

use super::{file, of, pattern, queue};

crate::backends! {
    neighbours_become_one_read
    small_gaps_are_read_with_them
    overlaps_are_read_once
    a_window_bounds_what_is_joined
    a_bad_request_does_not_spoil_its_neighbours
}

/// What reading these ranges as one batch counts.
fn count(queue: &Queue, ranges: &[(usize, usize)]) -> Statistics {
    let bytes = pattern(1 << 20);
    let (_directory, device) = file(&bytes);
    let reads: Vec<_> = queue.together(|| {
        let ask = |&(offset, len): &(usize, usize)| queue.read(&device, offset as u64, len);
        ranges.iter().map(ask).collect()
    });
    for (read, &(offset, len)) in block_on(join_all(reads)).into_iter().zip(ranges) {
        assert!(read.unwrap() == bytes[offset..offset + len], "{offset}");
    }
    queue.statistics()
}

fn neighbours_become_one_read(backend: Backend) {
    let Some(queue) = queue(of(backend)) else {
        return;
    };
    // Two readers that take turns: their pages come interleaved.
    let ranges: Vec<_> = (0..16)
        .flat_map(|i| [(i * 4096, 4096), (500_000 + i * 4096, 4096)])
        .collect();
    let counted = count(&queue, &ranges);
    assert_eq!((counted.requests, counted.reads), (32, 2));
    assert_eq!(counted.requested_bytes, 32 * 4096);
    assert_eq!((counted.read_bytes, counted.gap_bytes), (32 * 4096, 0));
}

fn small_gaps_are_read_with_them(backend: Backend) {
    let settings = Settings {
        gap: 1000,
        ..of(backend)
    };
    let Some(queue) = queue(settings) else {
        return;
    };
    // Gaps of 1,000, 1,001 and 10 bytes.
    let counted = count(&queue, &[(100, 900), (2000, 999), (4000, 90), (4100, 10)]);
    assert_eq!((counted.requests, counted.reads), (4, 2));
    assert_eq!((counted.requested_bytes, counted.gap_bytes), (1999, 1010));
    assert_eq!(counted.read_bytes, 1999 + 1010);
}

fn overlaps_are_read_once(backend: Backend) {
    let Some(queue) = queue(of(backend)) else {
        return;
    };
    let ranges = [(0, 5000), (0, 5000), (1000, 50), (4000, 3000), (4500, 1000)];
    let counted = count(&queue, &ranges);
    assert_eq!((counted.reads, counted.read_bytes), (1, 7000));
    assert_eq!(counted.gap_bytes, 0);
}

fn a_window_bounds_what_is_joined(backend: Backend) {
    let ranges: Vec<_> = (0..16).map(|i| (i * 4096, 4096)).collect();
    for (window, longest, reads) in [(4, 1 << 20, 4), (256, 16_384, 4), (1, 1 << 20, 16)] {
        let settings = Settings {
            window,
            longest,
            ..of(backend)
        };
        let Some(queue) = queue(settings) else {
            return;
        };
        assert_eq!(count(&queue, &ranges).reads, reads, "window {window}");
    }
}

fn a_bad_request_does_not_spoil_its_neighbours(backend: Backend) {
    let bytes = pattern(10_000);
    let (_directory, device) = file(&bytes);
    let Some(queue) = queue(of(backend)) else {
        return;
    };
    let (good, bad) = queue.together(|| {
        (
            queue.read(&device, 5000, 5000),
            queue.read(&device, 9000, 2000),
        )
    });
    assert!(block_on(good).unwrap() == bytes[5000..]);
    assert!(block_on(bad).is_err());
    assert_eq!(queue.statistics().reads, 3);
}
