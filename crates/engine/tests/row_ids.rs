//! The ids of rows that a scan gives, by which statements find the rows again that they change: those of the rows
//! that filters, joins and top-k leave, in every executor.

mod runtime;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, UInt64Type};
use engine::{Execution, Executor, Key, Output, Query, Rel, Runtime, Scan, Type, Var};
use futures::executor::block_on;
use memory::Traffic;
use table::{BATCH_ROWS, Catalog, Definition, Filter, Form, Test, create, delete, insert};

/// Rows in blocks, before some are deleted.
const ROWS: i64 = 150_000;
/// Rows in the tail.
const LAST: i64 = 300;

fn rows(from: i64, to: i64) -> RecordBatch {
    let column = |value: fn(i64) -> i64| {
        Arc::new(Int64Array::from_iter_values((from..to).map(value))) as ArrayRef
    };
    RecordBatch::try_from_iter([("a", column(|i| i)), ("b", column(|i| i % 1_000))]).unwrap()
}

/// The latest table.
fn latest(store: &Arc<store::Store>) -> Arc<table::Table> {
    let tables = Catalog::new().tables(&store.snapshot()).unwrap();
    tables.get("t").unwrap().clone()
}

/// The ids of all rows and their `a`, as the table's own batches give them.
fn stored(table: &Arc<table::Table>) -> BTreeMap<u64, i64> {
    let scan = table::Scan::new(table.clone(), vec![0], true);
    let pool = table.snapshot().pool().clone();
    let traffic = Traffic::new(pool.nodes());
    let mut all = BTreeMap::new();
    for (_, morsel) in scan.morsels() {
        let opened = block_on(scan.open(&pool, morsel, &[], &traffic, || 0)).unwrap();
        let Some(mut cursor) = opened else { continue };
        while let Some(batch) = cursor.next(BATCH_ROWS).unwrap() {
            all.extend(pairs(&batch));
        }
    }
    all
}

/// The ids, which are the last column, and the first column.
fn pairs(batch: &RecordBatch) -> Vec<(u64, i64)> {
    let values = batch.column(0).as_primitive::<Int64Type>().values();
    let ids = batch.columns().last().unwrap();
    let ids = ids.as_primitive::<UInt64Type>().values();
    ids.iter().copied().zip(values.iter().copied()).collect()
}

/// A table of three blocks, and a tail if it is wanted, some rows of which are deleted.
fn table(tail: bool) -> (Arc<table::Table>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.atoll");
    let mut options = store::Options::default();
    options.pool.nodes = vec![None; 1];
    let store = store::Store::create(path, &options).unwrap();
    let first = rows(0, ROWS);
    let mut tx = store.begin().unwrap();
    create(
        &mut tx,
        &Definition::from_schema("t", &first.schema()).unwrap(),
    )
    .unwrap();
    let (tx, _) = block_on(insert(tx, "t", &[first])).unwrap();
    tx.commit().unwrap();
    let gone = |from: i64| move |(_, a): &(&u64, &i64)| **a >= from && **a % 7 == 3;
    let mut tx = store.begin().unwrap();
    let known = stored(&latest(&store));
    let ids: Vec<u64> = known.iter().filter(gone(0)).map(|(id, _)| *id).collect();
    delete(&mut tx, "t", &ids).unwrap();
    tx.commit().unwrap();
    if tail {
        let tx = store.begin().unwrap();
        let (tx, _) = block_on(insert(tx, "t", &[rows(ROWS, ROWS + LAST)])).unwrap();
        tx.commit().unwrap();
        let known = stored(&latest(&store));
        let ids: Vec<u64> = known.iter().filter(gone(ROWS)).map(|(id, _)| *id).collect();
        let mut tx = store.begin().unwrap();
        delete(&mut tx, "t", &ids).unwrap();
        tx.commit().unwrap();
    }
    (latest(&store), folder)
}

/// Values in a range; the form says the same.
#[derive(Debug)]
struct Within(i64, i64);

impl Test for Within {
    fn evaluate(
        &self,
        columns: &[ArrayRef],
        _: usize,
    ) -> Result<BooleanArray, Box<dyn std::error::Error + Send + Sync>> {
        let values = columns[0].as_primitive::<Int64Type>();
        let hits = values.iter().map(|v| Some((self.0..=self.1).contains(&v?)));
        Ok(hits.collect())
    }
}

fn filter(column: usize, least: i64, most: i64) -> Filter {
    Filter {
        columns: vec![column],
        test: Arc::new(Within(least, most)),
        form: Form::Ranges(Arc::from([(i128::from(least), i128::from(most))])),
        gauge: None,
    }
}

/// A scan of `a` with these filters, and the vectors of `a` and of the row ids.
fn scan(query: &mut Query, table: &Arc<table::Table>, filters: Vec<Filter>) -> (Rel, Var, Var) {
    let long = Type::of(&DataType::Int64, true).unwrap();
    let a = query.add("a", long);
    let row = query.add("row", Type::of_row_ids(table));
    let scan = Scan {
        table: table.clone(),
        alias: "t".into(),
        columns: vec![(a, 0)],
        parts: vec![],
        row_ids: Some(row),
        shown: filters.iter().map(|_| "a filter".into()).collect(),
        filters,
        expected: table.rows() as f64,
    };
    (Rel::Scan(scan), a, row)
}

/// What the engine makes of `root`.
fn run(
    query: Query,
    root: Rel,
    (a, row): (Var, Var),
    runtime: &Runtime,
    execution: &Execution,
) -> Vec<(u64, i64)> {
    let schema = Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("row", DataType::UInt64, false),
    ]);
    let output = Output {
        vars: vec![a, row],
        schema: Arc::new(schema),
    };
    let prepared = engine::prepare(query, root, output).unwrap();
    let (runs, how) = (runtime.clone(), execution.clone());
    let ran = runtime
        .workers
        .block_on(async move { prepared.run_by(&runs, &how).await });
    ran.unwrap().0.iter().flat_map(pairs).collect()
}

fn executions() -> Vec<Execution> {
    let all = [Executor::Fused, Executor::Stream, Executor::Staged];
    all.into_iter().map(Execution::by).collect()
}

#[test]
fn ids_of_filtered_rows_are_those_of_the_table() {
    let runtime = runtime::on("live", 2);
    for tail in [false, true] {
        let (table, _folder) = table(tail);
        let known = stored(&table);
        assert!(known.len() as i64 > ROWS / 7 * 6 - 10);
        let ranges = [
            (0, 0, ROWS + LAST),
            // Of one block; of none; of the tail alone; and rows all over.
            (0, 70_000, 70_500),
            (0, -9, -1),
            (0, ROWS, ROWS + LAST),
            (1, 990, 999),
        ];
        for (column, least, most) in ranges {
            let wanted = |a: i64| {
                let value = if column == 0 { a } else { a % 1_000 };
                (least..=most).contains(&value)
            };
            let expected = known.iter().map(|(id, a)| (*id, *a));
            let expected: BTreeSet<(u64, i64)> = expected.filter(|(_, a)| wanted(*a)).collect();
            for execution in executions() {
                let mut query = Query::default();
                let filters = vec![filter(column, least, most)];
                let (root, a, row) = scan(&mut query, &table, filters);
                let found = run(query, root, (a, row), &runtime, &execution);
                let count = found.len();
                let found: BTreeSet<(u64, i64)> = found.into_iter().collect();
                assert_eq!(found.len(), count, "a row came twice");
                assert_eq!(
                    found, expected,
                    "{column} in {least}..={most}: {execution:?}"
                );
            }
        }
    }
}

#[test]
fn ids_go_with_their_rows_through_joins_and_orders() {
    let runtime = runtime::on("live", 2);
    let (table, _folder) = table(true);
    let known = stored(&table);
    let mut keys: Vec<i64> = (0..ROWS + LAST).step_by(501).collect();
    keys.reverse();
    for execution in executions() {
        let mut query = Query::default();
        let (left, a, row) = scan(&mut query, &table, vec![]);
        let long = Type::of(&DataType::Int64, false).unwrap();
        let key = query.add("key", long);
        let fields = vec![Field::new("key", DataType::Int64, false)];
        let array = Int64Array::from(keys.clone());
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![Arc::new(array)]);
        let given = Rel::Values {
            vars: vec![key],
            batch: batch.unwrap(),
        };
        let root = Rel::Join {
            inputs: vec![left, given],
            equal: vec![(a, key)],
            residual: vec![],
        };
        let found: BTreeSet<_> = run(query, root, (a, row), &runtime, &execution)
            .into_iter()
            .collect();
        let expected = known.iter().map(|(id, a)| (*id, *a));
        let expected: BTreeSet<_> = expected.filter(|(_, a)| a % 501 == 0).collect();
        assert_eq!(found, expected, "{execution:?}");

        let mut query = Query::default();
        let (input, a, row) = scan(&mut query, &table, vec![]);
        let by_id = Key {
            var: row,
            descending: true,
            nulls_first: false,
        };
        let root = Rel::Sort {
            input: Box::new(input),
            keys: vec![by_id],
            skip: 2,
            fetch: Some(40),
        };
        let found = run(query, root, (a, row), &runtime, &execution);
        let expected = known.iter().rev().skip(2).take(40);
        let expected: Vec<_> = expected.map(|(id, a)| (*id, *a)).collect();
        assert_eq!(found, expected, "{execution:?}");
    }
}
