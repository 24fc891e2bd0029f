//! The parts of the tables have all the pages of the store, and each of them once.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use futures::executor::block_on;
use table::*;

struct Case {
    _folder: tempfile::TempDir,
    store: Arc<store::Store>,
    catalog: Catalog,
}

const PARENTS: i64 = 5_000;

impl Case {
    /// Tables `parent`, without rows, and `child`, which refers to it.
    fn new() -> Case {
        let folder = tempfile::tempdir().unwrap();
        let options = store::Options {
            page_size: 16_384,
            ..store::Options::default()
        };
        let store = store::Store::create(folder.path().join("p.atoll"), &options).unwrap();
        let mut tx = store.begin().unwrap();
        let parent = Schema::new(vec![Field::new("id", DataType::Int64, false)]);
        create(
            &mut tx,
            &Definition::from_schema("parent", &parent).unwrap(),
        )
        .unwrap();
        let child = Schema::new(vec![
            Field::new("parent", DataType::Int64, true),
            Field::new("colour", DataType::Utf8View, true),
            Field::new("text", DataType::Utf8View, false),
        ]);
        let mut child = Definition::from_schema("child", &child).unwrap();
        child.foreign_keys.push(ForeignKey {
            columns: vec![0],
            parent: "parent".into(),
            parent_columns: vec!["id".into()],
        });
        create(&mut tx, &child).unwrap();
        tx.commit().unwrap();
        Case {
            _folder: folder,
            store,
            catalog: Catalog::new(),
        }
    }

    fn load(&self, name: &str, batch: &RecordBatch) {
        let loader = block_on(Loader::new(self.store.begin().unwrap(), name)).unwrap();
        loader.block(0, std::slice::from_ref(batch)).unwrap();
        loader.finish().unwrap().0.commit().unwrap();
    }

    fn insert(&self, name: &str, batch: RecordBatch) {
        let (tx, _) = block_on(insert(self.store.begin().unwrap(), name, &[batch])).unwrap();
        tx.commit().unwrap();
    }

    fn index(&self) {
        block_on(index_foreign_keys(&self.store, &self.catalog, "child", 0)).unwrap();
    }

    /// The parts of all tables, and how many pages each has, after what must hold of them did.
    fn parts(&self, of: &str) -> Vec<(Part, usize)> {
        let tables = self.catalog.tables(&self.store.snapshot()).unwrap();
        let mut seen = BTreeSet::new();
        let mut parts = Vec::new();
        for table in tables.names().iter().map(|name| tables.get(name).unwrap()) {
            for (part, pages) in table.parts() {
                for page in &pages {
                    assert!(seen.insert(*page), "{of}: page {page} is in two parts");
                }
                parts.push((part, pages.len()));
            }
        }
        let live = self.store.statistics().pages.pages;
        assert_eq!(seen.len() as u64, live, "{of}: {parts:?}");
        parts
    }
}

/// Keys without an order, so that the row index is one of blocks.
fn parents() -> RecordBatch {
    let keys = (0..PARENTS).map(|n| n * 7 % PARENTS);
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
    RecordBatch::try_from_iter([("id", keys)]).unwrap()
}

fn children(rows: i64, label: &str) -> RecordBatch {
    let keys: ArrayRef = Arc::new(Int64Array::from_iter(
        (0..rows).map(|n| (n % 11 != 0).then_some(n * 13 % PARENTS)),
    ));
    let colours: ArrayRef = Arc::new(StringViewArray::from_iter(
        (0..rows).map(|n| (n % 5 != 0).then(|| format!("{label} {}", n % 40))),
    ));
    // One text is longer than a page.
    let text = |n: i64| format!("{n} {label} ").repeat(if n == 7 { 9_000 } else { 2 });
    let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..rows).map(text)));
    let columns = [
        ("parent", keys, true),
        ("colour", colours, true),
        ("text", texts, false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

#[test]
fn every_page_of_the_store_is_in_one_part() {
    let case = Case::new();
    assert!(case.parts("empty").iter().all(|(_, pages)| *pages == 0));
    case.load("parent", &parents());
    case.load("child", &children(30_000, "red"));
    let find = |parts: &[(Part, usize)], part| {
        let found = parts.iter().find(|(of, _)| *of == part);
        found.map(|(_, pages)| *pages)
    };
    let loaded = case.parts("loaded");
    // Three columns of `child`, `parent`'s one, and a dictionary; there is no index yet.
    assert!(find(&loaded, Part::Dictionary(1)) > Some(0), "{loaded:?}");
    assert_eq!(find(&loaded, Part::RowIndex(0)), None, "{loaded:?}");
    assert!(find(&loaded, Part::Column(2)) > Some(10), "{loaded:?}");
    case.index();
    let indexed = case.parts("indexed");
    assert!(find(&indexed, Part::RowIndex(0)) > Some(0), "{indexed:?}");

    // The dictionary grows, which writes it anew; so does the index.
    case.load("child", &children(20_000, "blue"));
    case.parts("loaded again");
    case.index();
    case.parts("indexed again");
    // An index that is out of date has its pages all the same.
    case.insert("parent", parents().slice(0, 10));
    assert!(find(&case.parts("out of date"), Part::RowIndex(0)) > Some(0));

    let before = case.parts("before the tail");
    case.insert("child", children(100, "green"));
    let tables = case.catalog.tables(&case.store.snapshot()).unwrap();
    let child = tables.get("child").unwrap();
    assert_eq!(child.tail_rows(), 100);
    // Every row has its number and its texts there.
    assert!(child.tail_bytes() > 100 * 8, "{}", child.tail_bytes());
    assert_eq!(case.parts("a tail has no pages"), before);
    std::mem::drop(tables);

    let mut tx = case.store.begin().unwrap();
    table::drop(&mut tx, "child").unwrap();
    tx.commit().unwrap();
    assert_eq!(case.parts("dropped").len(), 1, "the parent's column");
}
