use super::*;
use algebra::order::*;
use std::cmp::Ordering;

fn flipped(order: Ordering, direction: Direction) -> Ordering {
    match direction {
        Direction::Ascending => order,
        Direction::Descending => order.reverse(),
    }
}

fn direction() -> BoxedStrategy<Direction> {
    prop::sample::select(vec![Direction::Ascending, Direction::Descending]).boxed()
}

/// Order of two values of which either may be null; nulls' place does not follow the direction.
fn naive<T>(
    a: Option<T>,
    b: Option<T>,
    first: bool,
    direction: Direction,
    cmp: impl Fn(&T, &T) -> Ordering,
) -> Ordering {
    match (a, b) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) if first => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) if first => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(a), Some(b)) => flipped(cmp(&a, &b), direction),
    }
}

/// What encodes the values of a column into one or more columns of words.
type Encode<T> = fn(&[T], Option<&[bool]>, Direction) -> Vec<Vec<u64>>;

/// A column with its nulls, the direction of the order, and whether nulls come first.
type Case<'a, T> = (&'a (Vec<T>, Option<Vec<bool>>), Direction, bool);

/// The words of rows compare as the values do.
fn words_compare<T: Copy>(
    ((values, valid), direction, first): Case<'_, T>,
    cmp: fn(&T, &T) -> Ordering,
    encode: Encode<T>,
) -> TestCaseResult {
    at_each_level(|| {
        let mut words: Vec<Vec<u64>> = vec![vec![]];
        if let Some(valid) = valid {
            encode_nulls(valid, first, &mut words[0]);
        } else {
            words[0] = vec![0; values.len()];
        }
        words.extend(encode(values, valid.as_deref(), direction));
        let value = |row: usize| is(valid, row).then(|| values[row]);
        let key = |row: usize| words.iter().map(|w| w[row]).collect::<Vec<_>>();
        for row in 1..values.len() {
            let order = naive(value(row - 1), value(row), first, direction, cmp);
            prop_assert_eq!(key(row - 1).cmp(&key(row)), order);
        }
        Ok(())
    })
}

fn one(encode: impl FnOnce(&mut Vec<u64>)) -> Vec<Vec<u64>> {
    let mut words = vec![1];
    encode(&mut words);
    vec![words]
}

properties! {
    #[test]
    fn words_of_integers(column in column(integer()), direction in direction(), first in any::<bool>()) {
        words_compare((&column, direction, first), Ord::cmp, |v, valid, d| one(|w| encode_i64(v, valid, d, w)))?;
    }

    #[test]
    fn words_of_codes(column in column(any::<u64>()), direction in direction(), first in any::<bool>()) {
        words_compare((&column, direction, first), Ord::cmp, |v, valid, d| one(|w| encode_u64(v, valid, d, w)))?;
    }

    #[test]
    fn words_of_floats(column in column(float()), direction in direction(), first in any::<bool>()) {
        words_compare((&column, direction, first), f64::total_cmp, |v, valid, d| one(|w| encode_f64(v, valid, d, w)))?;
    }

    #[test]
    fn words_of_wide_integers(column in column(wide()), direction in direction(), first in any::<bool>()) {
        words_compare((&column, direction, first), Ord::cmp, |v, valid, d| {
            let (mut high, mut low) = (vec![], vec![]);
            encode_i128(v, valid, d, &mut high, &mut low);
            vec![high, low]
        })?;
    }
}

/// Columns of words: constant, few values, values that differ in high bytes or in low ones.
fn keys() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let word = prop::sample::select(vec![0u32, 4, 20, 64]);
    (
        1usize..4,
        prop_oneof![9 => 0usize..300, 1 => 3000usize..6000],
    )
        .prop_flat_map(move |(words, rows)| {
            vec(
                (word.clone(), 0u32..2).prop_flat_map(move |(bits, high)| {
                    let shift = if high == 1 && bits > 0 { 64 - bits } else { 0 };
                    let most = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
                    vec((0..=most).prop_map(move |v| v << shift), rows)
                }),
                words,
            )
        })
}

properties! {
    cases: 64;

    #[test]
    fn sorted_and_stable(keys in keys(), reversed in any::<bool>()) {
        let mut rows: Vec<u32> = (0..keys[0].len() as u32).collect();
        if reversed {
            rows.reverse();
        }
        let columns: Vec<&[u64]> = keys.iter().map(Vec::as_slice).collect();
        let key = |row: u32| columns.iter().map(|c| c[row as usize]).collect::<Vec<_>>();
        let mut naive = rows.clone();
        naive.sort_by_key(|row| key(*row));
        let mut sorter = Sorter::new();
        sorter.sort(&columns, &mut rows);
        prop_assert_eq!(&rows, &naive);
        sorter.sort(&columns, &mut rows);
        prop_assert_eq!(&rows, &naive);
    }

    #[test]
    fn the_first_of_an_order(keys in keys(), limit in prop_oneof![0usize..5, 0usize..400, Just(3000)], step in 1usize..500) {
        let count = keys[0].len();
        let name = |row: usize| (row as u64) << 20;
        let mut naive: Vec<usize> = (0..count).collect();
        naive.sort_by_key(|row| keys.iter().map(|c| c[*row]).collect::<Vec<_>>());
        naive.truncate(limit);
        let naive: Vec<u64> = naive.into_iter().map(name).collect();
        let mut top = Top::new(keys.len(), limit);
        for _ in 0..2 {
            for begin in (0..count).step_by(step) {
                let rows = begin..(begin + step).min(count);
                let columns: Vec<&[u64]> = keys.iter().map(|c| &c[rows.clone()]).collect();
                top.push(&columns, &rows.map(name).collect::<Vec<_>>());
            }
            prop_assert_eq!(&top.finish(), &naive);
        }
    }
}

#[test]
fn a_bar_is_known_once_the_first_are() {
    let keys: Vec<u64> = (0..10_000).rev().collect();
    let mut top = Top::new(1, 10);
    assert_eq!(top.bar(), None);
    top.push(&[&keys], &keys);
    assert!(top.bar().is_some_and(|bar| bar >= 9));
    assert_eq!(top.finish(), (0..10).collect::<Vec<_>>());
    assert_eq!(top.bar(), None);
}
