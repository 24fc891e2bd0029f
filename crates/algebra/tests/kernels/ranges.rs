//! Tables built range by range against those built at once.

use super::*;
use algebra::dot::*;

/// The table of all rows, divided `most` times, in chunks of `chunk` rows; and whether a key is repeated.
fn by_range(
    (keys, valid): (&[i64], Option<&[bool]>),
    (min, max): (i64, i64),
    most: usize,
    chunk: usize,
) -> (Ranked, Option<Direct>) {
    let ranges = Ranges::new(min, max, most);
    let chunks: Vec<Divided> = keys
        .chunks(chunk)
        .enumerate()
        .map(|(nth, keys)| {
            let first = nth * chunk;
            let valid = valid.map(|valid| &valid[first..first + keys.len()]);
            ranges.divide(keys, valid, first)
        })
        .collect();
    let all = 0..ranges.count();
    let marked: Vec<Marked> = all
        .clone()
        .map(|range| ranges.mark(range, &chunks))
        .collect();
    let repeated = marked.iter().any(Marked::is_repeated);
    let ranked = ranges.ranked(&marked);
    // In any order.
    for (range, marked) in marked.into_iter().enumerate().rev() {
        ranked.index(range, &chunks, marked);
    }
    let is_narrow = (max.wrapping_sub(min) as u64) < 1 << 20;
    let direct = (is_narrow && valid.is_none() && !repeated).then(|| {
        let direct = ranges.direct();
        all.rev().for_each(|range| direct.fill(range, &chunks));
        direct.finish()
    });
    (ranked.finish(), direct)
}

properties! {
    /// Few and many keys, repeated ones, NULLs, ranges of one word or all, ends of what a key can be.
    #[test]
    fn ranges_give_the_same_table(
        (keys, valid) in column(prop_oneof![0i64..9, 0i64..3000, 2900i64..3000]),
        once in any::<bool>(),
        more in prop::sample::select(vec![0i64, 1, 63, 64, 5000]),
        from in prop::sample::select(vec![0i64, -1500, i64::MIN, i64::MAX - 8000]),
        most in prop::sample::select(vec![1usize, 2, 5, 64, 256]),
        chunk in prop::sample::select(vec![1usize, 7, 100, 5000]),
    ) {
        let mut keys: Vec<i64> = keys.iter().map(|key| from + key).collect();
        let mut valid = valid;
        if once {
            let mut seen = std::collections::BTreeSet::new();
            keys.retain(|key| seen.insert(*key));
            valid = valid.map(|valid| valid[..keys.len()].to_vec());
        }
        let (min, max) = (from, from + 2999 + more);
        let valid = valid.as_deref();
        at_each_level(|| {
            let (ranked, direct) = by_range((&keys, valid), (min, max), most, chunk);
            let at_once = Ranked::build(&keys, valid, min, max);
            let ascends = valid.is_none() && keys.is_sorted_by(|a, b| a < b);
            if !ascends {
                prop_assert_eq!(&ranked, &at_once);
                prop_assert_eq!(ranked.memory(), at_once.memory());
            }
            if let Some(direct) = direct {
                let mut at_once = Direct::new(min, max);
                let rows: Vec<u32> = (0..keys.len() as u32).collect();
                prop_assert!(!at_once.set(&keys, &rows));
                prop_assert_eq!(&direct, &at_once);
                prop_assert_eq!(direct.memory(), at_once.memory());
            }
            Ok(())
        })?;
    }
}

/// So many rows that matches are prefetched, in ranges as they suit them.
#[test]
fn many_rows_are_found_by_range() {
    let rows = 300_000i64;
    let keys: Vec<i64> = (0..rows).map(|row| row * 7_919 % 100_003).collect();
    assert!(is_scattered(&keys));
    let ranges = Ranges::of_rows(0, 100_002, keys.len());
    assert!(ranges.count() > 1);
    let (ranked, direct) = by_range((&keys, None), (0, 100_002), ranges.count(), 1 << 16);
    assert!(direct.is_none());
    let at_once = Ranked::build(&keys, None, 0, 100_002);
    assert_eq!(ranked, at_once);
    let probing: Vec<i64> = (0..2_000).map(|row| row * 37 - 50).collect();
    let (mut probe, mut left, mut right) = (Probe::new(), vec![], vec![]);
    ranked.probe(&probing, None, &mut probe);
    let mut given: Vec<(u32, u32)> = vec![];
    loop {
        let more = ranked.matches(&mut probe, &mut left, &mut right, 100);
        given.extend(left.iter().copied().zip(right.iter().copied()));
        if !more {
            break;
        }
    }
    // Rows of a key differ by the number of keys.
    let mut first = vec![0; 100_003];
    (0..100_003).for_each(|row| first[keys[row] as usize] = row as u32);
    let wanted = probing.iter().enumerate().flat_map(|(row, key)| {
        let first = usize::try_from(*key).map_or(NONE, |key| first[key]);
        (first..300_000)
            .step_by(100_003)
            .map(move |found| (row as u32, found))
    });
    assert_eq!(given, wanted.collect::<Vec<_>>());
}

#[test]
fn keys_in_order_are_not_scattered() {
    let ascending: Vec<i64> = (0..10_000).map(|key| key * 3).collect();
    assert!(!is_scattered(&ascending) && !is_scattered(&[]) && !is_scattered(&[i64::MIN]));
    let runs: Vec<i64> = (0..10_000)
        .map(|row| row % 100 + row / 100 * 1_000_000)
        .collect();
    assert!(!is_scattered(&runs));
    assert!(is_scattered(&[i64::MIN, i64::MAX]));
}

#[test]
fn wide_ranges_have_distances_of_half_a_word() {
    let (min, max) = (i64::MIN, i64::MIN + (1 << 40) - 1);
    assert_eq!(Ranges::new(min, max, 1).count(), 256);
    assert_eq!(Ranges::new(min, min + 63, 9).count(), 1);
    assert_eq!(Ranges::new(min, min + 64, 9).count(), 2);
}

#[test]
#[should_panic(expected = "lies outside")]
fn a_key_outside_of_all_ranges_is_refused() {
    Ranges::new(5, 9, 3).divide(&[10], None, 0);
}
