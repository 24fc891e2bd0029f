//! Row indexes while tables come, change and go.

use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use futures::executor::block_on;
use table::*;

use crate::case::{Case, child_keys, definition, one, parent_keys};

#[test]
fn pages_are_freed_with_index_block_and_table() {
    let keys = parent_keys(1, 30_000, 7);
    let case = Case::of(1);
    case.load("parent", &keys, 10_000);
    let bare = case.pages();
    case.load("child", &child_keys(&keys, 30_000, 2, 2, 7), 10_000);
    let before = case.pages();
    case.index(2);
    let indexed = case.pages();
    assert!(indexed > before);

    let mut tx = case.store.begin().unwrap();
    assert!(drop_index(&mut tx, "child", 0).unwrap());
    assert!(!drop_index(&mut tx, "child", 0).unwrap());
    let error = drop_index(&mut tx, "child", 1).unwrap_err();
    assert!(matches!(error, Error::Key { .. }), "{error}");
    tx.commit().unwrap();
    assert!(case.row_index().is_none());
    assert_eq!(case.pages(), before);
    case.assert_sound();

    case.index(2);
    case.delete("child", |id| id >> 16 == 1);
    assert!(case.pages() < indexed - (indexed - before) / 4);
    assert_eq!(case.compare().0, 2);
    case.assert_sound();

    let mut tx = case.store.begin().unwrap();
    truncate(&mut tx, "child").unwrap();
    tx.commit().unwrap();
    assert_eq!(case.pages(), bare);
    case.load("child", &child_keys(&keys, 3_000, 2, 2, 7), 1_000);
    assert!(case.row_index().is_none(), "its tag is gone, too");
    case.index(2);
    let mut tx = case.store.begin().unwrap();
    table::drop(&mut tx, "child").unwrap();
    tx.commit().unwrap();
    assert_eq!(case.pages(), bare);
    case.assert_sound();
}

#[test]
fn another_parent_of_the_same_name_is_another_parent() {
    let case = Case::of(1);
    case.load("parent", &one([3, 1]), 10);
    case.load("child", &one([1, 3]), 10);
    case.index(1);
    let other = Case::of(1);
    let mut tx = other.store.begin().unwrap();
    table::drop(&mut tx, "child").unwrap();
    table::drop(&mut tx, "parent").unwrap();
    create(&mut tx, &definition("parent", &[DataType::Int64])).unwrap();
    tx.commit().unwrap();
    other.load("parent", &one([3, 1]), 10);
    let child = case.table("child");
    assert!(child.row_index(&case.table("parent"), 0).is_some());
    assert!(child.row_index(&other.table("parent"), 0).is_none());
    assert!(child.row_index(&child, 0).is_none());
    assert!(child.row_index(&case.table("parent"), 1).is_none());
}

#[test]
fn survives_closing_and_opening() {
    let keys = parent_keys(1, 20_000, 9);
    let case = Case::of(1);
    case.load("parent", &keys, 20_000);
    case.load("child", &child_keys(&keys, 20_000, 5, 5, 9), 9_000);
    case.index(2);
    let expected = case.compare();
    let Case {
        folder,
        store,
        catalog,
    } = case;
    std::mem::drop(catalog);
    store.close().unwrap();
    let store = store::Store::open(folder.path().join("f.atoll"), &store::Options::default());
    let case = Case {
        folder,
        store: store.unwrap(),
        catalog: Catalog::new(),
    };
    assert_eq!(case.compare(), expected);
    assert_eq!(case.index(2), Outcome::Current);
    case.assert_sound();
}

#[test]
fn a_table_that_refers_to_itself() {
    let case = Case::of(1);
    let mut tree = definition("tree", &[DataType::Int64, DataType::Int64]);
    tree.foreign_keys = vec![ForeignKey {
        columns: vec![1],
        parent: "tree".to_owned(),
        parent_columns: vec!["k0".to_owned()],
    }];
    let mut tx = case.store.begin().unwrap();
    create(&mut tx, &tree).unwrap();
    tx.commit().unwrap();
    let rows =
        [[10, -1], [30, 10], [20, 30]].map(|[id, up]| vec![Some(id), Some(up).filter(|u| *u >= 0)]);
    case.load("tree", &rows, 2);
    let made = block_on(index_foreign_keys(&case.store, &case.catalog, "tree", 1)).unwrap();
    assert_eq!(
        made[0].outcome,
        Outcome::Blocks {
            written: 2,
            orphans: 0
        }
    );
    let tree = case.table("tree");
    let index = tree.row_index(&tree, 0).unwrap();
    assert_eq!(block_on(index.rows(0)).unwrap(), Some(vec![None, Some(0)]));
    assert_eq!(block_on(index.rows(1)).unwrap(), Some(vec![Some(1)]));
    case.load("tree", &[vec![Some(1), Some(10)]], 2);
    let tree = case.table("tree");
    assert!(tree.row_index(&tree, 0).is_none());
}

/// The writer's turn comes late: what was read of the parent before it is out of date by then.
#[test]
fn a_parent_that_changes_meanwhile_is_read_again() {
    let case = Case::of(1);
    case.load("parent", &one([4, 2]), 10);
    case.load("child", &one([2, 4, 6]), 10);
    let tx = case.store.begin().unwrap();
    let batch = case.batch("parent", &one([6, 5]));
    std::thread::scope(|scope| {
        let made = scope.spawn(|| case.index(1));
        // Long enough for the other thread to read the parent; if not, the test is just easier.
        std::thread::sleep(Duration::from_millis(200));
        let (mut tx, _) = block_on(append(tx, &batch));
        assert_eq!(delete(&mut tx, "parent", &[0]).unwrap(), 1);
        tx.commit().unwrap();
        assert_eq!(
            made.join().unwrap(),
            Outcome::Blocks {
                written: 1,
                orphans: 1
            }
        );
    });
    assert_eq!(case.compare(), (1, 1));
}

async fn append(tx: store::Transaction, batch: &RecordBatch) -> (store::Transaction, u64) {
    let loader = Loader::new(tx, "parent").await.unwrap();
    loader.block(0, std::slice::from_ref(batch)).unwrap();
    loader.finish().unwrap()
}

/// Both can be awaited on a runtime of several threads.
#[test]
fn futures_can_be_sent() {
    fn is_send(_: impl Send) {}
    let case = Case::of(1);
    is_send(index_foreign_keys(&case.store, &case.catalog, "child", 1));
    case.index(1);
    is_send(case.row_index().unwrap().rows(0));
    let error = block_on(index_foreign_keys(&case.store, &case.catalog, "nope", 1)).unwrap_err();
    assert!(matches!(error, Error::NoTable { .. }), "{error}");
}
