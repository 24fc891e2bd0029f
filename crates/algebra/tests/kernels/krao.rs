use super::*;
use algebra::hash::{combine_u64, hash_u64};
use algebra::krao::*;
use std::collections::HashMap;

properties! {
    #[test]
    fn dense_indexes((a, b) in pair(0u32..7)) {
        at_each_level(|| {
            let (mut index, mut groups) = (vec![9], vec![9]);
            start(&a, &mut index);
            combine(&mut index, &b, 7);
            let years: Vec<i64> = a.iter().map(|a| i64::from(*a) - 3).collect();
            combine_i64(&mut index, &years, -3, 7);
            numbers(&index, &mut groups);
            let naive: Vec<u32> = a.iter().zip(&b).map(|(a, b)| (a * 7 + b) * 7 + a).collect();
            prop_assert_eq!(&groups, &naive);
            start_i64(&years, -3, &mut index);
            numbers(&index, &mut groups);
            prop_assert_eq!(&groups, &a);
            let (mut keys, mut valid) = (vec![2; a.len()], vec![true; a.len()]);
            digit(&mut keys, &mut valid, &years, -2, 4);
            for (row, year) in years.iter().enumerate() {
                prop_assert_eq!(valid[row], (-2..2).contains(year));
                prop_assert_eq!(keys[row], 2 * 4 + year + 2);
            }
            prop_assert_eq!(occurring(&a), a.iter().fold(0, |bits, n| bits | 1 << n));
            Ok(())
        })?;
    }

    #[test]
    fn keys_in_order(steps in vec(vec(0i64..3, 0..40), 0..6), fall in prop::option::of(0usize..6)) {
        let (mut keys, mut numbers, mut last) = (vec![], vec![7], -9);
        for (vector, steps) in steps.iter().enumerate() {
            let mut values: Vec<i64> = steps.iter().map(|step| { last += step; last }).collect();
            if fall == Some(vector) && !values.is_empty() && !keys.is_empty() {
                let before = keys.clone();
                let place = values.len() / 2;
                values[place] = -10;
                prop_assert!(!ascend(&values, &mut keys, &mut numbers));
                prop_assert_eq!(&keys, &before);
                break;
            }
            prop_assert!(ascend(&values, &mut keys, &mut numbers));
            let found: Vec<i64> = numbers.iter().map(|n| keys[*n as usize]).collect();
            prop_assert_eq!(found, values);
            prop_assert!(keys.is_sorted_by(|a, b| a < b));
        }
    }

    /// Against a map, for any number of words, with good hashes, bad ones and equal ones.
    #[test]
    fn groups_as_a_map(
        words in 1usize..=5,
        vectors in vec(vec(0u64..40, 0..200), 0..6),
        quality in prop::sample::select(vec![u64::MAX, 7, 0]),
        long in any::<bool>(),
    ) {
        let words = if long { MAX_WORDS } else { words };
        let mut groups = Groups::new(words);
        let mut map: HashMap<Vec<u64>, u32> = HashMap::new();
        let mut out = vec![3];
        for vector in vectors {
            // Keys differ in one word, which word depends on the value.
            let column = |w: usize| -> Vec<u64> {
                vector.iter().map(|v| if *v as usize % words == w { *v } else { 1 }).collect()
            };
            let columns: Vec<Vec<u64>> = (0..words).map(column).collect();
            let keys: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
            let mut hashes = vec![];
            hash_u64(keys[0], 1, &mut hashes);
            keys[1..].iter().for_each(|k| combine_u64(k, &mut hashes));
            hashes.iter_mut().for_each(|h| *h &= quality);

            let key = |row: usize| keys.iter().map(|k| k[row]).collect::<Vec<u64>>();
            groups.find(&hashes, &keys, &mut out);
            for (row, group) in out.iter().enumerate() {
                prop_assert_eq!(*group, map.get(&key(row)).copied().unwrap_or(u32::MAX));
            }
            groups.insert(&hashes, &keys, &mut out);
            prop_assert_eq!(out.len(), vector.len());
            for (row, group) in out.iter().enumerate() {
                let next = map.len() as u32;
                prop_assert_eq!(*group, *map.entry(key(row)).or_insert(next));
            }
            prop_assert_eq!(groups.len(), map.len());
        }
        for (key, group) in &map {
            prop_assert!(key.iter().enumerate().all(|(w, v)| groups.key(*group, w) == *v));
        }
        let parts = groups.partitions(2);
        let mut all = vec![];
        for (at, part) in parts.iter().enumerate() {
            prop_assert!(part.groups.is_sorted());
            prop_assert!(part.hashes.iter().all(|hash| (hash >> 62) as usize == at));
            let hashes = part.groups.iter().map(|group| groups.hashes()[*group as usize]);
            prop_assert!(hashes.eq(part.hashes.iter().copied()));
            for (word, keys) in part.keys.iter().enumerate() {
                prop_assert!(part.groups.iter().map(|group| groups.key(*group, word)).eq(keys.iter().copied()));
            }
            prop_assert_eq!(part.keys.len(), words);
            all.extend_from_slice(&part.groups);
        }
        all.sort();
        prop_assert_eq!(&all, &(0..map.len() as u32).collect::<Vec<_>>());
        prop_assert_eq!(&groups.partitions(0)[0].groups, &all);
        prop_assert!(groups.memory() >= 8 * (words + 1) * map.len());
        // Loose: each row has a number of its own.
        groups.loosen();
        for (times, at) in [(1, 0), (2, 1)] {
            let columns: Vec<Vec<u64>> = (0..words).map(|word| vec![at, word as u64]).collect();
            let keys: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
            groups.insert(&[7, 8], &keys, &mut out);
            let next = map.len() as u32 + 2 * times;
            prop_assert_eq!(&out, &[next - 2, next - 1]);
            prop_assert!((0..words).all(|word| groups.key(next - 1, word) == word as u64));
        }
        prop_assert_eq!((groups.len(), groups.is_loose()), (map.len() + 4, true));
        prop_assert_eq!(groups.partitions(0)[0].groups.len(), groups.len());
        groups.clear();
        groups.find(&[0], &vec![&[1][..]; words], &mut out);
        prop_assert_eq!((groups.len(), &out[..]), (0, &[u32::MAX][..]));
        groups.insert(&[0, 0], &vec![&[1, 1][..]; words], &mut out);
        prop_assert_eq!((groups.len(), &out[..]), (1, &[0, 0][..]));
    }
}

/// With equal hashes a search would be a scan: 40,000 keys would take 800 million steps.
#[test]
fn equal_hashes_of_many_keys_only_cost_a_hash() {
    let keys: Vec<u64> = (0..40_000).collect();
    for words in [1, 2, 4] {
        let columns = vec![&keys[..]; words];
        let hashes = vec![42; keys.len()];
        let mut groups = Groups::new(words);
        let mut out = vec![];
        groups.insert(&hashes, &columns, &mut out);
        assert!(
            out.iter()
                .enumerate()
                .all(|(row, group)| row == *group as usize)
        );
        groups.find(&hashes, &columns, &mut out);
        assert!(
            out.iter()
                .enumerate()
                .all(|(row, group)| row == *group as usize)
        );
        // What the caller gave is kept: partitions of other tables agree.
        assert_eq!(groups.hashes(), hashes);
    }
}

#[test]
fn many_groups_grow_in_place() {
    let mut groups = Groups::with_capacity(1, 1000);
    let before = groups.memory();
    let (mut hashes, mut out) = (vec![], vec![]);
    for vector in 0..200u64 {
        let keys: Vec<u64> = (0..VECTOR_ROWS as u64)
            .map(|v| (vector * 1000 + v) * 64)
            .collect();
        hash_u64(&keys, 7, &mut hashes);
        groups.insert(&hashes, &[&keys], &mut out);
        assert!(
            out.iter()
                .zip(&keys)
                .all(|(group, key)| groups.key(*group, 0) == *key)
        );
    }
    assert_eq!(groups.len(), 199_000 + VECTOR_ROWS);
    assert!(groups.memory() > before);
    let mut words = vec![];
    groups.column(0, &[5, 0], &mut words);
    assert_eq!(words, [5 * 64, 0]);
}

#[test]
#[should_panic(expected = "one column per word")]
fn keys_of_another_width_are_refused() {
    Groups::new(2).insert(&[1], &[&[1]], &mut vec![]);
}
