//! The executors over a stored table, whose filters are tested on stored values.

mod counted;
mod runtime;
mod stored;

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use counted::counted;
use engine::{Execution, Executor, Key, NumaPolicy, Output, Query, Rel, Runtime, Scan, Type};
use stored::{ROWS, shuffled, table};
use table::{Filter, Form, Test};

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

/// How many rows of `table` the filters leave and their sum, and what is told of it.
fn run(table: &Arc<table::Table>, runtime: &Runtime, execution: &Execution) -> (i64, i64, String) {
    let int = Type::of(&DataType::Int64, false)
        .unwrap()
        .within((0, 1 << 20));
    // All but one row of a hundred, and a hundredth of all: the second is to be tested first.
    let filters = vec![filter(0, 3_000, ROWS), filter(1, 0, 9)];
    let mut query = Query::default();
    let (a, b) = (query.add("a", int.clone()), query.add("b", int.clone()));
    let scan = Scan {
        table: table.clone(),
        alias: "t".into(),
        columns: vec![(a, 0), (b, 1)],
        parts: vec![],
        row_ids: None,
        filters: filters.clone(),
        shown: vec!["a >= 3000".into(), "b < 10".into()],
        expected: 3_000.0,
    };
    counted(query, Rel::Scan(scan), a, runtime, execution)
}

/// What [`run`] should say.
fn expected() -> (i64, i64) {
    let rows = (3_000..ROWS).filter(|i| i % 1_000 < 10);
    (rows.clone().count() as i64, rows.sum())
}

#[test]
fn all_executors_read_the_same_rows_of_a_table() {
    let (table, _folder) = table(1);
    let runtime = runtime::on("live", 2);
    let mut executions = vec![Execution::by(Executor::Fused)];
    for executor in [Executor::Stream, Executor::Staged] {
        for (rows, ring) in [(1 << 10, 2), (2 << 10, 3), (64 << 10, 1), (1 << 20, 2)] {
            let mut execution = Execution::by(executor);
            execution.block_rows = Some(rows);
            execution.ring = Some(ring);
            executions.push(execution);
        }
    }
    for execution in executions {
        let (count, sum, told) = run(&table, &runtime, &execution);
        assert_eq!((count, sum), expected(), "{execution:?}");
        match execution.executor {
            Executor::Stream => assert!(told.contains("scan t"), "{told}"),
            Executor::Staged if execution.block_rows == Some(2 << 10) => {
                assert!(told.contains("a >= 3000 ("), "{told}");
            }
            _ => {}
        }
    }
}

#[test]
fn instances_read_what_lies_on_their_nodes_and_nothing_else() {
    for (machine, nodes, threads) in [("2x1", 2, 2), ("4x1", 4, 4), ("4x2", 4, 8)] {
        let (table, _folder) = table(nodes);
        for executor in [Executor::Fused, Executor::Stream, Executor::Staged] {
            let runtime = runtime::on(machine, threads);
            let mut execution = Execution::by(executor);
            execution.numa_policy = NumaPolicy::Distr;
            let (count, sum, _) = run(&table, &runtime, &execution);
            assert_eq!((count, sum), expected(), "{execution:?}");
            for (reader, row) in runtime.traffic.matrix().iter().enumerate() {
                for (page, bytes) in row.iter().enumerate() {
                    let own = reader == page;
                    assert_eq!(*bytes > 0, own, "{executor:?}, {reader} of {page}");
                }
            }
        }
    }
}

#[test]
fn what_lies_on_a_node_without_workers_goes_to_the_nearest() {
    let (table, _folder) = table(4);
    let runtime = runtime::on("4x1", 2);
    let mut execution = Execution::default();
    execution.numa_policy = NumaPolicy::Distr;
    let (count, sum, _) = run(&table, &runtime, &execution);
    assert_eq!((count, sum), expected());
    let read: Vec<Vec<bool>> = runtime
        .traffic
        .matrix()
        .iter()
        .map(|row| row.iter().map(|bytes| *bytes > 0).collect())
        .collect();
    // All other nodes are equally far: the next one with workers, counted from the node.
    assert_eq!(read[0], [true, false, true, true]);
    assert_eq!(read[1], [false, true, false, false]);
    assert_eq!(read[2..].concat(), [false; 8]);
}

#[test]
fn one_worker_reads_all_whatever_the_plan() {
    let (table, _folder) = table(4);
    for plan in [NumaPolicy::Obliv, NumaPolicy::Shard, NumaPolicy::Distr] {
        let runtime = runtime::on("4x1", 1);
        let mut execution = Execution::default();
        execution.numa_policy = plan;
        let (count, sum, _) = run(&table, &runtime, &execution);
        assert_eq!((count, sum), expected(), "{plan:?}");
        let matrix = runtime.traffic.matrix();
        assert!(matrix[0].iter().all(|bytes| *bytes > 0), "{matrix:?}");
    }
}

#[test]
fn what_operators_did_is_noted_for_whoever_asks() {
    let (table, _folder) = table(1);
    let runtime = runtime::on("1x2", 2);
    let profile = Arc::new(engine::ProfileCollector::default());
    let mut execution = Execution::by(Executor::Fused);
    execution.profile = Some(profile.clone());
    let before = runtime.traffic.total();
    let (count, sum, _) = run(&table, &runtime, &execution);
    assert_eq!((count, sum), expected());
    let read = runtime.traffic.total() - before;

    let records = profile.take();
    assert!(profile.take().is_empty(), "they are given once");
    let kernels = &records[0].kernels;
    let of = |name: &str| {
        let found = kernels.iter().find(|kernel| kernel.name.starts_with(name));
        found.unwrap_or_else(|| panic!("{name} in {kernels:?}"))
    };
    // All rows are tested by both filters, with a byte and a word or two of them each.
    let filter = of("filter codes of t (a >= 3000, b < 10)");
    assert_eq!(
        (filter.rows, filter.operations),
        (ROWS as u64, 4 * ROWS as u64)
    );
    let values = of("read (a)");
    assert_eq!(
        (values.rows, values.operations),
        (count as u64, count as u64)
    );
    let fold = of("fold (a)");
    assert_eq!(
        (fold.operations, fold.bytes),
        (2 * count as u64, 8 * count as u64)
    );
    let pages: u64 = kernels.iter().map(|kernel| kernel.page_bytes).sum();
    assert_eq!(pages, read, "each byte of a page is some operator's");
    assert!(
        kernels
            .iter()
            .all(|kernel| kernel.bytes >= kernel.page_bytes)
    );
    let busy: f64 = kernels.iter().map(|kernel| kernel.seconds).sum();
    assert!(
        busy > 0.0 && busy <= 2.0 * records[0].seconds,
        "{records:?}"
    );
}

#[test]
fn blocks_made_used_again_and_waited_for_are_noted() {
    let (table, _folder) = table(1);
    let runtime = runtime::on("1x2", 2);
    for (executor, reuse) in [
        (Executor::Stream, true),
        (Executor::Stream, false),
        (Executor::Staged, true),
        (Executor::Staged, false),
    ] {
        let profile = Arc::new(engine::ProfileCollector::default());
        let mut execution = Execution::by(executor);
        (execution.reuse, execution.block_rows) = (reuse, Some(2_048));
        // More rows than one block holds come through a ring of one.
        execution.ring = Some(1);
        execution.profile = Some(profile.clone());
        let (count, _, told) = run(&table, &runtime, &execution);
        assert_eq!(count, expected().0);
        let records = profile.take();
        let record = &records[0];
        assert_eq!(record.executor, executor);
        assert!(record.blocks_made > 0, "{record:?}");
        match (executor, reuse) {
            (Executor::Staged, true) => assert_eq!(record.blocks_made, 1, "{record:?}"),
            (_, false) => assert_eq!(record.blocks_reused, 0, "{record:?}"),
            _ => {}
        }
        if executor == Executor::Staged {
            assert!(record.blocks_made + record.blocks_reused > 1, "{record:?}");
        }
        // The sink, or whoever processes, got all rows.
        let last = record.operators.last().unwrap();
        let rows: u64 = last.tasks.iter().map(|task| task.rows).sum();
        assert_eq!(rows, count as u64, "{record:?}");
        assert!(
            told.contains(&format!("{} tasks", last.tasks.len())),
            "{told}"
        );
    }
}

/// The first of an order, as many as `fetch`: their place in the table.
fn first(
    table: &Arc<table::Table>,
    runtime: &Runtime,
    execution: &Execution,
    order: (usize, bool, bool),
    fetch: usize,
) -> Vec<i64> {
    let long = Type::of(&DataType::Int64, true).unwrap();
    let mut query = Query::default();
    let columns = [0, 1, 2].map(|column| (query.add("column", long.clone()), column));
    let scan = Scan {
        table: table.clone(),
        alias: "t".into(),
        columns: columns.to_vec(),
        parts: vec![],
        row_ids: None,
        filters: vec![filter(1, 0, 899)],
        shown: vec!["b < 900".into()],
        expected: 270_000.0,
    };
    let (column, descending, nulls_first) = order;
    let key = |column: usize, descending, nulls_first| Key {
        var: columns[column].0,
        descending,
        nulls_first,
    };
    let root = Rel::Sort {
        input: Box::new(Rel::Scan(scan)),
        keys: vec![
            key(column, descending, nulls_first),
            key(0, descending, false),
        ],
        skip: 3,
        fetch: Some(fetch),
    };
    let schema = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
    let output = Output {
        vars: vec![columns[0].0],
        schema: Arc::new(schema),
    };
    let prepared = engine::prepare(query, root, output).unwrap();
    let (runs, how) = (runtime.clone(), execution.clone());
    let ran = runtime
        .workers
        .block_on(async move { prepared.run_by(&runs, &how).await });
    let (batches, _) = ran.unwrap();
    let values = |batch: &RecordBatch| {
        batch
            .column(0)
            .as_primitive::<Int64Type>()
            .values()
            .to_vec()
    };
    batches.iter().flat_map(values).collect()
}

#[test]
fn the_first_of_an_order_are_found_in_all_blocks() {
    let (table, _folder) = table(2);
    let runtime = runtime::on("2x2", 4);
    let value = |row: i64, column: usize| match column {
        0 => Some(row),
        1 => Some(row % 1_000),
        _ => shuffled(row),
    };
    for executor in [Executor::Fused, Executor::Stream, Executor::Staged] {
        for plan in [NumaPolicy::Obliv, NumaPolicy::Distr] {
            let mut execution = Execution::by(executor);
            execution.numa_policy = plan;
            for (column, descending, nulls_first, fetch) in [
                (0, false, false, 5),
                (0, true, true, 2_000),
                (1, true, false, 700),
                (2, false, false, 10),
                (2, false, true, 40_000),
                (2, true, false, 900),
                (2, true, true, 100),
            ] {
                let order = (column, descending, nulls_first);
                let mut rows: Vec<i64> = (0..ROWS).filter(|row| row % 1_000 < 900).collect();
                rows.sort_by_key(|row| {
                    let own = value(*row, column);
                    let sign = if descending { -1 } else { 1 };
                    let null = own.is_none() != nulls_first;
                    (null, own.map(|v| sign * v), sign * row)
                });
                let found = first(&table, &runtime, &execution, order, fetch);
                assert_eq!(found, rows[3..3 + fetch], "{execution:?} {order:?}");
            }
        }
    }
}
