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
