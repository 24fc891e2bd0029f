//! Row ids of rows in the tail, against a model: a row keeps its id until it moves to a block, and no other row gets it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use futures::executor::block_on;
use memory::Traffic;
use proptest::prelude::*;
use table::*;

/// A table `t` of a key `k` beside what its rows should be.
struct Case {
    _folder: tempfile::TempDir,
    store: Arc<store::Store>,
    catalog: Catalog,
    /// The keys of the rows by their ids.
    rows: BTreeMap<u64, i64>,
    /// All ids that there have been.
    given: HashSet<u64>,
    next: i64,
}

impl Case {
    fn new() -> Case {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.atoll");
        let store = store::Store::create(path, &store::Options::default()).unwrap();
        let schema = Schema::new(vec![Field::new("k", DataType::Int64, false)]);
        let mut definition = Definition::from_schema("t", &schema).unwrap();
        definition.primary_key = vec![0];
        definition.enforce_primary_key();
        let mut tx = store.begin().unwrap();
        create(&mut tx, &definition).unwrap();
        tx.commit().unwrap();
        Case {
            _folder: folder,
            store,
            catalog: Catalog::new(),
            rows: BTreeMap::new(),
            given: HashSet::new(),
            next: 0,
        }
    }

    fn table(&self) -> Arc<Table> {
        let tables = self.catalog.tables(&self.store.snapshot()).unwrap();
        tables.get("t").unwrap().clone()
    }

    /// Inserts rows, which get ids that no row has had.
    fn insert(&mut self, rows: i64) {
        let keys: Vec<i64> = (self.next..self.next + rows).collect();
        self.next += rows;
        let column: ArrayRef = Arc::new(Int64Array::from(keys.clone()));
        let batch = RecordBatch::try_from_iter([("k", column)]).unwrap();
        let tx = self.store.begin().unwrap();
        let (tx, _) = block_on(insert(tx, "t", &[batch])).unwrap();
        let ids = last_rows(&tx, "t", rows as u64).unwrap();
        tx.commit().unwrap();
        assert_eq!(ids.len(), keys.len());
        for (id, key) in ids.into_iter().zip(keys) {
            assert!(self.given.insert(id), "{id:x} was a row before");
            self.rows.insert(id, key);
        }
    }

    fn delete(&mut self, ids: &[u64]) {
        let had = ids.iter().filter(|id| self.rows.contains_key(id));
        let had: HashSet<u64> = had.copied().collect();
        let mut tx = self.store.begin().unwrap();
        assert_eq!(delete(&mut tx, "t", ids).unwrap(), had.len() as u64);
        tx.commit().unwrap();
        ids.iter().for_each(|id| {
            self.rows.remove(id);
        });
    }

    /// The ids and keys that a scan finds, in its order.
    fn scan(&self) -> Vec<(u64, i64)> {
        let scan = Scan::new(self.table(), vec![0], true);
        let (pool, traffic) = (self.store.pool(), Traffic::new(1));
        let mut found = Vec::new();
        for (_, morsel) in scan.morsels() {
            let opened = block_on(scan.open(pool, morsel, &[], &traffic, || 0));
            let Some(mut cursor) = opened.unwrap() else {
                continue;
            };
            while let Some(batch) = cursor.next(usize::MAX).unwrap() {
                let ids = batch.column(1).as_primitive::<UInt64Type>().values();
                let keys = batch.column(0).as_primitive::<Int64Type>().values();
                found.extend(ids.iter().copied().zip(keys.iter().copied()));
            }
        }
        found
    }

    /// That all ways to a row know its id, and those of rows that are gone lead to none.
    fn check(&self) {
        let table = self.table();
        let rows: Vec<(u64, i64)> = self.rows.iter().map(|(id, key)| (*id, *key)).collect();
        assert_eq!(self.scan(), rows);
        let (ids, keys): (Vec<u64>, Vec<i64>) = rows.iter().copied().unzip();
        let column: ArrayRef = Arc::new(Int64Array::from(keys.clone()));
        let key = &table.definition().keys[0];
        for at in (0..keys.len()).step_by(1 + keys.len() / 20) {
            let found = block_on(table.find(key, &[column.slice(at, 1)])).unwrap();
            assert_eq!(found, [Some(ids[at])]);
            let row = block_on(table.row(&[0], ids[at], (&Traffic::new(1), 0))).unwrap();
            assert_eq!(row[0].as_primitive::<Int64Type>().value(0), keys[at]);
        }
        let found = block_on(table.find(key, &[column])).unwrap();
        assert_eq!(found, ids.iter().map(|id| Some(*id)).collect::<Vec<_>>());
        let fetched = block_on(table.fetch(&[0], &ids)).unwrap();
        assert_eq!(
            fetched.column(0).as_primitive::<Int64Type>().values(),
            &keys
        );
        let gone = self.given.iter().filter(|id| !self.rows.contains_key(id));
        for id in gone.take(20) {
            let row = block_on(table.row(&[0], *id, (&Traffic::new(1), 0)));
            assert!(row.is_err(), "{id:x} is deleted");
            assert_eq!(table.choose("k", &[*id]).chosen(), Some(("k", 0)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    /// Many small inserts, which are merged, with deletes of rows that are anywhere, also twice and of all.
    #[test]
    fn rows_of_the_tail_keep_their_ids(
        steps in prop::collection::vec((1u8..90, 1i64..6, 0u8..20, any::<u64>()), 1..12),
    ) {
        let mut case = Case::new();
        for (inserts, rows, deletes, seed) in steps {
            for at in 0..inserts {
                let many = if seed >> (at % 64) & 15 == 0 { 300 } else { 1 };
                case.insert(rows * many);
            }
            let every = 1 + u64::from(deletes) * (seed % 7);
            let given = case.given.iter().filter(|id| (*id ^ seed) % every == 0);
            let mut given: Vec<u64> = given.copied().collect();
            given.sort_unstable_by_key(|id| id.rotate_left((seed % 64) as u32));
            case.delete(&given);
            case.check();
        }
    }
}

/// Rows that move to a block get other ids; those that they had are none of a row.
#[test]
fn rows_that_move_to_a_block_leave_their_ids() {
    let mut case = Case::new();
    (0..5).for_each(|_| case.insert(12_000));
    let in_tail: Vec<u64> = case.rows.keys().copied().collect();
    case.delete(&in_tail[..1_000]);
    case.check();
    case.insert(12_000);
    assert_eq!(case.table().tail_rows(), 0);
    case.rows = case.scan().into_iter().collect();
    assert_eq!(case.rows.len(), 71_000);
    case.check();
    case.delete(&in_tail);
    case.insert(1);
    case.check();
}

/// An id that no row ever had is an error, and one of a row that is gone is not.
#[test]
fn an_id_that_no_row_ever_had_is_refused() {
    let mut case = Case::new();
    case.insert(2);
    let ids: Vec<u64> = case.rows.keys().copied().collect();
    case.delete(&ids);
    case.delete(&ids);
    let mut tx = case.store.begin().unwrap();
    for unknown in [ids[0] + (7 << 16), 1 << 16, u64::MAX] {
        let error = delete(&mut tx, "t", &[ids[0], unknown]).unwrap_err();
        assert!(error.to_string().contains("row number"), "{error}");
    }
}
