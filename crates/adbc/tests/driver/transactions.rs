//! Autocommit, commit, rollback, isolation.

use adbc_core::error::Status;
use adbc_core::options::OptionConnection;
use adbc_core::{Connection as _, Database as _, Optionable};

use super::{code, connection, database, manual, number, rows, run};

fn set(
    connection: &mut adbc::Connection,
    key: OptionConnection,
    value: &str,
) -> adbc_core::error::Result<()> {
    connection.set_option(key, value.into())
}

fn isolation(connection: &mut adbc::Connection, level: &str) -> adbc_core::error::Result<()> {
    let level = format!("adbc.connection.transaction.isolation.{level}");
    set(connection, OptionConnection::IsolationLevel, &level)
}

#[test]
fn a_transaction_lasts_until_it_is_committed() {
    let database = database();
    let (mut one, mut two) = (
        database.new_connection().unwrap(),
        database.new_connection().unwrap(),
    );
    run(&mut one, "create table t (a int)").unwrap();
    let early = one.commit().unwrap_err();
    assert_eq!(early.status, Status::InvalidState, "{early}");
    manual(&mut one);
    assert_eq!(
        one.get_option_string(OptionConnection::AutoCommit).unwrap(),
        "false"
    );
    one.commit().unwrap();
    run(&mut one, "insert into t values (1)").unwrap();
    assert_eq!(number(&mut one, "select count(*) from t"), 1);
    assert_eq!(number(&mut two, "select count(*) from t"), 0);
    one.rollback().unwrap();
    run(&mut one, "insert into t values (2), (3)").unwrap();
    one.commit().unwrap();
    assert_eq!(number(&mut two, "select count(*) from t"), 2);
    // Switching autocommit on commits.
    run(&mut one, "insert into t values (4)").unwrap();
    set(&mut one, OptionConnection::AutoCommit, "true").unwrap();
    assert_eq!(number(&mut two, "select count(*) from t"), 3);
    run(&mut one, "insert into t values (5)").unwrap();
    assert_eq!(number(&mut two, "select count(*) from t"), 4);
}

#[test]
fn a_connection_that_goes_rolls_back() {
    let database = database();
    let (mut one, mut two) = (
        database.new_connection().unwrap(),
        database.new_connection().unwrap(),
    );
    run(&mut one, "create table t (a int)").unwrap();
    manual(&mut one);
    run(&mut one, "insert into t values (1)").unwrap();
    drop(one);
    run(&mut two, "insert into t values (2)").unwrap();
    assert_eq!(number(&mut two, "select sum(a) from t"), 2);
}

#[test]
fn a_transaction_that_has_failed_is_not_committed() {
    let mut connection = connection();
    run(&mut connection, "create table t (a int)").unwrap();
    manual(&mut connection);
    run(&mut connection, "insert into t values (1)").unwrap();
    assert!(rows(&mut connection, "select nothing from t").is_err());
    let aborted = run(&mut connection, "insert into t values (2)").unwrap_err();
    assert_eq!(
        (aborted.status, code(&aborted).as_str()),
        (Status::InvalidState, "25P02")
    );
    assert!(connection.commit().is_err());
    assert_eq!(number(&mut connection, "select count(*) from t"), 0);
}

/// A transaction that begins with a statement that writes has the newest snapshot, also if the statement has parameters.
#[test]
fn parameters_take_no_snapshot_before_the_statement() {
    let database = database();
    run(
        &mut database.new_connection().unwrap(),
        "create table t (a bigint)",
    )
    .unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let mut connection = database.new_connection().unwrap();
            scope.spawn(move || {
                manual(&mut connection);
                for n in 0..20 {
                    let mut insert = super::statement(&mut connection, "insert into t values (?)");
                    let number: arrow::array::ArrayRef =
                        std::sync::Arc::new(arrow::array::Int64Array::from(vec![n]));
                    let row = arrow::array::RecordBatch::try_from_iter([("n", number)]).unwrap();
                    adbc_core::Statement::bind(&mut insert, row).unwrap();
                    adbc_core::Statement::execute_update(&mut insert).unwrap();
                    connection.commit().unwrap();
                }
            });
        }
    });
    let mut connection = database.new_connection().unwrap();
    assert_eq!(number(&mut connection, "select count(*) from t"), 60);
}

#[test]
fn a_stream_goes_on_after_its_transaction() {
    let mut connection = connection();
    run(
        &mut connection,
        "create table t as select x from generate_series(1, 300000) a(x)",
    )
    .unwrap();
    manual(&mut connection);
    let mut query = super::statement(&mut connection, "select x from t");
    let reader = adbc_core::Statement::execute(&mut query).unwrap();
    run(&mut connection, "delete from t").unwrap();
    connection.commit().unwrap();
    assert_eq!(super::collected(reader).unwrap().num_rows(), 300_000);
}

#[test]
fn levels_of_isolation_are_those_of_the_database() {
    let database = database();
    let (mut one, mut two) = (
        database.new_connection().unwrap(),
        database.new_connection().unwrap(),
    );
    run(&mut one, "create table t (a int)").unwrap();
    for (level, told) in [
        ("default", "default"),
        ("read_uncommitted", "snapshot"),
        ("read_committed", "snapshot"),
        ("repeatable_read", "snapshot"),
        ("snapshot", "snapshot"),
        ("serializable", "serializable"),
    ] {
        manual(&mut one);
        isolation(&mut one, level).unwrap();
        let found = one
            .get_option_string(OptionConnection::IsolationLevel)
            .unwrap();
        assert_eq!(
            found,
            format!("adbc.connection.transaction.isolation.{told}")
        );
        let before = number(&mut one, "select count(*) from t");
        if level != "serializable" {
            // Of these only one runs at a time.
            run(&mut two, "insert into t values (1)").unwrap();
        }
        let after = number(&mut one, "select count(*) from t");
        assert_eq!(after, before, "{level}");
        assert_eq!(
            isolation(&mut one, "default").unwrap_err().status,
            Status::InvalidState
        );
        one.commit().unwrap();
    }
    assert_eq!(
        isolation(&mut one, "linearizable").unwrap_err().status,
        Status::NotImplemented
    );
    assert_eq!(
        isolation(&mut one, "none").unwrap_err().status,
        Status::InvalidArguments
    );
}

#[test]
fn options_of_connections() {
    let mut connection = connection();
    assert_eq!(
        connection
            .get_option_string(OptionConnection::CurrentCatalog)
            .unwrap(),
        "atoll"
    );
    assert_eq!(
        connection
            .get_option_string(OptionConnection::CurrentSchema)
            .unwrap(),
        "public"
    );
    set(&mut connection, OptionConnection::CurrentSchema, "public").unwrap();
    assert!(set(&mut connection, OptionConnection::CurrentSchema, "other").is_err());
    assert!(set(&mut connection, OptionConnection::CurrentCatalog, "other").is_err());
    assert!(set(&mut connection, OptionConnection::AutoCommit, "maybe").is_err());
    set(&mut connection, OptionConnection::ReadOnly, "false").unwrap();
    let other = OptionConnection::Other("atoll.nothing".into());
    assert_eq!(
        connection
            .get_option_string(other.clone())
            .unwrap_err()
            .status,
        Status::NotFound
    );
    assert_eq!(
        set(&mut connection, other, "1").unwrap_err().status,
        Status::NotImplemented
    );
}
