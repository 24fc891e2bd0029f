//! Joins of so many keys which are found by hash that all workers build the index together, against maps of keys: repeated keys,
//! NULL, numbers far apart, short and long texts, several columns.

mod runtime;

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use engine::{Execution, Executor, Output, Prepared, Query, Rel, Runtime, Type, Var};

const ROWS: i64 = 270_000;

/// What the keys of a side are made of.
#[derive(Clone, Copy, Debug)]
enum Keys {
    Far,
    Short,
    Long,
    Two,
}

#[derive(Clone, Copy, Debug)]
enum Join {
    Inner,
    Anti,
    Full,
}

struct Side {
    rel: Rel,
    keys: Vec<Var>,
    id: Var,
}

/// Each key once, in no order, and some of them NULL.
fn left_key(id: i64) -> Option<i64> {
    (id % 11 > 0).then_some(id * 7_919 % ROWS)
}

/// Every other key twice.
fn right_key(id: i64) -> Option<i64> {
    (id % 13 > 0).then_some(id * 104_729 % ROWS / 2 * 2)
}

fn side(query: &mut Query, keys: Keys, key: fn(i64) -> Option<i64>) -> Side {
    let all = || (0..ROWS).map(key);
    let far = || -> ArrayRef {
        let numbers = all().map(|key| key.map(|key| (key - 1_000) << 40));
        Arc::new(Int64Array::from_iter(numbers))
    };
    let texts = |long: bool| -> ArrayRef {
        let text = |key: i64| {
            let begin = if long && key % 4 < 2 { "the" } else { "" };
            format!("{begin} key {key}")
        };
        Arc::new(StringViewArray::from_iter(all().map(|key| key.map(text))))
    };
    let mut columns = match keys {
        Keys::Far => vec![far()],
        Keys::Short => vec![texts(false)],
        Keys::Long => vec![texts(true)],
        Keys::Two => vec![far(), texts(false)],
    };
    columns.push(Arc::new(Int64Array::from_iter_values(0..ROWS)));
    let mut add = |column: &ArrayRef| {
        let ty = Type::of(column.data_type(), true).unwrap();
        query.add("column", ty)
    };
    let vars: Vec<Var> = columns.iter().map(&mut add).collect();
    let names = columns.iter().enumerate();
    let named = names.map(|(nth, column)| (format!("c{nth}"), Arc::clone(column), true));
    let batch = RecordBatch::try_from_iter_with_nullable(named).unwrap();
    let (id, keys) = vars.split_last().unwrap();
    Side {
        keys: keys.to_vec(),
        id: *id,
        rel: Rel::Values {
            vars: vars.clone(),
            batch,
        },
    }
}

fn joined(join: Join, keys: Keys) -> Prepared {
    let mut query = Query::default();
    let left = side(&mut query, keys, left_key);
    let right = side(&mut query, keys, right_key);
    let equal: Vec<(Var, Var)> = left.keys.into_iter().zip(right.keys).collect();
    let residual = vec![];
    let (root, vars) = match join {
        Join::Inner => {
            let inputs = vec![left.rel, right.rel];
            let root = Rel::Join {
                inputs,
                equal,
                residual,
            };
            (root, vec![left.id, right.id])
        }
        Join::Anti => {
            let root = Rel::Semi {
                input: Box::new(left.rel),
                other: Box::new(right.rel),
                equal,
                residual,
                anti: true,
            };
            (root, vec![left.id])
        }
        Join::Full => {
            let ty = Type::of(&DataType::Int64, true).unwrap();
            let outer = [left.id, right.id].map(|id| (id, query.add("id or NULL", ty.clone())));
            let root = Rel::Full {
                left: Box::new(left.rel),
                right: Box::new(right.rel),
                equal,
                residual,
                outer: outer.to_vec(),
            };
            (root, vec![outer[0].1, outer[1].1])
        }
    };
    let field = |var: &Var| Field::new(format!("c{var}"), DataType::Int64, true);
    let schema = Arc::new(Schema::new(vars.iter().map(field).collect::<Vec<_>>()));
    engine::prepare(query, root, Output { vars, schema }).unwrap()
}

type Pairs = Vec<(Option<i64>, Option<i64>)>;

/// The first and the last column of what a query gives, in their order.
fn run(prepared: Prepared, runtime: &Runtime, executor: Executor) -> Pairs {
    let (own, execution) = (runtime.clone(), Execution::by(executor));
    let prepared = Arc::new(prepared);
    let run = async move { prepared.run_by(&own, &execution).await };
    let (batches, _) = runtime.workers.block_on(run).unwrap();
    let mut all = vec![];
    for batch in &batches {
        let column = |place: usize| batch.column(place).as_primitive::<Int64Type>().iter();
        all.extend(column(0).zip(column(batch.num_columns() - 1)));
    }
    all.sort_unstable();
    all
}

fn expected(join: Join) -> Pairs {
    let mut by_key: HashMap<i64, Vec<i64>> = HashMap::new();
    for id in 0..ROWS {
        if let Some(key) = right_key(id) {
            by_key.entry(key).or_default().push(id);
        }
    }
    let mut all: Pairs = vec![];
    let mut found = vec![false; ROWS as usize];
    for id in 0..ROWS {
        let matches = left_key(id).and_then(|key| by_key.get(&key));
        let matches = matches.map_or(&[][..], Vec::as_slice);
        matches
            .iter()
            .for_each(|other| found[*other as usize] = true);
        match (join, matches) {
            (Join::Anti, []) => all.push((Some(id), Some(id))),
            (Join::Full, []) => all.push((Some(id), None)),
            (Join::Anti, _) => {}
            _ => all.extend(matches.iter().map(|other| (Some(id), Some(*other)))),
        }
    }
    if let Join::Full = join {
        let lost = (0..ROWS).filter(|id| !found[*id as usize]);
        all.extend(lost.map(|id| (None, Some(id))));
    }
    all.sort_unstable();
    all
}

#[test]
fn many_hashed_keys_find_what_a_map_finds() {
    let runtime = runtime::on("live", 3);
    for join in [Join::Inner, Join::Anti, Join::Full] {
        let wanted = expected(join);
        assert!(wanted.len() > ROWS as usize / 2);
        for keys in [Keys::Far, Keys::Short, Keys::Long, Keys::Two] {
            let found = run(joined(join, keys), &runtime, Executor::Fused);
            assert!(found == wanted, "{join:?} {keys:?}");
        }
    }
    let found = run(joined(Join::Inner, Keys::Far), &runtime, Executor::Staged);
    assert!(found == expected(Join::Inner));
}
