//! What zone maps of blocks are worth: extremes that are known without a page, and narrow zones of tables with an order.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use table::Zone;

use crate::fixture;

struct Database {
    workers: Arc<workers::Workers>,
    instance: Arc<sql::Instance>,
    _directory: tempfile::TempDir,
}

impl Database {
    fn new() -> Database {
        let (workers, directory) = (fixture::workers(), tempfile::tempdir().unwrap());
        let store = store::Options::default();
        let options = sql::Options::spilling_to(directory.path());
        let path = directory.path().join("t.atoll");
        Database {
            instance: fixture::instance(&workers, &path, 512 << 20, store, options),
            workers,
            _directory: directory,
        }
    }

    /// The whole numbers in the first row of the last statement, and the bytes that were read.
    fn row(&self, text: &str) -> (Vec<i64>, u64) {
        let bytes = || self.instance.bytes().iter().flatten().sum::<u64>();
        let before = bytes();
        let session = self.instance.session();
        let answers = self.workers.handle().block_on(session.execute(text));
        let answers = answers.unwrap();
        let batches = &answers.last().unwrap().batches;
        let row = batches.iter().find(|batch| batch.num_rows() > 0);
        let columns = row.map_or(&[][..], |row| row.columns());
        let numbers = columns
            .iter()
            .map(|own| own.as_primitive::<Int64Type>().value(0));
        (numbers.collect(), bytes() - before)
    }

    /// The zones of a column of a table's blocks.
    fn zones(&self, table: &str, column: usize) -> Vec<(i128, i128)> {
        let tables = table::Catalog::new().tables(&self.instance.store().snapshot());
        let tables = tables.unwrap();
        let table = tables.get(table).unwrap();
        let zone = |at| match table.block(at).columns[column].zone {
            Some(Zone::Int { min, max }) => (min, max),
            other => panic!("{other:?}"),
        };
        (0..table.blocks()).map(zone).collect()
    }
}

#[test]
fn extremes_are_told_without_a_page() {
    let database = Database::new();
    database.row(
        "create table t (k bigint, v bigint); insert into t select g, g * 7919 % 400009 from generate_series(1, 400000) g(g); select 1::bigint",
    );
    let all = "select min(k), max(k), min(v), max(v), count(*) from t";
    assert_eq!(
        database.row(all),
        (vec![1, 400_000, 1, 400_008, 400_000], 0)
    );
    let one = "select max(k) from t";
    assert_eq!(database.row(one), (vec![400_000], 0));
    // Of a block with deleted rows it is not known whether the least or the greatest went.
    database.row("delete from t where k in (70005, 1); select 1::bigint");
    let (row, bytes) = database.row("select min(k), max(k) from t");
    assert_eq!(row, [2, 400_000]);
    let (_, whole) = database.row("select sum(k)::bigint from t");
    assert!(bytes * 2 < whole, "{bytes} of {whole}");
    database.row("insert into t values (400001, 5), (0, null); select 1::bigint");
    let (row, _) = database.row("select min(k), max(k) from t");
    assert_eq!(row, [0, 400_001]);
}

#[test]
fn blocks_of_a_table_with_an_order_do_not_overlap() {
    let database = Database::new();
    let rows = "select g * 7919 % 400009, g from generate_series(1, 400000) g(g)";
    let text = format!(
        "create table o (k bigint, v bigint) order by (k); insert into o {rows}; create table u (k bigint, v bigint); insert into u {rows}; select 1::bigint"
    );
    database.row(&text);
    let mut zones = database.zones("o", 0);
    zones.sort_unstable();
    assert!(
        zones.len() > 5 && zones.windows(2).all(|pair| pair[0].1 < pair[1].0),
        "{zones:?}"
    );
    assert!(
        database
            .zones("u", 0)
            .iter()
            .all(|(min, max)| max - min > 300_000)
    );
    let some = |table: &str| {
        database.row(&format!(
            "select count(*), sum(v)::bigint from {table} where k between 1000 and 2000"
        ))
    };
    let (ordered, few) = some("o");
    let (others, all) = some("u");
    assert_eq!(ordered, others);
    assert!(few * 3 < all, "{few} of {all}");
    // What an `update` writes is in order, too.
    database.row("update o set v = v + 1 where v % 3 = 0; select 1::bigint");
    let (row, _) = database.row("select count(*), sum(v)::bigint, min(k) from o");
    let (same, _) = database.row(
        "select count(*), sum(case when v % 3 = 0 then v + 1 else v end)::bigint, min(k) from u",
    );
    assert_eq!(row, same);
}
