use super::*;
use algebra::dot::*;
use algebra::hash::{combine_u64, hash_u64};
use std::collections::BTreeSet;

properties! {
    #[test]
    fn by_position((keys, valid) in column(-20i64..60), stored in vec(0i64..40, 0..40), base in prop::sample::select(vec![0, i64::MIN + 20, i64::MAX - 60])) {
        let shift = |keys: &[i64]| keys.iter().map(|k| k + base).collect::<Vec<_>>();
        let (keys, stored) = (shift(&keys), shift(&stored));
        let rows: Vec<u32> = (0..stored.len() as u32).collect();
        at_each_level(|| {
            let mut table = Direct::new(base, base + 39);
            let (first, second) = stored.split_at(stored.len() / 2);
            let (a, b) = rows.split_at(stored.len() / 2);
            let twice = table.set(first, a) | table.set(second, b);
            prop_assert_eq!(twice, stored.iter().collect::<BTreeSet<_>>().len() < stored.len());
            let mut out = vec![1];
            table.find(&keys, valid.as_deref(), &mut out);
            for (row, key) in keys.iter().enumerate() {
                let naive = stored.iter().rposition(|s| s == key).filter(|_| is(&valid, row));
                prop_assert_eq!(out[row], naive.map_or(NONE, |r| r as u32));
            }
            let mut hits = vec![];
            found(&out, &mut hits);
            prop_assert!(hits.iter().zip(&out).all(|(hit, row)| *hit == (*row != NONE)));
            Ok(())
        })?;
    }

    /// Against a search of all rows: sparse, repeated, ascending and invalid keys, any limit.
    #[test]
    fn by_rank(
        (keys, valid) in column(-200i64..700),
        (stored, there) in column(0i64..500),
        ascending in any::<bool>(),
        once in any::<bool>(),
        base in prop::sample::select(vec![0, i64::MIN + 200, i64::MAX - 700]),
        limit in 1usize..50,
    ) {
        let (mut stored, mut there) = (stored, there);
        if ascending {
            stored.sort_unstable();
        }
        if once {
            let mut seen = BTreeSet::new();
            stored.retain(|s| seen.insert(*s));
            there = there.map(|t| t[..stored.len()].to_vec());
        }
        let shift = |keys: &[i64]| keys.iter().map(|k| k + base).collect::<Vec<_>>();
        let (keys, stored) = (shift(&keys), shift(&stored));
        let partners = |key: i64| -> Vec<u32> {
            let rows = stored.iter().enumerate();
            rows.filter(|(row, s)| **s == key && is(&there, *row)).map(|(row, _)| row as u32).collect()
        };
        at_each_level(|| {
            let table = Ranked::build(&stored, there.as_deref(), base, base + 499);
            let repeated = stored.iter().any(|s| partners(*s).len() > 1);
            prop_assert_eq!(table.is_unique(), !repeated);
            let mut out = vec![1];
            table.find_first(&keys, valid.as_deref(), &mut out);
            prop_assert_eq!(out.len(), keys.len());
            let mut pairs = vec![];
            for (row, key) in keys.iter().enumerate() {
                let naive = if is(&valid, row) { partners(*key) } else { vec![] };
                prop_assert_eq!(out[row], naive.first().copied().unwrap_or(NONE));
                pairs.extend(naive.into_iter().map(|found| (row as u32, found)));
            }
            if repeated {
                let (mut probe, mut left, mut right) = (Probe::new(), vec![], vec![]);
                table.probe(&keys, valid.as_deref(), &mut probe);
                let mut given = vec![];
                loop {
                    let more = table.matches(&mut probe, &mut left, &mut right, limit);
                    prop_assert!(left.len() <= limit && left.len() == right.len());
                    given.extend(left.iter().copied().zip(right.iter().copied()));
                    if !more {
                        break;
                    }
                }
                prop_assert_eq!(given, pairs);
            }
            Ok(())
        })?;
    }

    #[test]
    fn bit_vectors((values, valid) in column(-20i64..220), stored in vec(0i64..200, 0..99), other in vec(0i64..200, 0..99), last in 199i64..260) {
        at_each_level(|| {
            let mut bits = Bits::new(-3, last);
            bits.set(&stored, None);
            let check = |bits: &Bits, naive: &dyn Fn(i64) -> bool| {
                let all: Vec<i64> = (-3..=last).filter(|v| naive(*v)).collect();
                prop_assert_eq!(bits.iter().collect::<Vec<_>>(), &*all);
                prop_assert_eq!(bits.count(), all.len());
                let mut out = vec![true];
                bits.test(&values, valid.as_deref(), &mut out);
                for (row, v) in values.iter().enumerate() {
                    prop_assert_eq!(out[row], all.contains(v) && is(&valid, row));
                    prop_assert_eq!(bits.contains(*v), all.contains(v));
                }
                let rows: Vec<u32> = values.iter().map(|v| *v as u32).collect();
                bits.test_rows(&rows, &mut out);
                prop_assert!(rows.iter().zip(&out).all(|(r, hit)| *hit == all.contains(&i64::from(*r))));
                Ok(())
            };
            check(&bits, &|v| stored.contains(&v))?;
            let mut more = Bits::new(-3, last);
            more.set_rows(&other.iter().map(|v| *v as u32).collect::<Vec<_>>());
            let mut both = bits.clone();
            both.and(&more);
            check(&both, &|v| stored.contains(&v) && other.contains(&v))?;
            bits.or(&more);
            check(&bits, &|v| stored.contains(&v) || other.contains(&v))?;
            bits.invert();
            check(&bits, &|v| !stored.contains(&v) && !other.contains(&v))
        })?;
    }

    /// Against nested loops: duplicates, partitions, bad hashes, any limit.
    #[test]
    fn by_hash(
        build in vec(0u64..30, 0..99),
        probe in vec(0u64..40, 0..99),
        words in 1usize..=4,
        bits in 0u32..3,
        quality in prop::sample::select(vec![u64::MAX, 1 << 63, 0]),
        limit in 1usize..50,
    ) {
        let columns = |keys: &[u64]| -> Vec<Vec<u64>> {
            (0..words as u64).map(|w| keys.iter().map(|k| if w == 0 { *k } else { k * w }).collect()).collect()
        };
        let hashes = |columns: &[Vec<u64>]| {
            let mut hashes = vec![];
            hash_u64(&columns[0], 1, &mut hashes);
            columns[1..].iter().for_each(|c| combine_u64(c, &mut hashes));
            hashes.iter_mut().for_each(|h| *h &= quality);
            hashes
        };
        let refs = |columns: &[Vec<u64>]| -> Vec<&'static [u64]> {
            columns.iter().map(|c| &*c.clone().leak()).collect()
        };
        let (build_columns, probe_columns) = (columns(&build), columns(&probe));
        let (build_hashes, probe_hashes) = (hashes(&build_columns), hashes(&probe_columns));
        let (build_keys, probe_keys) = (refs(&build_columns), refs(&probe_columns));

        let mut parts: Vec<Part> = (0..1 << bits).map(|_| Part::new(words)).collect();
        for row in 0..build.len() {
            let part = build_hashes[row].checked_shr(64 - bits).unwrap_or(0) as usize;
            let key: Vec<&[u64]> = build_keys.iter().map(|k| &k[row..=row]).collect();
            parts[part].add(&build_hashes[row..=row], &key, &[row as u32]);
        }
        let parted = Hashed::new(parts.into_iter().map(Part::finish).collect());
        let whole = Hashed::build(&build_hashes, &build_keys);
        let naive: Vec<(u32, u32)> = (0..probe.len())
            .flat_map(|p| (0..build.len()).map(move |b| (p, b)))
            .filter(|(p, b)| probe[*p] == build[*b])
            .map(|(p, b)| (p as u32, b as u32))
            .collect();
        for table in [parted, whole] {
            prop_assert_eq!(table.len(), build.len());
            prop_assert_eq!(table.is_unique(), build.iter().collect::<BTreeSet<_>>().len() == build.len());
            let mut first = vec![];
            table.find_first(&probe_hashes, &probe_keys, &mut first);
            for (row, key) in probe.iter().enumerate() {
                let naive = build.iter().position(|b| b == key);
                prop_assert_eq!(first[row], naive.map_or(NONE, |r| r as u32));
            }
            let (mut at, mut probed, mut built, mut all) = (Probe::new(), vec![], vec![], vec![]);
            table.probe(&probe_hashes, &probe_keys, &mut at);
            loop {
                let more = table.matches(&mut at, &mut probed, &mut built, limit);
                prop_assert!(built.len() <= limit && built.len() == probed.len());
                prop_assert!(!more || built.len() == limit, "an early end");
                all.extend(probed.iter().copied().zip(built.iter().copied()));
                if !more {
                    break;
                }
            }
            prop_assert_eq!(&all, &naive);
        }
    }

    /// Rows divided by their hashes against nested loops: chunks, NULLs, partitions joined in any order, bad hashes.
    #[test]
    fn by_partition_of_hashes(
        (build, valid) in column(0u64..60),
        repeats in 1u64..3,
        words in 1usize..=5,
        bits in 0u32..5,
        chunk in prop::sample::select(vec![1usize, 7, 100, 5000]),
        quality in prop::sample::select(vec![u64::MAX, 3 << 62, 0]),
    ) {
        // Without repeats, the rows are their own keys.
        let key = |row: usize| if repeats == 1 { row as u64 } else { build[row] };
        let columns = |keys: &[u64]| -> Vec<Vec<u64>> {
            (0..words as u64).map(|word| keys.iter().map(|key| key * (word + 1)).collect()).collect()
        };
        let hashes = |columns: &[Vec<u64>]| {
            let mut hashes = vec![];
            hash_u64(&columns[0], 1, &mut hashes);
            hashes.iter_mut().for_each(|hash| *hash &= quality);
            hashes
        };
        let keys: Vec<u64> = (0..build.len()).map(key).collect();
        let build_columns = columns(&keys);
        let build_hashes = hashes(&build_columns);
        let partitions = HashPartitions::new(bits);
        let firsts = (0..keys.len().max(1)).step_by(chunk);
        let chunks = firsts.map(|first| {
            let rows = first..keys.len().min(first + chunk);
            let columns: Vec<&[u64]> = build_columns.iter().map(|column| &column[rows.clone()]).collect();
            let valid = valid.as_ref().map(|valid| &valid[rows.clone()]);
            partitions.divide(&build_hashes[rows.clone()], &columns, valid, first)
        });
        let chunks: Vec<DividedHashes> = chunks.collect();
        let parts: Vec<Filled> = (0..partitions.count()).map(|part| partitions.fill(part, &chunks)).collect();
        let at_once = Hashed::new(parts.clone());
        let joined = HashedParts::of(&parts);
        let mut joined_keys: Vec<_> = parts.into_iter().enumerate().rev().map(|(part, filled)| joined.join(part, filled)).collect();
        joined_keys.reverse();
        let probe: Vec<u64> = (0..80).collect();
        let probe_columns = columns(&probe);
        let probe_hashes = hashes(&probe_columns);
        let probe_columns: Vec<&[u64]> = probe_columns.iter().map(Vec::as_slice).collect();
        let rows_of = |key: &u64| -> Vec<u32> {
            (0..keys.len()).filter(|row| keys[*row] == *key && is(&valid, *row)).map(|row| row as u32).collect()
        };
        let rows: Vec<Vec<u32>> = probe.iter().map(rows_of).collect();
        for table in [joined.finish(joined_keys), at_once] {
            let there = (0..keys.len()).filter(|row| is(&valid, *row));
            prop_assert_eq!(table.len(), there.clone().count());
            let different: BTreeSet<u64> = there.map(|row| keys[row]).collect();
            prop_assert_eq!(table.is_unique(), different.len() == table.len());
            let mut first = vec![];
            table.find_first(&probe_hashes, &probe_columns, &mut first);
            let wanted: Vec<u32> = rows.iter().map(|rows| rows.first().copied().unwrap_or(NONE)).collect();
            prop_assert_eq!(first, wanted);
            let mut at = Probe::new();
            table.probe(&probe_hashes, &probe_columns, &mut at);
            // Numbers of groups are those of one list of all rows.
            prop_assert_eq!(table.grouped().is_none(), table.is_unique());
            if let Some((starts, all)) = table.grouped() {
                for (group, rows) in at.groups().iter().zip(&rows) {
                    let group = *group as usize;
                    let found = if rows.is_empty() { &[][..] } else { &all[starts[group] as usize..starts[group + 1] as usize] };
                    prop_assert_eq!(found, &rows[..]);
                }
            }
            let (mut probed, mut built) = (vec![], vec![]);
            prop_assert!(!table.matches(&mut at, &mut probed, &mut built, usize::MAX));
            prop_assert_eq!(built, rows.concat());
        }
    }
}

/// So many rows that there are several partitions, which prefetch.
#[test]
fn many_rows_are_found_by_partition() {
    let rows = 200_000u64;
    let keys: Vec<u64> = (0..rows).map(|row| (row * 7_919 % 99_991) << 40).collect();
    let mut hashes = vec![];
    hash_u64(&keys, 1, &mut hashes);
    let partitions = HashPartitions::of_rows(keys.len());
    assert_eq!(partitions.count(), 8);
    assert_eq!(HashPartitions::of_rows(0).count(), 1);
    let size = 1 << 16;
    let chunks = keys.chunks(size).zip(hashes.chunks(size)).enumerate();
    let chunks: Vec<DividedHashes> = chunks
        .map(|(nth, (keys, hashes))| partitions.divide(hashes, &[keys], None, nth * size))
        .collect();
    let parts = (0..partitions.count()).map(|part| partitions.fill(part, &chunks));
    let table = Hashed::new(parts.collect());
    let at_once = Hashed::build(&hashes, &[&keys]);
    let (mut found, mut wanted) = ((vec![], vec![]), (vec![], vec![]));
    for (table, pairs) in [(&table, &mut found), (&at_once, &mut wanted)] {
        let mut probe = Probe::new();
        table.probe(&hashes, &[&keys], &mut probe);
        assert!(!table.matches(&mut probe, &mut pairs.0, &mut pairs.1, usize::MAX));
    }
    assert!(found == wanted && found.0.len() > 2 * keys.len());
}

#[test]
fn nulls_find_nothing() {
    let mut rows = [3, 4, NONE];
    exclude(&mut rows, &[true, false, true]);
    assert_eq!(rows, [3, NONE, NONE]);
}

#[test]
#[should_panic]
fn a_key_outside_the_bounds_is_refused() {
    Direct::new(5, 9).set(&[10], &[0]);
}

#[test]
#[should_panic(expected = "lies outside")]
fn a_value_outside_the_bit_vector_is_refused() {
    Bits::new(5, 9).set(&[4], None);
}
