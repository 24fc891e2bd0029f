//! Tables as a transaction under way sees them, and as others do meanwhile.

use std::sync::Arc;

use arrow::array::*;
use futures::executor::block_on;
use memory::Traffic;
use store::{Snapshot, Store, Transaction};
use table::*;

fn batch(texts: &[&str]) -> RecordBatch {
    let column: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
    RecordBatch::try_from_iter([("text", column)]).unwrap()
}

fn read(catalog: &Catalog, snapshot: &Snapshot, name: &str) -> Option<Vec<String>> {
    let tables = catalog.tables(snapshot).unwrap();
    let table = tables.get(name)?.clone();
    let scan = Scan::new(table, vec![0], false);
    let (pool, mut found) = (snapshot.pool(), Vec::new());
    let traffic = Traffic::new(pool.nodes());
    for (_, morsel) in scan.morsels() {
        let opened = block_on(scan.open(pool, morsel, &[], &traffic, || 0)).unwrap();
        let Some(mut cursor) = opened else { continue };
        while let Some(batch) = cursor.next(3_000).unwrap() {
            let texts = batch.column(0).as_string_view();
            found.extend(texts.iter().map(|text| text.unwrap().to_owned()));
        }
    }
    Some(found)
}

/// Loads so that the table has blocks and a dictionary, and not only a tail.
fn load(tx: Transaction, name: &str, texts: &[&str]) -> Transaction {
    let loader = block_on(Loader::new(tx, name)).unwrap();
    loader.block(0, &[batch(texts)]).unwrap();
    block_on(loader.finish()).unwrap().0
}

fn store() -> (tempfile::TempDir, Arc<Store>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.atoll");
    let store = Store::create(path, &store::Options::default()).unwrap();
    let mut tx = store.begin().unwrap();
    for name in ["t", "u"] {
        create(
            &mut tx,
            &Definition::from_schema(name, &batch(&[]).schema()).unwrap(),
        )
        .unwrap();
    }
    load(tx, "t", &["a", "b"]).commit().unwrap();
    (folder, store)
}

#[test]
fn a_transaction_reads_what_it_wrote_and_nobody_else_does() {
    let (_folder, store) = store();
    let catalog = Catalog::new();
    let before = store.snapshot();
    assert_eq!(read(&catalog, &before, "t").unwrap(), ["a", "b"]);
    let mut outer = store.begin().unwrap();
    let own = catalog.fork();
    // What is undone leaves records and pages that look like those of what is done in its place.
    for texts in [["x", "y"], ["p", "q"], ["v", "w"]] {
        let mut inner = load(outer.nested(), "t", &texts);
        delete(&mut inner, "t", &[0]).unwrap();
        let seen = read(&own, &inner.view(), "t").unwrap();
        assert_eq!(seen, ["b", texts[0], texts[1]]);
        assert_eq!(read(&catalog, &store.snapshot(), "t").unwrap(), ["a", "b"]);
        if texts[0] == "v" {
            outer.adopt(inner);
        }
    }
    table::drop(&mut outer, "u").unwrap();
    assert_eq!(read(&own, &outer.view(), "u"), None);
    assert_eq!(read(&catalog, &store.snapshot(), "u"), Some(vec![]));
    outer.commit().unwrap();
    assert_eq!(
        read(&catalog, &store.snapshot(), "t").unwrap(),
        ["b", "v", "w"]
    );
    assert_eq!(read(&catalog, &store.snapshot(), "u"), None);
    assert_eq!(read(&catalog, &before, "t").unwrap(), ["a", "b"]);
    assert!(store.check(&|_, _| {}).unwrap().is_empty());
}

#[test]
fn changes_lie_over_an_older_snapshot() {
    let (_folder, store) = store();
    let catalog = Catalog::new();
    let tables = |snapshot: &Snapshot| catalog.tables(snapshot).unwrap();
    let old = tables(&store.snapshot());
    load(store.begin().unwrap(), "u", &["later"])
        .commit()
        .unwrap();
    let mut tx = load(store.begin().unwrap(), "t", &["own"]);
    create(
        &mut tx,
        &Definition::from_schema("new", &batch(&[]).schema()).unwrap(),
    )
    .unwrap();
    let base = tables(&store.snapshot());
    let own = catalog.fork().tables(&tx.view()).unwrap();
    assert!(base.differs(&own, "t") && base.differs(&own, "new"));
    assert!(!base.differs(&own, "u") && !base.differs(&own, "none"));
    assert!(old.differs(&base, "u") && !old.differs(&base, "t"));
    let seen = old.overlaid(&base, &own);
    assert_eq!(seen.names(), ["new", "t", "u"]);
    let rows = ["new", "t", "u"].map(|name| seen.get(name).unwrap().rows());
    assert_eq!(rows, [0, 3, 0]);
}
