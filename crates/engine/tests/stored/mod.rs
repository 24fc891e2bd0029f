//! A stored table.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
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
