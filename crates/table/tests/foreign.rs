//! A row index says what a naive join of the two tables says, or is not there.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::*;
use arrow::compute::cast;
use arrow::datatypes::*;
use futures::executor::block_on;
use memory::Traffic;
use proptest::prelude::*;
use table::*;

/// A store of two tables: `child` refers to `parent`.
struct Case {
    folder: tempfile::TempDir,
    store: Arc<store::Store>,
    catalog: Catalog,
}

type Row = Vec<Option<i64>>;

fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

fn definition(name: &str, types: &[DataType]) -> Definition {
    let fields = types.iter().enumerate();
    let fields = fields.map(|(i, t)| Field::new(format!("k{i}"), t.clone(), true));
    Definition::from_schema(name, &Schema::new(fields.collect::<Vec<_>>())).unwrap()
}

fn refer(columns: usize, parent: &str) -> ForeignKey {
    ForeignKey {
        columns: (0..columns).collect(),
        parent: parent.to_owned(),
        parent_columns: (0..columns).map(|i| format!("k{i}")).collect(),
    }
}

impl Case {
    fn new(parent: &[DataType], child: &[DataType]) -> Case {
        let folder = tempfile::tempdir().unwrap();
        let options = store::Options {
            page_size: 16_384,
            ..store::Options::default()
        };
        let store = store::Store::create(folder.path().join("f.atoll"), &options).unwrap();
        let mut tx = store.begin().unwrap();
        create(&mut tx, &definition("parent", parent)).unwrap();
        let mut child = definition("child", child);
        child.foreign_keys = vec![refer(child.columns.len(), "parent")];
        create(&mut tx, &child).unwrap();
        tx.commit().unwrap();
        Case {
            folder,
            store,
            catalog: Catalog::new(),
        }
    }

    /// Two tables of `columns` numbers, of another width in the child.
    fn of(columns: usize) -> Case {
        let child = [DataType::Int64, DataType::Int32];
        Case::new(&vec![DataType::Int64; columns], &child[..columns])
    }

    fn table(&self, name: &str) -> Arc<Table> {
        let tables = self.catalog.tables(&self.store.snapshot()).unwrap();
        tables.get(name).unwrap().clone()
    }

    fn batch(&self, name: &str, rows: &[Row]) -> RecordBatch {
        let schema = self.table(name).schema();
        let columns = schema.fields().iter().enumerate().map(|(column, field)| {
            let values = Int64Array::from_iter(rows.iter().map(|row| row[column]));
            cast(&values, field.data_type()).unwrap()
        });
        RecordBatch::try_new(schema.clone(), columns.collect()).unwrap()
    }

    /// Loads `rows` as blocks of `block` rows.
    fn load(&self, name: &str, rows: &[Row], block: usize) {
        let loader = block_on(Loader::new(self.store.begin().unwrap(), name)).unwrap();
        for (ordinal, rows) in rows.chunks(block).enumerate() {
            loader
                .block(ordinal as u64, &[self.batch(name, rows)])
                .unwrap();
        }
        loader.finish().unwrap().0.commit().unwrap();
    }

    fn insert(&self, name: &str, rows: &[Row]) {
        let batch = self.batch(name, rows);
        let tx = self.store.begin().unwrap();
        let (tx, _) = block_on(insert(tx, name, &[batch])).unwrap();
        tx.commit().unwrap();
    }

    fn delete(&self, name: &str, gone: impl Fn(u64) -> bool) {
        let rows = self.rows(name).into_iter().flatten();
        let ids: Vec<u64> = rows.map(|(id, _)| id).filter(|id| gone(*id)).collect();
        let mut tx = self.store.begin().unwrap();
        assert_eq!(delete(&mut tx, name, &ids).unwrap(), ids.len() as u64);
        tx.commit().unwrap();
    }

    /// Row ids and keys that are left, block by block, the tail apart.
    fn rows(&self, name: &str) -> Vec<Vec<(u64, Row)>> {
        let table = self.table(name);
        let columns = table.schema().fields().len();
        let scan = Scan::new(table.clone(), (0..columns).collect(), true);
        let (pool, traffic) = (self.store.pool(), Traffic::new(self.store.pool().nodes()));
        let read = |block| {
            let opened = scan.open(pool, Morsel::Block(block), &[], &traffic, || 0);
            let (mut rows, cursor) = (Vec::new(), block_on(opened).unwrap());
            let mut cursor = cursor.unwrap();
            while let Some(batch) = cursor.next(usize::MAX).unwrap() {
                let keys: Vec<_> = batch.columns()[..columns]
                    .iter()
                    .map(|c| cast(c, &DataType::Int64).unwrap())
                    .collect();
                let ids = batch.column(columns).as_primitive::<UInt64Type>();
                for row in 0..batch.num_rows() {
                    let key = keys.iter().map(|c| {
                        let column = c.as_primitive::<Int64Type>();
                        column.is_valid(row).then(|| column.value(row))
                    });
                    rows.push((ids.value(row), key.collect()));
                }
            }
            rows
        };
        (0..table.blocks()).map(read).collect()
    }

    fn index(&self, threads: usize) -> Outcome {
        let made = index_foreign_keys(&self.store, &self.catalog, "child", threads);
        let mut reports = block_on(made).unwrap();
        assert_eq!(reports.len(), 1);
        assert_eq!((reports[0].key, &*reports[0].parent), (0, "parent"));
        reports.remove(0).outcome
    }

    fn row_index(&self) -> Option<RowIndex> {
        self.table("child").row_index(&self.table("parent"), 0)
    }

    /// Compares the index with a join; gives the blocks that have one and the orphans in them.
    fn compare(&self) -> (usize, u64) {
        let parents: HashMap<Row, u64> = self
            .rows("parent")
            .into_iter()
            .flatten()
            .filter(|(_, key)| key.iter().all(Option::is_some))
            .map(|(id, key)| (key, id))
            .collect();
        let index = self.row_index().expect("the index is not valid");
        let (mut covered, mut orphans) = (0, 0);
        for (block, rows) in self.rows("child").into_iter().enumerate() {
            let found = block_on(index.rows(block)).unwrap();
            assert_eq!(index.covers(block), found.is_some());
            let Some(found) = found else {
                continue;
            };
            covered += 1;
            assert_eq!(found.len(), self.table("child").block(block).rows as usize);
            for (id, key) in rows {
                let expected = parents.get(&key).copied();
                assert_eq!(found[id as u16 as usize], expected, "row {id:#x}, {key:?}");
                orphans += u64::from(expected.is_none() && key.iter().all(Option::is_some));
            }
        }
        (covered, orphans)
    }

    fn assert_sound(&self) {
        let problems = self.store.check(&|_, _| {}).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
    }

    fn pages(&self) -> u64 {
        self.store.statistics().pages.pages
    }
}

fn one(values: impl IntoIterator<Item = i64>) -> Vec<Row> {
    values.into_iter().map(|v| vec![Some(v)]).collect()
}

/// `count` different keys in the shape of number `shape`.
fn parent_keys(shape: u8, count: usize, seed: u64) -> Vec<Row> {
    let mut next = numbers(seed);
    let start = next() as i64 >> 40;
    let mut keys: Vec<Row> =
        match shape {
            // In order and without gaps; the same in any order; every third; far apart.
            0 | 1 => one((0..count as i64).map(|i| start + i)),
            2 => one((0..count as i64).map(|i| start + 3 * i)),
            3 => one((0..count as i64)
                .map(|i| (start + i).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64))),
            // Pairs: close together, and too far apart for a vector.
            4 => (0..count as i64)
                .map(|i| vec![Some(i / 7), Some(i % 7)])
                .collect(),
            _ => (0..count as i64)
                .map(|i| {
                    vec![
                        Some(i.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64)),
                        Some(i % 50),
                    ]
                })
                .collect(),
        };
    if shape != 0 {
        for i in (1..keys.len()).rev() {
            keys.swap(i, next() as usize % (i + 1));
        }
    }
    keys
}

/// Keys of `parents`, some of them NULL, and `orphans` in 100 of no parent.
fn child_keys(parents: &[Row], count: usize, nulls: u64, orphans: u64, seed: u64) -> Vec<Row> {
    let mut next = numbers(seed.rotate_left(17));
    let mut pick = || {
        let mut key = parents[next() as usize % parents.len()].clone();
        if next() % 100 < orphans {
            key[0] = key[0].map(|v| v.wrapping_add(next() as i64 >> (next() % 60)));
        }
        for value in &mut key {
            if next() % 100 < nulls {
                *value = None;
            }
        }
        key
    };
    (0..count).map(|_| pick()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn as_the_naive_join(
        shape in 0u8..6,
        sizes in (1usize..4_000, 1usize..5_000, 200usize..1_500),
        nulls in prop_oneof![Just(0u64), Just(5), Just(100)],
        orphans in prop_oneof![Just(0u64), Just(20), Just(100)],
        deletes: [bool; 2],
        seed: u64,
        threads in 0usize..5,
    ) {
        let (parents, children, block) = sizes;
        let keys = parent_keys(shape, parents, seed);
        let case = Case::of(keys[0].len());
        case.load("parent", &keys, block);
        case.load("child", &child_keys(&keys, children, nulls, orphans, seed), block);
        if deletes[0] {
            // The second block and more, so that there are parents no more and gaps in the ids.
            case.delete("parent", |id| id >> 16 == 1 || id % 11 == seed % 11);
        }
        if deletes[1] {
            case.delete("child", |id| id % 5 == seed % 5);
        }
        let blocks = case.table("child").blocks();
        let made = case.index(threads);
        let (covered, missing) = case.compare();
        prop_assert_eq!(covered, blocks);
        match made {
            Outcome::Affine => prop_assert!(dense_in_order(&keys)),
            Outcome::Blocks { written, orphans } => {
                prop_assert_eq!((written, orphans), (blocks, missing));
            }
            other => prop_assert!(false, "{:?}", other),
        }
        prop_assert_eq!(case.index(threads), Outcome::Current);

        // Whole blocks go and others come, whose numbers may be those that went.
        let gone = seed.rotate_left(7) % 3;
        case.delete("child", |id| (id >> 16) % 3 == gone || id >> 16 == blocks as u64 - 1);
        case.load("child", &child_keys(&keys, 700, nulls, orphans, !seed), 300);
        let (covered, _) = case.compare();
        let blocks = case.table("child").blocks();
        match case.index(threads) {
            Outcome::Current => prop_assert_eq!(covered, blocks),
            Outcome::Blocks { written, .. } => prop_assert_eq!(covered + written, blocks),
            other => prop_assert!(false, "{:?}", other),
        }
        prop_assert_eq!(case.compare().0, blocks);
        case.assert_sound();

        // The parent changes.
        case.load("parent", &one_more(&keys), 10);
        prop_assert!(case.row_index().is_none());
        let Outcome::Blocks { written, .. } = case.index(threads) else {
            return Err(TestCaseError::fail("not made anew"));
        };
        prop_assert_eq!(written, blocks);
        prop_assert_eq!(case.compare().0, blocks);
        case.assert_sound();
    }
}

/// Whether each key is one more than the key before it, as shuffled keys, too, may happen to be.
fn dense_in_order(keys: &[Row]) -> bool {
    keys[0].len() == 1
        && keys
            .windows(2)
            .all(|pair| pair[0][0].map(|key| key + 1) == pair[1][0])
}

/// A key that does not come right after the others.
fn one_more(keys: &[Row]) -> Vec<Row> {
    let mut new = keys[0].clone();
    while keys.contains(&new) || keys.len() == 1 && new == keys[0] {
        new[0] = new[0].map(|v| v.wrapping_add(1_000_003));
    }
    vec![new]
}

#[test]
fn dense_keys_in_order_need_a_constant() {
    let case = Case::of(1);
    case.load("parent", &one(1..=150_000), BLOCK_ROWS);
    let keys = one((0..80_000).map(|i| i * 7_919 % 149_999 + 1));
    case.load("child", &keys, BLOCK_ROWS);
    let before = case.pages();
    assert_eq!(case.index(2), Outcome::Affine);
    assert_eq!(case.pages(), before, "nothing is stored per block");
    assert_eq!(case.compare(), (2, 0));
    // Blocks added later are covered, too, and so are keys of no parent.
    case.load("child", &one([0, 1, 150_000, 150_001]), 10);
    assert_eq!(case.compare(), (3, 2));
    assert_eq!(case.index(2), Outcome::Current);
    // A gap: a constant would lead to a row that is gone.
    case.delete("parent", |id| id == 0);
    assert_eq!(case.index(2), Outcome::Affine);
    case.delete("parent", |id| id == 70_000);
    assert!(matches!(case.index(2), Outcome::Blocks { written: 3, .. }));
    assert_eq!(case.compare().0, 3);
}

#[test]
fn large_parents_in_any_order() {
    let case = Case::of(1);
    let keys = parent_keys(1, 150_000, 42);
    case.load("parent", &keys, BLOCK_ROWS);
    case.load("child", &child_keys(&keys, 150_000, 3, 0, 42), BLOCK_ROWS);
    let made = case.index(3);
    assert_eq!(
        made,
        Outcome::Blocks {
            written: 3,
            orphans: 0
        }
    );
    assert_eq!(case.compare().0, 3);
    // The bytes that reading takes are counted: 4 per row.
    let traffic = Traffic::new(1);
    let index = case.row_index().unwrap();
    block_on(index.read(0, &traffic, || 0)).unwrap().unwrap();
    assert_eq!(traffic.total(), 4 * BLOCK_ROWS as u64);
    case.assert_sound();
}

#[test]
fn a_key_that_occurs_twice_is_refused_and_takes_the_index_away() {
    let case = Case::of(1);
    case.load("parent", &one([5, 9, 7]), 10);
    case.load("child", &one([7, 5, 8]), 2);
    let before = case.pages();
    assert_eq!(
        case.index(1),
        Outcome::Blocks {
            written: 2,
            orphans: 1
        }
    );
    assert!(case.pages() > before);
    case.load("parent", &one([9]), 10);
    let grown = case.pages();
    let Outcome::Refused { why } = case.index(1) else {
        panic!("9 occurs twice");
    };
    assert!(why.contains("(9) more than once"), "{why}");
    assert!(case.row_index().is_none());
    assert!(case.pages() < grown, "the old index is freed");
    let version = case.store.snapshot().version();
    assert!(matches!(case.index(1), Outcome::Refused { .. }));
    assert_eq!(
        case.store.snapshot().version(),
        version,
        "nothing to commit"
    );
    case.assert_sound();
}

#[test]
fn rows_in_the_tail() {
    let case = Case::of(1);
    case.load("parent", &one([1, 2]), 10);
    case.insert("parent", &one([3]));
    case.load("child", &one([1, 3]), 10);
    let Outcome::Refused { why } = case.index(1) else {
        panic!("3 is in the tail");
    };
    assert!(why.contains("tail"), "{why}");
    case.delete_tail("parent");
    assert_eq!(case.index(1), Outcome::Affine);
    // A tail of the child is no hindrance: it has no blocks.
    case.insert("child", &one([2]));
    assert_eq!(case.compare(), (1, 1));
}

impl Case {
    fn delete_tail(&self, name: &str) {
        let scan = Scan::new(self.table(name), vec![], true);
        let traffic = Traffic::new(1);
        let opened = scan.open(self.store.pool(), Morsel::Tail(0), &[], &traffic, || 0);
        let mut cursor = block_on(opened).unwrap().unwrap();
        let batch = cursor.next(usize::MAX).unwrap().unwrap();
        let ids = batch.column(0).as_primitive::<UInt64Type>().values();
        let mut tx = self.store.begin().unwrap();
        delete(&mut tx, name, ids).unwrap();
        tx.commit().unwrap();
    }
}

#[test]
fn empty_parents_and_parents_of_nulls() {
    let case = Case::of(1);
    case.load("child", &one([0, 1, 2]), 2);
    assert_eq!(
        case.index(1),
        Outcome::Blocks {
            written: 2,
            orphans: 3
        }
    );
    case.load("parent", &[vec![None], vec![None]], 2);
    assert!(case.row_index().is_none());
    assert_eq!(
        case.index(1),
        Outcome::Blocks {
            written: 2,
            orphans: 3
        }
    );
    assert_eq!(case.compare(), (2, 3));
}

#[test]
fn types_that_do_not_compare_are_refused() {
    let decimal = |scale| DataType::Decimal128(20, scale);
    for (parent, child, fine) in [
        (DataType::UInt8, DataType::Int64, true),
        (DataType::Date32, DataType::Date32, true),
        (decimal(2), decimal(2), true),
        (decimal(2), decimal(1), false),
        (decimal(0), DataType::Int64, false),
        (DataType::Int32, DataType::Date32, false),
        (DataType::Date32, DataType::Int32, false),
        (DataType::Utf8View, DataType::Utf8View, false),
        (DataType::Float64, DataType::Float64, false),
    ] {
        let case = Case::new(std::slice::from_ref(&parent), std::slice::from_ref(&child));
        let made = case.index(1);
        match made {
            Outcome::Refused { why } => assert!(!fine && why.contains("'k0'"), "{why}"),
            _ => assert!(fine, "{parent} {child}"),
        }
    }
    let wide = DataType::Decimal128(38, 0);
    let case = Case::new(&[wide.clone(), wide.clone()], &[wide.clone(), wide]);
    let rows: Vec<_> = [i128::MIN / 2, i128::MAX / 2].map(|v| v / 4).to_vec();
    let column = Decimal128Array::from(rows)
        .with_precision_and_scale(38, 0)
        .unwrap();
    let column: ArrayRef = Arc::new(column);
    let batch = RecordBatch::try_new(case.table("parent").schema(), vec![column.clone(), column]);
    let loader = block_on(Loader::new(case.store.begin().unwrap(), "parent")).unwrap();
    loader.block(0, &[batch.unwrap()]).unwrap();
    loader.finish().unwrap().0.commit().unwrap();
    let Outcome::Refused { why } = case.index(1) else {
        panic!("two such columns do not fit 128 bits");
    };
    assert!(why.contains("128 bits"), "{why}");
}

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
