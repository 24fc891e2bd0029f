//! What finished join tables keep scans from reading, and that no answer changes by it.

mod counted;
mod runtime;
mod stored;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use counted::counted;
use engine::{Execution, Executor, NumaPolicy, Query, Rel, Runtime, Scan, Type};
use proptest::prelude::*;
use stored::{ROWS, shuffled, table};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Inner,
    Semi,
    Anti,
    Left,
}

/// `scan` joined with `other` where `own` equals `key`, which is `outer` behind an outer join.
fn joined(kind: Kind, scan: Rel, other: Rel, (own, key, outer): (usize, usize, usize)) -> Rel {
    let (equal, residual) = (vec![(own, key)], vec![]);
    match kind {
        Kind::Inner => Rel::Join {
            inputs: vec![scan, other],
            equal,
            residual,
        },
        Kind::Semi | Kind::Anti => Rel::Semi {
            input: Box::new(scan),
            other: Box::new(other),
            equal,
            residual,
            anti: kind == Kind::Anti,
        },
        Kind::Left => Rel::Left {
            left: Box::new(scan),
            right: Box::new(other),
            equal,
            residual,
            outer: vec![(key, outer)],
        },
    }
}

/// Joins the table with `keys` on one of its columns and gives the number of rows, the sum of the first column, and
/// what the executor told.
fn run(
    table: &Arc<table::Table>,
    (column, kind): (usize, Kind),
    keys: &[Option<i64>],
    runtime: &Runtime,
    execution: &Execution,
) -> (i64, i64, String) {
    let int = Type::of(&DataType::Int64, true)
        .unwrap()
        .within((-1 << 40, 1 << 40));
    let mut query = Query::default();
    let (a, own) = (query.add("a", int.clone()), query.add("own", int.clone()));
    let (key, outer) = (query.add("key", int.clone()), query.add("outer", int));
    let scan = Rel::Scan(Scan {
        table: table.clone(),
        alias: "t".into(),
        columns: vec![(a, 0), (own, column)],
        parts: vec![],
        row_ids: None,
        filters: vec![],
        shown: vec![],
        expected: ROWS as f64,
    });
    let fields = vec![Field::new("key", DataType::Int64, true)];
    let array = Int64Array::from(keys.to_vec());
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![Arc::new(array)]);
    let other = Rel::Values {
        vars: vec![key],
        batch: batch.unwrap(),
    };
    let input = joined(kind, scan, other, (own, key, outer));
    counted(query, input, a, runtime, execution)
}

/// What [`run`] should say.
fn expected((column, kind): (usize, Kind), keys: &[Option<i64>]) -> (i64, i64) {
    let mut times: BTreeMap<i64, i64> = BTreeMap::new();
    for key in keys.iter().flatten() {
        *times.entry(*key).or_default() += 1;
    }
    let (mut count, mut sum) = (0, 0);
    for i in 0..ROWS {
        let value = match column {
            0 => Some(i),
            1 => Some(i % 1_000),
            _ => shuffled(i),
        };
        let matches = value.and_then(|v| times.get(&v)).copied().unwrap_or(0);
        let rows = match kind {
            Kind::Inner => matches,
            Kind::Semi => matches.min(1),
            Kind::Anti => i64::from(matches == 0),
            Kind::Left => matches.max(1),
        };
        count += rows;
        sum += rows * i;
    }
    (count, sum)
}

fn executions() -> Vec<Execution> {
    let mut all: Vec<Execution> = [Executor::Fused, Executor::Stream, Executor::Staged]
        .map(Execution::by)
        .to_vec();
    let mut each_node = Execution::by(Executor::Fused);
    each_node.numa_policy = NumaPolicy::Distr;
    all.push(each_node);
    all
}

fn keys() -> impl Strategy<Value = Vec<Option<i64>>> {
    let spread = prop_oneof![
        // Few and many, near each other and far apart, some outside the table, some twice, some NULL.
        (0..ROWS).prop_map(|from| (from, 5, 3)),
        (-5_000..ROWS).prop_map(|from| (from, 2_000, 1_500)),
        (0..ROWS).prop_map(|from| (from, 1_000_000, 400)),
        (0..ROWS).prop_map(|from| (from, 1 << 39, 300)),
        Just((0, 1, 0)),
    ];
    spread.prop_flat_map(|(from, width, count)| {
        let key = prop_oneof![9 => (from..from + width).prop_map(Some), 1 => Just(None)];
        prop::collection::vec(key, count / 2..=count)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_answer_changes(
        keys in keys(),
        column in 0usize..3,
        kind in prop::sample::select(vec![Kind::Inner, Kind::Semi, Kind::Anti, Kind::Left]),
    ) {
        let (table, _folder) = table(2);
        let runtime = runtime::on("2x2", 4);
        let (count, sum) = expected((column, kind), &keys);
        for execution in executions() {
            let (own, total, _) = run(&table, (column, kind), &keys, &runtime, &execution);
            prop_assert_eq!((own, total), (count, sum), "{:?}", execution.executor);
        }
    }
}

#[test]
fn a_scan_reads_what_can_match() {
    let (table, _folder) = table(1);
    let runtime = runtime::on("live", 2);
    for execution in [Executor::Fused, Executor::Stream, Executor::Staged].map(Execution::by) {
        // Keys of one block of five, in the order of the table: few, and many.
        for keys in [
            vec![Some(70_000), Some(70_003)],
            (70_000..70_900).map(Some).collect(),
        ] {
            let (rows, _, told) = run(&table, (0, Kind::Inner), &keys, &runtime, &execution);
            assert_eq!(rows, keys.len() as i64);
            let line = told
                .lines()
                .find(|line| line.contains("scan of t: a among the keys of stage"));
            let line = line.unwrap_or_else(|| panic!("no filter by keys:\n{told}"));
            // No row of the other four blocks is looked at.
            let tested = line
                .rsplit_once(" % of ")
                .and_then(|(_, rest)| rest.split(' ').next());
            let tested: i64 = tested.and_then(|rows| rows.parse().ok()).unwrap();
            assert!(tested <= 65_536, "{line}");
        }
        // Rows without a match stay.
        let (_, _, told) = run(&table, (0, Kind::Left), &[Some(1)], &runtime, &execution);
        assert!(!told.contains("among the keys"), "{told}");
    }
}

#[test]
fn keys_that_let_most_rows_through_are_tested_once() {
    let (table, _folder) = table(1);
    let runtime = runtime::on("live", 1);
    let execution = Execution::by(Executor::Fused);
    let keys: Vec<Option<i64>> = (0..990).map(Some).collect();
    let (rows, _, told) = run(&table, (1, Kind::Inner), &keys, &runtime, &execution);
    assert_eq!(rows, ROWS / 1_000 * 990);
    assert!(told.contains("99.0 % of 65536 rows passed"), "{told}");
}
