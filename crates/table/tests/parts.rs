//! The parts of the tables have all the pages of the store, and each of them once.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use futures::executor::block_on;
use store::Kind;
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
        block_on(loader.finish()).unwrap().0.commit().unwrap();
    }

    fn insert(&self, name: &str, batch: RecordBatch) {
        let (tx, _) = block_on(insert(self.store.begin().unwrap(), name, &[batch])).unwrap();
        tx.commit().unwrap();
    }

    fn space(&self, name: &str) -> u32 {
        let entry = [b"t", name.as_bytes()].concat();
        let value = self.store.snapshot().get(0, &entry).unwrap();
        u32::from_le_bytes(value[..].try_into().unwrap())
    }

    /// Gives `child` the row index that version 0.1 made of its foreign key: a tag, and a matrix of
    /// row ids for each block.
    fn index(&self) {
        let (child, parent) = (self.space("child"), self.space("parent"));
        let mut tx = self.store.begin().unwrap();
        let tag = postcard::to_stdvec(&(parent, 1_u64, 1_u8)).unwrap();
        tx.put(child, b"f\0\0\0\0", &tag);
        let blocks: Vec<_> = tx.prefix(child, b"b").map(|(entry, _)| entry).collect();
        for block in blocks {
            let zone = Some(Zone::Int { min: 0, max: 255 });
            let page = Page {
                id: tx.write_page(&[7; 16_000], 0, Kind::Values).unwrap(),
                first: 0,
                zone,
                more: vec![],
                long: false,
            };
            let matrix = Matrix {
                encoding: Encoding::Int { width: 1 },
                pages: vec![page],
                nulls: 1,
                validity: Some(tx.write_page(&[0xfe; 2_000], 0, Kind::Validity).unwrap()),
                zone,
            };
            let entry = [b"i\0\0\0\0", &block[1..]].concat();
            tx.put(child, &entry, &postcard::to_stdvec(&matrix).unwrap());
        }
        tx.commit().unwrap();
    }

    fn assert_sound(&self) {
        let problems = self.store.check(&|_, _| {}).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
    }

    /// Changes tables in one transaction.
    fn change(&self, work: impl FnOnce(&mut store::Transaction)) {
        let mut tx = self.store.begin().unwrap();
        work(&mut tx);
        tx.commit().unwrap();
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

fn find(parts: &[(Part, usize)], part: Part) -> Option<usize> {
    let found = parts.iter().find(|(of, _)| *of == part);
    found.map(|(_, pages)| *pages)
}

#[test]
fn every_page_of_the_store_is_in_one_part() {
    let case = Case::new();
    assert!(case.parts("empty").iter().all(|(_, pages)| *pages == 0));
    case.load("parent", &parents());
    case.load("child", &children(30_000, "red"));
    let loaded = case.parts("loaded");
    // Three columns of `child`, `parent`'s one, and a dictionary.
    assert!(find(&loaded, Part::Dictionary(1)) > Some(0), "{loaded:?}");
    assert_eq!(find(&loaded, Part::RowIndex(0)), None, "{loaded:?}");
    assert!(find(&loaded, Part::Column(2)) > Some(10), "{loaded:?}");
    // The dictionary grows, which writes it anew.
    case.load("child", &children(20_000, "blue"));
    case.parts("loaded again");

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

/// Stores of version 0.1 have row indexes. Their pages count until the rows change, and go then.
#[test]
fn row_indexes_of_version_0_1_go_with_the_next_change() {
    let indexed = || {
        let case = Case::new();
        case.load("parent", &parents());
        case.load("child", &children(20_000, "red"));
        let before = case.parts("loaded");
        case.load("child", &children(20_000, "blue"));
        case.index();
        let parts = case.parts("indexed");
        assert_eq!(find(&parts, Part::RowIndex(0)), Some(4), "{parts:?}");
        case.assert_sound();
        (case, before)
    };
    let is_gone = |case: &Case, of: &str| {
        let parts = case.parts(of);
        assert_eq!(find(&parts, Part::RowIndex(0)), None, "{of}: {parts:?}");
        case.assert_sound();
        // Nothing of it is left in the catalog.
        let (child, snapshot) = (case.space("child"), case.store.snapshot());
        assert_eq!(snapshot.prefix(child, b"f").count(), 0, "{of}");
        assert_eq!(snapshot.prefix(child, b"i").count(), 0, "{of}");
    };

    let (case, _) = indexed();
    // A change of the parent leaves it alone.
    case.insert("parent", parents().slice(0, 10));
    let parts = case.parts("another row in the parent");
    assert_eq!(find(&parts, Part::RowIndex(0)), Some(4), "{parts:?}");
    case.insert("child", children(100, "green"));
    is_gone(&case, "few rows");

    let (case, _) = indexed();
    case.load("child", &children(20_000, "green"));
    is_gone(&case, "a block");

    let (case, before) = indexed();
    // All of the second block.
    let rows: Vec<u64> = (0..20_000).map(|row| 1 << 16 | row).collect();
    case.change(|tx| assert_eq!(delete(tx, "child", &rows).unwrap(), 20_000));
    is_gone(&case, "deleted");
    let column = find(&before, Part::Column(0));
    assert_eq!(find(&case.parts("deleted"), Part::Column(0)), column);

    let (case, _) = indexed();
    case.change(|tx| truncate(tx, "child").unwrap());
    is_gone(&case, "truncated");

    let (case, _) = indexed();
    case.change(|tx| table::drop(tx, "child").unwrap());
    assert_eq!(case.parts("dropped").len(), 1, "the parent's column");
    case.assert_sound();
}

/// An index in the form of a rule has a tag only.
#[test]
fn a_row_index_of_version_0_1_may_have_no_pages() {
    let case = Case::new();
    case.load("parent", &parents());
    case.load("child", &children(20_000, "red"));
    let (child, parent) = (case.space("child"), case.space("parent"));
    let affine = (0_u8, 0_i128, 0_i128, 4_999_i128);
    let tag = postcard::to_stdvec(&(parent, 1_u64, affine)).unwrap();
    case.change(|tx| tx.put(child, b"f\0\0\0\0", &tag));
    let parts = case.parts("indexed");
    assert_eq!(find(&parts, Part::RowIndex(0)), Some(0), "{parts:?}");
    case.load("child", &children(20_000, "blue"));
    assert_eq!(find(&case.parts("loaded"), Part::RowIndex(0)), None);
}
