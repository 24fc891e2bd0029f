//! What each prefetcher names.

use super::{Outcome, Prefetching};
use crate::page::PageId;
use crate::read_ahead::ReadAhead;

/// What is named at each of these pages, all of which are missed.
fn named(kind: Prefetching, most: u32, pages: &[PageId]) -> Vec<Vec<PageId>> {
    let mut ahead = ReadAhead::new(kind, most);
    let each = pages
        .iter()
        .map(|page| ahead.accessed(*page, Outcome::Miss).to_vec());
    each.collect()
}

#[test]
fn names_are_read_back() {
    for kind in Prefetching::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    assert!("Stream".parse::<Prefetching>().is_err());
}

#[test]
fn none_names_nothing() {
    assert!(named(Prefetching::None, 64, &[1, 2, 3]).concat().is_empty());
}

#[test]
fn next_names_what_follows_and_no_page_twice() {
    let pages: Vec<PageId> = (0..100).collect();
    let all = named(Prefetching::Next, 64, &pages);
    assert_eq!(all[0], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(all.concat(), (1..105).collect::<Vec<_>>());
    assert!(
        all.iter().filter(|named| !named.is_empty()).count() < 30,
        "several at once"
    );
    // Anywhere else it begins anew, and it ends with the last number.
    assert_eq!(
        named(Prefetching::Next, 2, &[7, 90]),
        [vec![8, 9], vec![91, 92]]
    );
    assert_eq!(
        named(Prefetching::Next, 64, &[PageId::MAX - 1, PageId::MAX])[1],
        [0; 0]
    );
}

#[test]
fn stride_finds_distances_of_streams_read_in_turn() {
    let forwards = named(Prefetching::Stride, 64, &[0, 7, 14, 21]);
    assert_eq!(forwards[2], [21, 28, 35, 42, 49, 56, 63, 70]);
    assert!(forwards[3].is_empty());
    let backwards = named(Prefetching::Stride, 64, &[9, 6, 3]);
    assert_eq!(backwards[2], [0], "there is nothing below");
    // Two streams in turn, with other pages between them.
    let mut pages = Vec::new();
    for step in 0..40 {
        pages.extend([
            step * 3,
            1_000_000 - step * 5,
            5_000_000 + step * step * 2000,
        ]);
    }
    let all = named(Prefetching::Stride, 64, &pages).concat();
    assert!(all.contains(&117) && all.contains(&(1_000_000 - 195)));
    let mut once = all.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), all.len(), "no page is named twice");
    assert!(all.len() < 110, "{}", all.len());
}

#[test]
fn stream_doubles_its_window_only_while_the_reader_waits() {
    let mut ahead = ReadAhead::new(Prefetching::Stream, 32);
    let mut windows = Vec::new();
    for page in 0..400u32 {
        let outcome = if page < 100 {
            Outcome::Late
        } else {
            Outcome::Hit
        };
        let named = ahead.accessed(page, outcome);
        if let Some(first) = named.first() {
            assert!(*first > page, "named before it is read");
            windows.push(named.len());
        }
    }
    assert_eq!(windows[..4], [4, 8, 16, 32]);
    assert!(
        windows[4..].iter().all(|&window| window == 32),
        "no larger than it may be"
    );
    // Where nothing waits the first window stays.
    let mut ahead = ReadAhead::new(Prefetching::Stream, 32);
    ahead.accessed(0, Outcome::Miss);
    for page in 1..100 {
        let named = ahead.accessed(page, Outcome::Hit).len();
        assert!(named == 0 || named == 4, "{named}");
    }
}

#[test]
fn stream_tells_streams_apart_and_takes_no_random_pages_for_one() {
    let mut pages = Vec::new();
    for step in 0..50 {
        pages.extend((0..5).map(|stream| stream * 10_000 + step));
    }
    let mut all = named(Prefetching::Stream, 64, &pages).concat();
    for stream in 0..5 {
        let missing = (2..50).find(|step| !all.contains(&(stream * 10_000 + step)));
        assert_eq!(missing, None);
    }
    let len = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(len, all.len(), "no page is named twice");
    let mut random = fastrand::Rng::with_seed(3);
    let pages: Vec<PageId> = (0..1000).map(|_| random.u32(..1_000_000)).collect();
    assert!(named(Prefetching::Stream, 64, &pages).concat().len() < 20);
    // Resident pages begin no stream.
    let mut ahead = ReadAhead::new(Prefetching::Stream, 64);
    assert!((0..100).all(|page| ahead.accessed(page, Outcome::Hit).is_empty()));
    let last = named(Prefetching::Stream, 64, &[PageId::MAX - 1, PageId::MAX]);
    assert!(last.concat().is_empty());
}

#[test]
fn correlation_learns_a_walk_that_is_repeated() {
    let mut random = fastrand::Rng::with_seed(5);
    let walk: Vec<PageId> = (0..300).map(|_| random.u32(..1_000_000)).collect();
    let mut ahead = ReadAhead::new(Prefetching::Correlation, 64);
    for round in 0..4 {
        let mut right = 0;
        for (at, page) in walk.iter().enumerate() {
            let named = ahead.accessed(*page, Outcome::Miss);
            let next = &walk[at..walk.len().min(at + 6)];
            right += named.iter().filter(|page| next.contains(page)).count();
        }
        match round {
            0 | 1 => assert_eq!(right, 0, "nothing was seen twice"),
            _ => assert!(right > 250, "round {round}: {right}"),
        }
    }
    // Pages in no order teach it nothing.
    let pages: Vec<PageId> = (0..3000).map(|_| random.u32(..1_000_000)).collect();
    assert!(named(Prefetching::Correlation, 64, &pages).concat().len() < 30);
}
