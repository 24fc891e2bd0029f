//! Two tables, and what a join of them says.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::*;
use arrow::compute::cast;
use arrow::datatypes::*;
use futures::executor::block_on;
use memory::Traffic;
use table::*;

/// A store of two tables: `child` refers to `parent`.
pub struct Case {
    pub folder: tempfile::TempDir,
    pub store: Arc<store::Store>,
    pub catalog: Catalog,
}

pub type Row = Vec<Option<i64>>;

pub fn definition(name: &str, types: &[DataType]) -> Definition {
    let fields = types.iter().enumerate();
    let fields = fields.map(|(i, t)| Field::new(format!("k{i}"), t.clone(), true));
    Definition::from_schema(name, &Schema::new(fields.collect::<Vec<_>>())).unwrap()
}

pub fn refer(columns: usize, parent: &str) -> ForeignKey {
    ForeignKey {
        columns: (0..columns).collect(),
        parent: parent.to_owned(),
        parent_columns: (0..columns).map(|i| format!("k{i}")).collect(),
    }
}

impl Case {
    pub fn new(parent: &[DataType], child: &[DataType]) -> Case {
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
    pub fn of(columns: usize) -> Case {
        let child = [DataType::Int64, DataType::Int32];
        Case::new(&vec![DataType::Int64; columns], &child[..columns])
    }

    pub fn table(&self, name: &str) -> Arc<Table> {
        let tables = self.catalog.tables(&self.store.snapshot()).unwrap();
        tables.get(name).unwrap().clone()
    }

    pub fn batch(&self, name: &str, rows: &[Row]) -> RecordBatch {
        let schema = self.table(name).schema();
        let columns = schema.fields().iter().enumerate().map(|(column, field)| {
            let values = Int64Array::from_iter(rows.iter().map(|row| row[column]));
            cast(&values, field.data_type()).unwrap()
        });
        RecordBatch::try_new(schema.clone(), columns.collect()).unwrap()
    }

    /// Loads `rows` as blocks of `block` rows.
    pub fn load(&self, name: &str, rows: &[Row], block: usize) {
        let loader = block_on(Loader::new(self.store.begin().unwrap(), name)).unwrap();
        for (ordinal, rows) in rows.chunks(block).enumerate() {
            loader
                .block(ordinal as u64, &[self.batch(name, rows)])
                .unwrap();
        }
        loader.finish().unwrap().0.commit().unwrap();
    }

    pub fn insert(&self, name: &str, rows: &[Row]) {
        let batch = self.batch(name, rows);
        let tx = self.store.begin().unwrap();
        let (tx, _) = block_on(insert(tx, name, &[batch])).unwrap();
        tx.commit().unwrap();
    }

    pub fn delete(&self, name: &str, gone: impl Fn(u64) -> bool) {
        let rows = self.rows(name).into_iter().flatten();
        let ids: Vec<u64> = rows.map(|(id, _)| id).filter(|id| gone(*id)).collect();
        let mut tx = self.store.begin().unwrap();
        assert_eq!(delete(&mut tx, name, &ids).unwrap(), ids.len() as u64);
        tx.commit().unwrap();
    }

    /// Row ids and keys that are left, block by block, the tail apart.
    pub fn rows(&self, name: &str) -> Vec<Vec<(u64, Row)>> {
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

    pub fn index(&self, threads: usize) -> Outcome {
        let made = index_foreign_keys(&self.store, &self.catalog, "child", threads);
        let mut reports = block_on(made).unwrap();
        assert_eq!(reports.len(), 1);
        assert_eq!((reports[0].key, &*reports[0].parent), (0, "parent"));
        reports.remove(0).outcome
    }

    pub fn row_index(&self) -> Option<RowIndex> {
        self.table("child").row_index(&self.table("parent"), 0)
    }

    /// Compares the index with a join; gives the blocks that have one and the orphans in them.
    pub fn compare(&self) -> (usize, u64) {
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

    pub fn assert_sound(&self) {
        let problems = self.store.check(&|_, _| {}).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
    }

    pub fn pages(&self) -> u64 {
        self.store.statistics().pages.pages
    }
}

pub fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

pub fn one(values: impl IntoIterator<Item = i64>) -> Vec<Row> {
    values.into_iter().map(|v| vec![Some(v)]).collect()
}

/// `count` different keys in the shape of number `shape`.
pub fn parent_keys(shape: u8, count: usize, seed: u64) -> Vec<Row> {
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
pub fn child_keys(parents: &[Row], count: usize, nulls: u64, orphans: u64, seed: u64) -> Vec<Row> {
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
