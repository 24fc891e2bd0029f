//! A stored table, and counting its rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use engine::{Execution, Fold, Function, Output, Query, Rel, Runtime, Type};
use table::{Catalog, Definition, create, insert};

/// Rows of the table.
pub const ROWS: i64 = 300_000;

/// Of row `i`: in no order, and NULL now and then.
pub fn shuffled(i: i64) -> Option<i64> {
    (i % 11 != 0).then_some(i * 7_919 % 1_000_003)
}

/// A table of five blocks, whose pages lie on as many nodes as there are, in turn.
pub fn table(nodes: usize) -> (Arc<table::Table>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.atoll");
    let mut options = store::Options::default();
    options.pool.nodes = vec![None; nodes];
    let store = store::Store::create(path, &options).unwrap();
    let batch = RecordBatch::try_from_iter([
        (
            "a",
            Arc::new(Int64Array::from_iter_values(0..ROWS)) as ArrayRef,
        ),
        (
            "b",
            Arc::new(Int64Array::from_iter_values((0..ROWS).map(|i| i % 1_000))) as ArrayRef,
        ),
        (
            "c",
            Arc::new((0..ROWS).map(shuffled).collect::<Int64Array>()) as ArrayRef,
        ),
    ])
    .unwrap();
    let mut tx = store.begin().unwrap();
    create(
        &mut tx,
        &Definition::from_schema("t", &batch.schema()).unwrap(),
    )
    .unwrap();
    let (tx, _) = futures::executor::block_on(insert(tx, "t", &[batch])).unwrap();
    tx.commit().unwrap();
    let tables = Catalog::new().tables(&store.snapshot()).unwrap();
    (tables.get("t").unwrap().clone(), folder)
}

/// The number of rows of `input`, the sum of its vector `of` (0 of no rows), and what the executor told.
pub fn counted(
    mut query: Query,
    input: Rel,
    of: usize,
    runtime: &Runtime,
    execution: &Execution,
) -> (i64, i64, String) {
    let long = Type::of(&DataType::Int64, true).unwrap();
    let vars = ["count", "sum"].map(|name| query.add(name, long.clone()));
    let functions = [(Function::Count, None), (Function::Sum, Some(of))];
    let folds = vars.into_iter().zip(functions);
    let root = Rel::Fold {
        input: Box::new(input),
        keys: vec![],
        folds: folds
            .map(|(var, (function, arg))| Fold { var, function, arg })
            .collect(),
    };
    let fields = ["count", "sum"].map(|name| Field::new(name, DataType::Int64, true));
    let output = Output {
        vars: vars.to_vec(),
        schema: Arc::new(Schema::new(fields.to_vec())),
    };
    let prepared = engine::prepare(query, root, output).unwrap();
    let (runs, how) = (runtime.clone(), execution.clone());
    let (batches, told) = runtime
        .workers
        .block_on(async move { prepared.run_by(&runs, &how).await })
        .unwrap();
    let value = |column: usize| {
        let values = batches[0].column(column).as_primitive::<Int64Type>();
        values.iter().next().flatten().unwrap_or(0)
    };
    (value(0), value(1), told.join("\n"))
}
