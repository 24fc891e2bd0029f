//! Samples of the rows of a table.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{Int64Type, UInt64Type};
use futures::executor::block_on;
use memory::Traffic;
use table::{BATCH_ROWS, Catalog, Definition, SAMPLE_ROWS, Scan, Table, create, delete, insert};

/// A store with a table of a key, a number that it determines, which is now and then NULL, a label and a text.
fn store_of(rows: i64) -> (Arc<store::Store>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let options = store::Options::default();
    let store = store::Store::create(folder.path().join("t.atoll"), &options).unwrap();
    let numbers = (0..rows).map(|i| (i % 4 != 0).then_some(i % 100));
    let labels = (0..rows).map(|i| format!("label {}", i % 7));
    let texts = (0..rows).map(|i| format!("the text of row {i}"));
    let batch = RecordBatch::try_from_iter_with_nullable([
        (
            "id",
            Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef,
            false,
        ),
        ("n", Arc::new(numbers.collect::<Int64Array>()) as _, true),
        (
            "l",
            Arc::new(StringViewArray::from_iter_values(labels)) as _,
            false,
        ),
        (
            "t",
            Arc::new(StringViewArray::from_iter_values(texts)) as _,
            false,
        ),
    ])
    .unwrap();
    let mut tx = store.begin().unwrap();
    create(
        &mut tx,
        &Definition::from_schema("t", &batch.schema()).unwrap(),
    )
    .unwrap();
    let (tx, _) = block_on(insert(tx, "t", &[batch])).unwrap();
    tx.commit().unwrap();
    (store, folder)
}

fn table_of(catalog: &Catalog, store: &Arc<store::Store>) -> Arc<Table> {
    let tables = catalog.tables(&store.snapshot()).unwrap();
    Arc::clone(tables.get("t").unwrap())
}

fn ids(table: &Table) -> Vec<i64> {
    let column = block_on(table.sampled(0)).unwrap();
    column.values.as_primitive::<Int64Type>().values().to_vec()
}

/// The row ids of the rows with a key below this one.
fn rows_below(table: &Arc<Table>, below: i64) -> Vec<u64> {
    let scan = Scan::new(Arc::clone(table), vec![0], true);
    let pool = Arc::clone(table.snapshot().pool());
    let traffic = Traffic::new(pool.nodes());
    let mut rows = Vec::new();
    for (_, morsel) in scan.morsels() {
        let cursor = block_on(scan.open(&pool, morsel, &[], &traffic, || 0)).unwrap();
        let Some(mut cursor) = cursor else { continue };
        while let Some(batch) = cursor.next(BATCH_ROWS).unwrap() {
            let keys = batch.column(0).as_primitive::<Int64Type>().values();
            let ids = batch.column(1).as_primitive::<UInt64Type>().values();
            let both = keys.iter().zip(ids).filter(|(key, _)| **key < below);
            rows.extend(both.map(|(_, id)| *id));
        }
    }
    rows
}

#[test]
fn a_sample_has_the_same_rows_of_each_column() {
    let rows = 300_000;
    let (store, _folder) = store_of(rows);
    let table = table_of(&Catalog::new(), &store);
    let (count, is_complete) = table.sampled_rows();
    assert_eq!((count, is_complete), (SAMPLE_ROWS, false));
    let ids = ids(&table);
    assert_eq!(ids.len(), count);
    for fifth in 0..5 {
        let within = fifth * rows / 5..(fifth + 1) * rows / 5;
        let here = ids.iter().filter(|id| within.contains(*id)).count();
        assert!(here.abs_diff(count / 5) < 10, "{here} of {within:?}");
    }
    let numbers = block_on(table.sampled(1)).unwrap();
    let valid = numbers.valid.as_ref().unwrap();
    let known = numbers.values.as_primitive::<Int64Type>();
    for (row, id) in ids.iter().enumerate() {
        assert_eq!(valid[row], id % 4 != 0);
        assert!(!valid[row] || known.value(row) == id % 100);
    }
    let (labels, texts) = (
        block_on(table.sampled(2)).unwrap(),
        block_on(table.sampled(3)).unwrap(),
    );
    let (_, codes) = labels.codes.as_ref().expect("labels are stored as codes");
    assert_eq!(codes.len(), count);
    // Texts are read of a few blocks only.
    assert!(texts.codes.is_none() && texts.values.len() < count);
    for (id, text) in ids.iter().zip(texts.values.as_string_view()) {
        assert_eq!(text, Some(&*format!("the text of row {id}")));
    }
}

#[test]
fn distinct_values_are_estimated() {
    let (store, _folder) = store_of(300_000);
    let table = table_of(&Catalog::new(), &store);
    let distinct = |column| block_on(table.sampled(column)).unwrap().distinct.unwrap();
    assert_eq!(distinct(0), 300_000.0, "a key");
    assert_eq!((distinct(1), distinct(2)), (75.0, 7.0));
}

#[test]
fn a_small_table_is_its_own_sample() {
    let (store, _folder) = store_of(50);
    let table = table_of(&Catalog::new(), &store);
    assert_eq!(table.sampled_rows(), (50, true));
    let mut all = ids(&table);
    all.sort_unstable();
    assert_eq!(all, (0..50).collect::<Vec<_>>());
    let (empty, _folder) = store_of(0);
    let table = table_of(&Catalog::new(), &empty);
    assert_eq!((table.sampled_rows().0, ids(&table).len()), (0, 0));
}

/// What was read is kept by the table, and by the versions after it while hardly a row is another.
#[test]
fn a_sample_stays_while_little_changes() {
    let (store, _folder) = store_of(200_000);
    let catalog = Catalog::new();
    let table = table_of(&catalog, &store);
    let of = |table: &Table| block_on(table.sampled(0)).unwrap();
    let before = of(&table);
    assert!(Arc::ptr_eq(&before, &of(&table)));
    let without = |below: i64| {
        let rows = rows_below(&table, below);
        let mut tx = store.begin().unwrap();
        delete(&mut tx, "t", &rows).unwrap();
        tx.commit().unwrap();
        table_of(&catalog, &store)
    };
    let few = without(100);
    assert!(Arc::ptr_eq(&before, &of(&few)), "few rows are gone");
    let after = without(60_000);
    assert!(!Arc::ptr_eq(&before, &of(&after)), "many are gone");
    let left = ids(&after);
    assert!(left.iter().all(|id| *id >= 60_000), "none is in the sample");
}
