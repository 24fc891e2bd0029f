use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use proptest::prelude::*;

use super::*;
use crate::logical::relation::Function;

/// Keys are far apart, so that no small dense index will do.
const APART: i64 = 1 << 12;

/// A worker's batches of keys; `None` is NULL.
type Keys = Vec<Vec<Option<i64>>>;

/// Keys of a worker: most go on where the last batch ended.
fn keys() -> impl Strategy<Value = Keys> {
    let steps = prop::collection::vec((0i64..3, 0u8..20), 0..12);
    let batches = prop::collection::vec((any::<bool>(), steps), 0..5);
    (0i64..20, batches).prop_map(|(from, batches)| {
        let mut last = from;
        let mut batch = |(falls, steps): (bool, Vec<(i64, u8)>)| {
            last = if falls && last % 7 == 0 { 0 } else { last };
            let mut key = |(step, null): (i64, u8)| {
                last += step;
                (null > 0 || last % 5 > 0).then_some(last * APART)
            };
            steps.into_iter().map(&mut key).collect::<Vec<_>>()
        };
        batches.into_iter().map(&mut batch).collect()
    })
}

fn vector(keys: &[Option<i64>]) -> Vector {
    let valid: Vec<bool> = keys.iter().map(Option::is_some).collect();
    Vector {
        values: Values::Int(keys.iter().map(|key| key.unwrap_or(0)).collect()),
        valid: valid.contains(&false).then_some(valid),
    }
}

proptest! {
    /// In order or not, by one worker or several: as a map would have them.
    #[test]
    fn groups_by_a_wide_key(workers in prop::collection::vec(keys(), 1..5), dense: bool) {
        let bounds = (0, i128::from(100 * APART));
        let types = |_| Type::of(&DataType::Int64, true).unwrap().within(bounds);
        let (count, sum) = (Function::Count, Function::Sum);
        let folds = [(2, count), (3, sum)].map(|(var, function)| Fold { var, function, arg: Some(1) });
        let most = if dense { 1 << 20 } else { 0 };
        let mut all: Option<Grouping> = None;
        let mut naive: BTreeMap<Option<i64>, (i64, i128)> = BTreeMap::new();
        for worker in &workers {
            let own = [types(0)];
            let mut groups = Grouping::new(GroupedBy::Keys(&own), &folds, &types, most, &[]).unwrap();
            for keys in worker {
                let mut batch = Batch::new(4);
                batch.restart(keys.len());
                batch.set(0, vector(keys));
                let values: Vec<i64> = (0..keys.len() as i64).collect();
                batch.set(1, Vector::new(Values::Int(values)));
                groups.add(&batch, &[0], None).unwrap();
                for (value, key) in (0..).zip(keys) {
                    let state = naive.entry(*key).or_default();
                    (state.0, state.1) = (state.0 + 1, state.1 + value);
                }
            }
            match &mut all {
                None => all = Some(groups),
                Some(all) => all.merge(groups).unwrap(),
            }
        }
        let types = |var| match var {
            2 => Type::of(&DataType::Int64, false).unwrap(),
            3 => Type::of(&DataType::Decimal128(38, 0), true).unwrap(),
            _ => types(var),
        };
        let found = all.unwrap().finish(&folds, &types).unwrap();
        let (Values::Int(keys), Values::Int(counts)) = (&found.keys[0].values, &found.results[0].values) else {
            panic!("{found:?}");
        };
        let Values::Wide(sums) = &found.results[1].values else { panic!("{found:?}") };
        let valid = |row: usize| found.keys[0].valid.as_ref().is_none_or(|valid| valid[row]);
        let rows = (0..found.groups).map(|row| (valid(row).then_some(keys[row]), (counts[row], sums[row])));
        prop_assert_eq!(found.groups, naive.len());
        prop_assert_eq!(rows.collect::<BTreeMap<_, _>>(), naive);
    }
}

/// The number of rows.
fn count() -> [Fold; 1] {
    [Fold {
        var: 2,
        function: Function::Count,
        arg: None,
    }]
}

/// A grouping by two keys that a dense index is not possible for, with a count.
fn by_two_keys() -> Grouping {
    let types = |_| Type::of(&DataType::Int64, true).unwrap();
    Grouping::new(
        GroupedBy::Keys(&[types(0), types(1)]),
        &count(),
        &types,
        0,
        &[],
    )
    .unwrap()
}

/// Adds a row for each of these keys, of which each seventh is NULL.
fn add_keys(groups: &mut Grouping, keys: impl Iterator<Item = i64>) {
    let keys: Vec<i64> = keys.collect();
    for some in keys.chunks(algebra::VECTOR_ROWS) {
        let mut batch = Batch::new(3);
        batch.restart(some.len());
        let key = |key: &i64| (key % 7 > 0).then_some(*key);
        batch.set(0, vector(&some.iter().map(key).collect::<Vec<_>>()));
        batch.set(1, Vector::new(Values::Int(some.to_vec())));
        groups.add(&batch, &[0, 1], None).unwrap();
    }
}

/// The counts by the second key.
fn counts(groups: Grouping) -> BTreeMap<i64, i64> {
    let types = |_| Type::of(&DataType::Int64, true).unwrap();
    let found = groups.finish(&count(), &types).unwrap();
    let (Values::Int(keys), Values::Int(counts)) =
        (&found.keys[1].values, &found.results[0].values)
    else {
        panic!("{found:?}");
    };
    let valid = found.keys[0].valid.as_deref();
    let is_null = |row: usize| !valid.is_none_or(|valid| valid[row]);
    assert!((0..found.groups).all(|row| is_null(row) == (keys[row] % 7 == 0)));
    let all: BTreeMap<i64, i64> = keys.iter().copied().zip(counts.iter().copied()).collect();
    assert_eq!(all.len(), found.groups, "a key has several groups");
    all
}

/// Keys that are all new are not looked for; where they come again, they are once more.
#[test]
fn groups_that_hardly_shrink_are_loose() {
    const KEYS: i64 = 150_000;
    let mut groups = by_two_keys();
    add_keys(&mut groups, 0..KEYS);
    assert!(groups.is_loose() && groups.is_by_hash());
    assert_eq!(groups.group_count(), KEYS as usize);
    let memory = groups.memory();
    for _ in 0..7 {
        add_keys(&mut groups, 0..KEYS);
    }
    assert!(!groups.is_loose());
    assert!(groups.memory() < 3 * memory, "{}", groups.memory());
    // New keys make it loose again; all are one at last.
    add_keys(&mut groups, KEYS..10 * KEYS);
    assert!(groups.is_loose());
    add_keys(&mut groups, 9 * KEYS..10 * KEYS);
    groups.tighten().unwrap();
    assert!(!groups.is_loose());
    let expected = (0..10 * KEYS).map(|key| {
        let count = match key / KEYS {
            0 => 8,
            9 => 2,
            _ => 1,
        };
        (key, count)
    });
    assert_eq!(counts(groups), expected.collect());
}

/// Few keys of many rows stay in a table that finds them.
#[test]
fn groups_that_shrink_are_not_loose() {
    let mut groups = by_two_keys();
    for _ in 0..3 {
        add_keys(&mut groups, (0..100_000).flat_map(|key| [key, key]));
    }
    assert!(!groups.is_loose());
    assert_eq!(groups.group_count(), 100_000);
}

/// Workers with loose groups and others, merged by partition and one after the other.
#[test]
fn workers_are_merged_by_partition() {
    let ranges = [0..200_000, 150_000..150_010, 100_000..180_000];
    let workers = || {
        ranges.clone().map(|range| {
            let mut groups = by_two_keys();
            add_keys(&mut groups, range);
            groups
        })
    };
    let mut expected: BTreeMap<i64, i64> = BTreeMap::new();
    for key in ranges.clone().into_iter().flatten() {
        *expected.entry(key).or_default() += 1;
    }
    let sources = workers().map(|groups| groups.divided(4, false).unwrap());
    let mut found = BTreeMap::new();
    for part in 0..16 {
        let groups = Grouping::of_partition(&sources, part).unwrap();
        let some = counts(groups);
        assert!(some.len() > 200_000 / 20, "{}", some.len());
        found.extend(some);
    }
    assert_eq!(found, expected);
    let [mut first, second, third] = workers();
    first.merge(second).unwrap();
    first.merge(third).unwrap();
    first.tighten().unwrap();
    assert_eq!(counts(first), expected);
}

/// A worker's rows: a string that is short or long by its number, or NULL, and a number of a small range.
type TextRows = Vec<(Option<u32>, i64)>;

fn text_rows() -> impl Strategy<Value = TextRows> {
    // Few keys, or nearly all of them new: the number of the first.
    let some = (prop::option::weighted(0.9, 0u32..40), 0i64..3);
    prop::collection::vec(some, 0..60)
}

/// A string of this number: every other one is longer than a view holds, if any is.
fn text_of(number: u32, is_long: bool) -> String {
    if is_long && number % 2 == 1 {
        format!("a long string {number}")
    } else {
        format!("{number}")
    }
}

fn texts<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> Vector {
    let texts: Vec<Option<&str>> = texts.collect();
    let valid: Vec<bool> = texts.iter().map(Option::is_some).collect();
    let array = arrow::array::StringViewArray::from_iter(texts);
    let texts = crate::vector::strings::Strings::new(Arc::new(array));
    Vector {
        values: Values::Text(texts),
        valid: valid.contains(&false).then_some(valid),
    }
}

fn add_texts(groups: &mut Grouping, rows: &[(Option<String>, i64)], keys: &[Var]) {
    for rows in rows.chunks(algebra::VECTOR_ROWS) {
        let mut batch = Batch::new(3);
        batch.restart(rows.len());
        batch.set(0, texts(rows.iter().map(|(text, _)| text.as_deref())));
        let numbers = rows.iter().map(|(_, number)| *number).collect();
        batch.set(1, Vector::new(Values::Int(numbers)));
        groups.add(&batch, keys, None).unwrap();
    }
}

/// A grouping by a string, and by a number if `both`, with a count.
fn by_text(both: bool) -> Grouping {
    let types = text_types();
    let keys = [types(0), types(1)];
    let keys = if both { &keys[..] } else { &keys[..1] };
    Grouping::new(GroupedBy::Keys(keys), &count(), &types, 0, &[]).unwrap()
}

fn text_types() -> impl Fn(Var) -> Type {
    |var| match var {
        0 => Type::of(&DataType::Utf8View, true).unwrap(),
        1 => Type::of(&DataType::Int64, false).unwrap().within((0, 2)),
        _ => Type::of(&DataType::Int64, false).unwrap(),
    }
}

/// The counts by both keys; the second is 0 if there is none.
fn text_counts(groups: Grouping) -> BTreeMap<(Option<String>, i64), i64> {
    let found = groups.finish(&count(), &text_types()).unwrap();
    let (Values::Text(texts), Values::Int(counts)) =
        (&found.keys[0].values, &found.results[0].values)
    else {
        panic!("{found:?}");
    };
    let array = texts.array().unwrap();
    let array = arrow::array::AsArray::as_string_view(&array);
    let valid = found.keys[0].valid.as_deref();
    let entry = |row: usize| {
        let is_there = valid.is_none_or(|valid| valid[row]);
        let number = match found.keys.get(1).map(|key| &key.values) {
            Some(Values::Int(numbers)) => numbers[row],
            _ => 0,
        };
        let text = is_there.then(|| array.value(row).to_string());
        ((text, number), counts[row])
    };
    let all: BTreeMap<_, _> = (0..found.groups).map(entry).collect();
    assert_eq!(all.len(), found.groups, "a key has several groups");
    all
}

proptest! {
    /// Workers with short strings, with long ones, and with both, loose or not, merged one after the other or by partition, in
    /// chunks of any size: as a map would have them.
    #[test]
    fn groups_by_a_string(
        workers in prop::collection::vec((text_rows(), any::<bool>(), any::<bool>()), 1..5),
        both: bool,
        by_partition: bool,
        size in 1usize..30,
    ) {
        let keys = if both { &[0, 1][..] } else { &[0] };
        let mut expected: BTreeMap<(Option<String>, i64), i64> = BTreeMap::new();
        let mut all: Vec<Grouping> = vec![];
        for (rows, is_long, is_loose) in workers {
            let text = |(number, other): &(Option<u32>, i64)| (number.map(|number| text_of(number, is_long)), *other);
            let rows: Vec<_> = rows.iter().map(text).collect();
            let mut own = by_text(both);
            own.chunks.size = size;
            // In several batches, so that long strings may come to groups that are there.
            let (first, second) = rows.split_at(rows.len() / 2);
            add_texts(&mut own, first, keys);
            if is_loose {
                own.loosen();
            }
            for some in second.chunks(11) {
                add_texts(&mut own, some, keys);
            }
            for (text, number) in rows {
                *expected.entry((text, if both { number } else { 0 })).or_default() += 1;
            }
            all.push(own);
        }
        let mut found = BTreeMap::new();
        if by_partition {
            let interned = all.iter().all(Grouping::is_interned);
            let sources: Vec<_> = all.into_iter().map(|groups| groups.divided(2, interned).unwrap()).collect();
            for part in 0..4 {
                found.extend(text_counts(Grouping::of_partition(&sources, part).unwrap()));
            }
        } else {
            let mut all = all.into_iter();
            let mut merged = all.next().unwrap();
            all.for_each(|own| merged.merge(own).unwrap());
            merged.tighten().unwrap();
            found.extend(text_counts(merged));
        }
        prop_assert_eq!(found, expected);
    }
}

/// Long strings that are all new are not looked for; where they come again, they are. They are merged by partition.
#[test]
fn long_strings_are_loose_and_merged_by_partition() {
    const KEYS: u32 = 140_000;
    let row = |number: u32| {
        (
            Some(format!("a long string {number}")),
            i64::from(number % 3),
        )
    };
    for both in [true, false] {
        let keys = if both { &[0, 1][..] } else { &[0] };
        let worker = |numbers: std::ops::Range<u32>| {
            let mut groups = by_text(both);
            add_texts(&mut groups, &numbers.map(row).collect::<Vec<_>>(), keys);
            groups
        };
        let mut again = worker(0..KEYS);
        assert!(again.is_loose());
        let (groups, memory) = (again.group_count(), again.memory());
        assert_eq!(groups, KEYS as usize);
        for _ in 0..7 {
            let rows: Vec<_> = (0..KEYS).map(row).collect();
            add_texts(&mut again, &rows, keys);
        }
        assert!(!again.is_loose());
        assert!(
            again.memory() < 3 * memory,
            "{} and {memory}",
            again.memory()
        );
        // One that finds its groups, one that does not, and one with few.
        let sources = [again, worker(100..KEYS), worker(KEYS..KEYS + 10)];
        assert!(sources.iter().all(Grouping::is_by_hash));
        let held: usize = sources.iter().map(Grouping::memory).sum();
        let sources = sources.map(|groups| groups.divided(3, false).unwrap());
        let parts = (0..8).map(|part| Grouping::of_partition(&sources, part).unwrap());
        let parts: Vec<_> = parts.collect();
        let memory: usize = parts.iter().map(Grouping::memory).sum();
        assert!(memory < 2 * held, "{memory} and {held}");
        let counted: BTreeMap<_, _> = parts.into_iter().flat_map(text_counts).collect();
        assert_eq!(counted.len(), KEYS as usize + 10);
        let count = |number| {
            let (text, number) = row(number);
            counted[&(text, if both { number } else { 0 })]
        };
        assert_eq!([count(99), count(100), count(KEYS)], [8, 9, 1]);
    }
}

/// Short strings that are all new are not looked for, nor are long ones that come later; and are merged with others that are.
#[test]
fn loose_groups_meet_long_strings() {
    const KEYS: u32 = 140_000;
    let row = |number: u32, is_long: bool| (Some(text_of(number, is_long)), i64::from(number % 3));
    for both in [true, false] {
        let keys = if both { &[0, 1][..] } else { &[0] };
        let worker = |numbers: std::ops::Range<u32>, is_long: bool| {
            let mut groups = by_text(both);
            let rows: Vec<_> = numbers.map(|number| row(number, is_long)).collect();
            add_texts(&mut groups, &rows, keys);
            groups
        };
        let mut first = worker(0..KEYS, false);
        assert!(first.is_loose() && first.is_by_hash());
        let short = [worker(0..KEYS, false), worker(10..KEYS, false)];
        assert!(short.iter().all(|groups| groups.is_by_hash()));
        let sources = short.map(|groups| groups.divided(2, false).unwrap());
        let parts = (0..4).map(|part| Grouping::of_partition(&sources, part).unwrap());
        let counted: BTreeMap<_, _> = parts.flat_map(text_counts).collect();
        assert_eq!(counted.len(), KEYS as usize);
        assert_eq!(counted.values().filter(|count| **count == 1).count(), 10);
        let long: Vec<_> = (0..10).map(|number| row(number, true)).collect();
        add_texts(&mut first, &long, keys);
        assert!(first.is_loose() && first.is_by_hash());
        // One that is loose, and one that has long strings, either way round.
        let mut second = worker(100..KEYS, false);
        assert!(second.is_loose());
        second.merge(first).unwrap();
        assert!(!second.is_loose());
        let mut third = worker(0..10, true);
        third.merge(worker(0..KEYS, false)).unwrap();
        third.tighten().unwrap();
        second.merge(third).unwrap();
        let counted = text_counts(second);
        assert_eq!(counted.len(), KEYS as usize + 5);
        let count = |number, is_long| {
            let (text, number) = row(number, is_long);
            counted[&(text, if both { number } else { 0 })]
        };
        // Of even numbers, both are the same string.
        assert_eq!(
            [count(3, false), count(4, false), count(3, true)],
            [2, 4, 2]
        );
        assert_eq!([count(50, false), count(200, false)], [2, 3]);
    }
}

/// A row: a float that may be NULL or NaN, and a number that may be NULL, which are the keys; a number, and a string by its number.
type MixedRow = (Option<f64>, Option<i64>, i64, Option<u32>);

/// By the keys: the count, the sum of the numbers and the least string.
type Mixed = BTreeMap<(Option<u64>, Option<i64>), (i64, i128, Option<String>)>;

fn mixed_rows() -> impl Strategy<Value = Vec<MixedRow>> {
    let floats = vec![None, Some(f64::NAN), Some(-0.0), Some(0.0), Some(1.5)];
    let float = prop::sample::select(floats);
    let number = prop::option::weighted(0.8, 0i64..6);
    let text = prop::option::weighted(0.8, 0u32..30);
    prop::collection::vec((float, number, -5i64..5, text), 0..60)
}

fn mixed_folds() -> [Fold; 3] {
    [
        (4, Function::Count, None),
        (5, Function::Sum, Some(2)),
        (6, Function::Min, Some(3)),
    ]
    .map(|(var, function, arg)| Fold { var, function, arg })
}

fn mixed_types(var: Var) -> Type {
    let data = match var {
        0 => DataType::Float64,
        3 | 6 => DataType::Utf8View,
        5 => DataType::Decimal128(38, 0),
        _ => DataType::Int64,
    };
    Type::of(&data, true).unwrap()
}

fn add_mixed(groups: &mut Grouping, rows: &[MixedRow]) {
    let mut batch = Batch::new(7);
    batch.restart(rows.len());
    let floats = rows.iter().map(|row| row.0.unwrap_or_default());
    let valid: Vec<bool> = rows.iter().map(|row| row.0.is_some()).collect();
    batch.set(
        0,
        Vector {
            values: Values::Float(floats.collect()),
            valid: valid.contains(&false).then_some(valid),
        },
    );
    batch.set(1, vector(&rows.iter().map(|row| row.1).collect::<Vec<_>>()));
    let numbers = rows.iter().map(|row| row.2).collect();
    batch.set(2, Vector::new(Values::Int(numbers)));
    let strings = rows.iter().map(|row| row.3.map(|text| text_of(text, true)));
    let strings: Vec<Option<String>> = strings.collect();
    batch.set(3, texts(strings.iter().map(Option::as_deref)));
    groups.add(&batch, &[0, 1], None).unwrap();
}

fn mixed_results(groups: Grouping) -> Mixed {
    let found = groups.finish(&mixed_folds(), &mixed_types).unwrap();
    let (keys, results) = (&found.keys, &found.results);
    let (Values::Float(floats), Values::Int(numbers)) = (&keys[0].values, &keys[1].values) else {
        panic!("{keys:?}");
    };
    let (Values::Int(counts), Values::Wide(sums), Values::Text(texts)) =
        (&results[0].values, &results[1].values, &results[2].values)
    else {
        panic!("{results:?}");
    };
    let is_there = |vector: &Vector, row: usize| {
        let valid = vector.valid.as_ref();
        valid.is_none_or(|valid| valid[row])
    };
    let array = texts.array().unwrap();
    let array = arrow::array::AsArray::as_string_view(&array);
    let entry = |row: usize| {
        let float = is_there(&keys[0], row).then(|| floats[row].to_bits());
        let number = is_there(&keys[1], row).then(|| numbers[row]);
        let text = is_there(&results[2], row).then(|| array.value(row).to_string());
        ((float, number), (counts[row], sums[row], text))
    };
    let all: Mixed = (0..found.groups).map(entry).collect();
    assert_eq!(all.len(), found.groups, "a key has several groups");
    all
}

proptest! {
    /// Workers that are loose and others, with NULL and NaN among the keys, in chunks of any size, merged by partition or one after
    /// the other: as a map would have them.
    #[test]
    fn loose_groups_are_kept_in_chunks(
        workers in prop::collection::vec((mixed_rows(), any::<bool>()), 1..4),
        size in 1usize..30,
        bits in prop::option::of(0u32..=chunks::MOST_BITS),
    ) {
        let keys = [mixed_types(0), mixed_types(1)];
        let mut expected = Mixed::new();
        let mut all: Vec<Grouping> = vec![];
        for (rows, is_loose) in &workers {
            let by = GroupedBy::Keys(&keys);
            let mut own = Grouping::new(by, &mixed_folds(), &mixed_types, 0, &[]).unwrap();
            own.chunks.size = size;
            for (nth, some) in rows.chunks(7).enumerate() {
                if *is_loose && nth == 1 {
                    own.loosen();
                }
                add_mixed(&mut own, some);
            }
            for (float, number, value, text) in rows {
                let float = float.map(crate::vector::key_encoding::word_of);
                let state = expected.entry((float, *number)).or_default();
                (state.0, state.1) = (state.0 + 1, state.1 + i128::from(*value));
                let text = text.map(|text| text_of(text, true));
                let least = [state.2.take(), text].into_iter().flatten().min();
                state.2 = least;
            }
            all.push(own);
        }
        let mut found = Mixed::new();
        if let Some(bits) = bits {
            let sources: Vec<_> = all.into_iter().map(|groups| groups.divided(bits, false).unwrap()).collect();
            for part in 0..1 << bits {
                found.extend(mixed_results(Grouping::of_partition(&sources, part).unwrap()));
            }
        } else {
            let mut all = all.into_iter();
            let mut merged = all.next().unwrap();
            all.for_each(|own| merged.merge(own).unwrap());
            merged.tighten().unwrap();
            found.extend(mixed_results(merged));
        }
        prop_assert_eq!(found, expected);
    }
}

/// As they are spilled: chunk by chunk, in the order in which they came.
#[test]
fn chunks_come_in_their_order() {
    const KEYS: i64 = 10_000;
    let mut groups = by_two_keys();
    groups.chunks.size = 1_000;
    groups.loosen();
    add_keys(&mut groups, 0..KEYS);
    assert!(groups.is_loose());
    assert_eq!(groups.group_count(), KEYS as usize);
    // Two words, a word of NULLs and a hash; a count.
    assert!(groups.memory() >= 5 * 8 * KEYS as usize);
    let mut chunks: Vec<Vec<i64>> = vec![];
    let all = groups.each_chunk(|some| {
        let keys = some.keys(&some.numbers())?;
        let Values::Int(keys) = &keys[1].values else {
            panic!("{keys:?}");
        };
        chunks.push(keys.clone());
        Ok(())
    });
    all.unwrap();
    assert!(chunks.iter().all(|chunk| chunk.len() < 2_000));
    chunks.iter_mut().for_each(|chunk| chunk.sort_unstable());
    assert_eq!(chunks.concat(), (0..KEYS).collect::<Vec<_>>());
}
