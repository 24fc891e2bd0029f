use std::sync::Arc;

use algebra::krao::Groups;
use arrow::array::{ArrayRef, AsArray, StringViewArray};
use arrow::datatypes::DataType;
use proptest::prelude::*;

use super::*;

/// Strings that a view holds whole, that it just does not, and NULL; some are the beginnings of others.
fn text() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        1 => Just(None),
        4 => "[ab]{0,3}".prop_map(Some),
        2 => "twelve byt[ab]{2}".prop_map(Some),
        4 => "twelve bytes[ab]{0,3}".prop_map(Some),
    ]
}

/// Rows of a string and a number.
fn rows() -> impl Strategy<Value = Vec<(Option<String>, i64)>> {
    prop::collection::vec((text(), 0i64..3), 0..50)
}

fn strings(rows: &[(Option<String>, i64)]) -> ArrayRef {
    let texts = rows.iter().map(|(text, _)| text.as_deref());
    Arc::new(StringViewArray::from_iter(texts))
}

/// The rows as vectors: the string as all of an array, or as rows of one in which they stand the other way round.
fn vectors(rows: &[(Option<String>, i64)], as_rows: bool) -> [Vector; 2] {
    let valid: Vec<bool> = rows.iter().map(|(text, _)| text.is_some()).collect();
    let own = if as_rows {
        let turned: Vec<_> = rows.iter().rev().cloned().collect();
        let places: Vec<u32> = (0..rows.len() as u32).rev().collect();
        Strings::new(strings(&turned)).at(&places)
    } else {
        Strings::new(strings(rows))
    };
    let texts = Vector {
        values: Values::Text(own),
        valid: valid.contains(&false).then_some(valid),
    };
    let numbers = rows.iter().map(|(_, number)| *number).collect();
    [texts, Vector::new(Values::Int(numbers))]
}

fn types() -> Vec<Type> {
    let of = |data, nullable| Type::of(&data, nullable).unwrap();
    vec![of(DataType::Utf8View, true), of(DataType::Int64, false)]
}

proptest! {
    /// Keys are found again as they were inserted, those of another worker too.
    #[test]
    fn keys_come_back(
        workers in prop::collection::vec((rows(), any::<bool>()), 1..4),
    ) {
        let layout = KeyEncoding::groups(types());
        let (mut all, mut interners) = (Groups::new(layout.words()), Vec::<Interner>::new());
        let mut expected: Vec<(Option<String>, i64)> = vec![];
        for (rows, as_rows) in &workers {
            let [texts, numbers] = vectors(rows, *as_rows);
            let (mut own, mut words) = (Vec::new(), KeyWords::default());
            layout.encode(&[&texts, &numbers], rows.len(), &mut StringKeys::Adding(&mut own), &mut words).unwrap();
            let (mut groups, mut out) = (Groups::new(layout.words()), vec![]);
            groups.insert(&words.hashes, &words.columns(), &mut out);
            let short = rows.iter().all(|(text, _)| text.as_ref().is_none_or(|text| text.len() <= 12));
            prop_assert_eq!(own.iter().all(|own| own.len() == 0), short);
            // As another worker's groups are taken.
            interners.resize_with(interners.len().max(own.len()), Interner::default);
            let maps: Vec<Vec<u32>> = interners.iter_mut().zip(&own).map(|(all, own)| all.adopt(own)).collect();
            let some: Vec<u32> = (0..groups.len() as u32).collect();
            layout.take(&groups, &some, &maps, &mut words);
            all.insert(&words.hashes, &words.columns(), &mut out);
            for row in rows {
                if !expected.contains(row) {
                    expected.push(row.clone());
                }
            }
        }
        let some: Vec<u32> = (0..all.len() as u32).collect();
        let column = |word| {
            let mut out = vec![];
            all.column(word, &some, &mut out);
            out
        };
        let words: Vec<Vec<u64>> = (0..layout.words()).map(column).collect();
        let found = layout.decode(&words, &interners).unwrap();
        let (Values::Text(texts), Values::Int(numbers)) = (&found[0].values, &found[1].values) else {
            panic!("{found:?}");
        };
        let array = texts.array().unwrap();
        let is_there = |row: usize| found[0].valid.as_ref().is_none_or(|valid| valid[row]);
        let text = |row: usize| is_there(row).then(|| array.as_string_view().value(row).to_string());
        let found: Vec<_> = (0..all.len()).map(|row| (text(row), numbers[row])).collect();
        prop_assert_eq!(found, expected);
    }

    /// A join finds equal strings, and none that the other side has not.
    #[test]
    fn keys_are_found(build in rows(), probe in rows(), as_rows: bool) {
        let layout = KeyEncoding::join(types());
        // Rows with a NULL are not inserted.
        let build: Vec<_> = build.into_iter().filter(|row| row.0.is_some()).collect();
        let (mut interners, mut words, mut out) = (vec![], KeyWords::default(), vec![]);
        let [texts, numbers] = vectors(&build, as_rows);
        layout.encode(&[&texts, &numbers], build.len(), &mut StringKeys::Adding(&mut interners), &mut words).unwrap();
        let mut groups = Groups::new(layout.words());
        groups.insert(&words.hashes, &words.columns(), &mut out);
        let built = out.clone();
        let [texts, numbers] = vectors(&probe, !as_rows);
        layout.encode(&[&texts, &numbers], probe.len(), &mut StringKeys::Known(&interners), &mut words).unwrap();
        groups.find(&words.hashes, &words.columns(), &mut out);
        for (row, found) in probe.iter().zip(&out) {
            let mut all = build.iter().zip(&built);
            let expected = all.find_map(|(own, group)| (own == row).then_some(*group));
            if row.0.is_some() {
                prop_assert_eq!(*found, expected.unwrap_or(u32::MAX));
            }
        }
        let valid = words.valid.unwrap_or_else(|| vec![true; probe.len()]);
        prop_assert_eq!(valid, probe.iter().map(|row| row.0.is_some()).collect::<Vec<_>>());
    }
}
