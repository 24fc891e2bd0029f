//! Loss of power: of a transaction there is all or nothing.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use io::fault::Disk;
use sql::Instance;
use store::Store;
use workers::Workers;

use crate::{fixture, numbers};

/// Each is one transaction; the sum of the table after it is that of the numbers inserted so far.
const TRANSACTIONS: [&str; 5] = [
    "begin; create table t (a bigint); insert into t values (1); commit",
    "begin; insert into t values (2); savepoint s; insert into t values (1000); rollback to s; insert into t values (4); commit",
    "begin; insert into t values (1000); delete from t; rollback",
    "begin; delete from t where a = 2; insert into t select a + 8 from t; insert into t values (2); commit",
    "begin; insert into t values (64); update t set a = 32 where a = 64",
];

/// The sums after each of them; none where the table is not there yet. The last never commits.
const SUMS: [Option<i64>; 4] = [None, Some(1), Some(7), Some(28)];

/// The same sums of cells of an array, of which some are written over, erased, appended and kept in a version.
const OF_ARRAYS: [&str; 5] = [
    "begin; create array t (x dimension [0:*] chunk 4, a bigint) sparse; insert into t values (0, 1); commit",
    "begin; insert into t values (1, 2); savepoint s; insert into t values (2, 1000); rollback to s; insert into t values (9, 4); commit",
    "begin; create version v of t; update t set a = 1000; delete from t; rollback",
    "begin; create version v of t; delete from t where a = 2; insert into t select x + 20, a + 8 from t; insert into t values (0, 3); commit",
    "begin; drop version v of t; update t set a = 32 where a = 3",
];

/// The same sums of a table that is written anew with other types, and whose rows refer to each other when a transaction ends.
const OF_TYPES: [&str; 5] = [
    "begin; create table t (id int primary key, a bigint, up int references t deferrable initially deferred); insert into t values (1, 1, 2); insert into t values (2, 0, 1); commit",
    "begin; alter table t alter a type bigint using a * 6; insert into t values (3, 1, 3); commit",
    "begin; alter table t alter a type text, alter id type bigint; delete from t where id = 3; rollback",
    "begin; alter table t alter a type bigint using a * 4, add column n serial, add check (n > 0) not valid; update t set up = id; commit",
    "begin; alter table t alter a type text",
];

fn options() -> store::Options {
    store::Options {
        page_size: 16_384,
        checkpoint_bytes: 2_000,
        pool: store::PoolOptions {
            bytes: 64 * 16_384,
            io_threads: 1,
            ..store::PoolOptions::default()
        },
        ..store::Options::default()
    }
}

fn instance(workers: &Arc<Workers>, store: Arc<Store>) -> Arc<Instance> {
    let budget = memory::Budget::new(64 << 20);
    Instance::new(store, Arc::clone(workers), budget, sql::Options::default()).unwrap()
}

/// Works until the disk stops; returns how many commits were acknowledged, and how many begun; none if not even the
/// store was created.
fn work(workers: &Arc<Workers>, disk: &Disk, transactions: &[&str]) -> Option<usize> {
    let created = Store::create_on(disk.device("data"), disk.device("log"), &options());
    let instance = instance(workers, created.ok()?);
    let session = instance.session();
    let mut acknowledged = 0;
    for text in transactions {
        if workers.handle().block_on(session.execute(text)).is_err() {
            break;
        }
        acknowledged += usize::from(text.ends_with("commit"));
    }
    Some(acknowledged)
}

fn sum(workers: &Arc<Workers>, image: &Disk) -> Option<i64> {
    let store = Store::open_on(image.device("data"), image.device("log"), &options()).unwrap();
    assert!(store.check(&|_, _| {}).unwrap().is_empty());
    let session = instance(workers, store).session();
    let query = session.execute("select coalesce(sum(a), 0) from t");
    let answers = workers.handle().block_on(query).ok()?;
    Some(numbers(&answers[0])[0][0])
}

/// Loses power at each operation of transactions, of which each makes the sum of `t` the next of `sums`.
fn all_or_nothing(transactions: &[&str], sums: &[Option<i64>]) {
    let workers = fixture::workers();
    let whole = Disk::new(0);
    assert_eq!(work(&workers, &whole, transactions), Some(3));
    assert_eq!(sum(&workers, &whole.crash(0)), sums[3]);
    let (mut seen, mut checked) = (HashSet::new(), 0);
    for operation in 0..whole.operations() {
        let disk = Disk::new(0);
        disk.stop_after(operation);
        let Some(acknowledged) = work(&workers, &disk, transactions) else {
            continue;
        };
        for image in 0..2 {
            let left = disk.crash(operation * 155 + image);
            let mut hasher = DefaultHasher::new();
            for name in left.names() {
                (&name, left.bytes(&name)).hash(&mut hasher);
            }
            if !seen.insert(hasher.finish()) {
                continue;
            }
            let found = sum(&workers, &left);
            let at = sums.iter().rposition(|sum| *sum == found);
            let of = format!("operation {operation}, image {image}: {found:?}");
            assert!(
                at.is_some_and(|at| at >= acknowledged && at <= acknowledged + 1),
                "{of}"
            );
            checked += 1;
        }
    }
    assert!(checked > 10, "{checked} distinct images");
}

#[test]
fn of_a_transaction_there_is_all_or_nothing_wherever_power_is_lost() {
    all_or_nothing(&TRANSACTIONS, &SUMS);
}

#[test]
fn of_cells_there_are_all_or_none_wherever_power_is_lost() {
    all_or_nothing(&OF_ARRAYS, &SUMS);
}

#[test]
fn of_other_types_there_are_all_or_none_wherever_power_is_lost() {
    all_or_nothing(&OF_TYPES, &SUMS);
}
