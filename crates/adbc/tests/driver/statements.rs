//! Queries, commands, cancelling, and what is refused.

use std::thread;
use std::time::{Duration, Instant};

use adbc_core::error::Status;
use adbc_core::options::{OptionDatabase, OptionStatement};
use adbc_core::{Connection as _, Database as _, Optionable, Statement as _};
use arrow::array::RecordBatchReader;
use arrow::datatypes::DataType;

use super::{
    code, collected, connection, database, number, numbers, open, opened, rows, run, statement,
};

const ENDLESS: &str = "select count(*) from generate_series(1, 3000000) a(x), generate_series(1, 100000) b(y) where x * y % 7 = 3";

#[test]
fn rows_come_as_they_are_asked_for() {
    let mut connection = connection();
    let mut query = statement(
        &mut connection,
        "select x from generate_series(1, 400000000) a(x)",
    );
    let begun = Instant::now();
    let mut reader = query.execute().unwrap();
    let first = reader.next().unwrap().unwrap();
    assert!(first.num_rows() > 0 && first.num_rows() < 1_000_000);
    drop(reader);
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "all rows were made"
    );
    assert_eq!(number(&mut connection, "select 7"), 7);
}

#[test]
fn texts_leave_as_texts_of_their_own() {
    let mut connection = connection();
    run(&mut connection, "create table fish (name varchar, b bytea)").unwrap();
    let insert = "insert into fish values ('blenny', X'00ff'), (null, null)";
    run(&mut connection, insert).unwrap();
    let batch = rows(&mut connection, "select name, b from fish").unwrap();
    let schema = batch.schema();
    assert_eq!(*schema.field(0).data_type(), DataType::Utf8);
    assert_eq!(*schema.field(1).data_type(), DataType::Binary);
    assert_eq!(batch.num_rows(), 2);
}

#[test]
fn a_statement_without_rows_says_how_many_it_has_written() {
    let mut connection = connection();
    assert_eq!(
        run(&mut connection, "create table t (a int)").unwrap(),
        None
    );
    assert_eq!(
        run(&mut connection, "insert into t values (1), (2), (3)").unwrap(),
        Some(3)
    );
    assert_eq!(
        run(&mut connection, "delete from t where a > 1").unwrap(),
        Some(2)
    );
    let returned =
        statement(&mut connection, "insert into t values (4), (5) returning a").execute_update();
    assert_eq!(returned.unwrap(), Some(2));
    let mut reader = statement(&mut connection, "insert into t values (6)")
        .execute()
        .unwrap();
    assert!(reader.schema().fields().is_empty() && reader.next().is_none());
    assert_eq!(run(&mut connection, "select * from t").unwrap(), None);
    assert_eq!(run(&mut connection, " -- nothing").unwrap(), None);
    assert_eq!(number(&mut connection, "select count(*) from t"), 4);
}

#[test]
fn several_statements_run_one_after_the_other() {
    let mut connection = connection();
    let script = "create table t (a int); insert into t values (1), (2);\n insert into t select a + 2 from t";
    assert_eq!(run(&mut connection, script).unwrap(), Some(2));
    assert_eq!(
        numbers(
            &mut connection,
            "delete from t where a = 1; select a from t order by a"
        ),
        [Some(2), Some(3), Some(4)]
    );
    let error = run(
        &mut connection,
        "insert into t values (9);\nselect nothing from t",
    )
    .unwrap_err();
    assert!(error.message.contains("line 2, column 8"), "{error}");
    assert_eq!(number(&mut connection, "select count(*) from t"), 4);
}

#[test]
fn errors_have_status_and_sqlstate() {
    let mut connection = connection();
    run(&mut connection, "create table t (a int primary key)").unwrap();
    run(&mut connection, "insert into t values (1)").unwrap();
    for (text, status, wanted) in [
        ("selec 1", Status::InvalidArguments, "42601"),
        ("select * from nothing", Status::NotFound, "42P01"),
        ("select nothing from t", Status::NotFound, "42703"),
        ("create table t (b int)", Status::AlreadyExists, "42P07"),
        ("insert into t values (1)", Status::Integrity, "23505"),
        ("insert into t values (null)", Status::Integrity, "23502"),
        ("select a / 0 from t", Status::InvalidData, "22012"),
        ("rollback", Status::InvalidState, "25P01"),
    ] {
        let error = rows(&mut connection, text).unwrap_err();
        assert_eq!(
            (error.status, code(&error).as_str()),
            (status, wanted),
            "{text}: {error}"
        );
        assert!(!error.message.is_empty());
    }
    // After an error the connection goes on.
    assert_eq!(number(&mut connection, "select a from t"), 1);
}

#[test]
fn an_error_in_the_middle_of_a_stream_ends_it() {
    let mut connection = connection();
    let text = "select 100 / (1000000 - x) from generate_series(1, 2000000) a(x)";
    let mut reader = match statement(&mut connection, text).execute() {
        // It may have come before the first batch.
        Err(error) => return assert_eq!(error.status, Status::InvalidData),
        Ok(reader) => reader,
    };
    let error = reader.by_ref().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("22012"), "{error}");
    assert!(reader.next().is_none());
}

#[test]
fn another_thread_cancels() {
    let mut connection = connection();
    let mut query = statement(&mut connection, ENDLESS);
    let idle = query.get_cancel_handle().try_cancel().unwrap_err();
    assert_eq!(idle.status, Status::InvalidState);
    let handle = query.get_cancel_handle();
    let canceller = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        handle.try_cancel()
    });
    let error = query.execute().err().unwrap();
    assert_eq!(
        (error.status, code(&error).as_str()),
        (Status::Cancelled, "57014")
    );
    canceller.join().unwrap().unwrap();
    assert_eq!(number(&mut connection, "select 1"), 1);
}

#[test]
fn a_stream_is_cancelled_between_two_batches_and_no_other_is() {
    let mut connection = connection();
    let text = "select x from generate_series(1, 4000000) a(x)";
    let (mut one, mut two) = (
        statement(&mut connection, text),
        statement(&mut connection, text),
    );
    let (mut first, second) = (one.execute().unwrap(), two.execute().unwrap());
    first.next().unwrap().unwrap();
    // Nobody waits at this moment.
    one.get_cancel_handle().try_cancel().unwrap();
    let error = first.by_ref().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("Cancelled"), "{error}");
    assert!(first.next().is_none());
    let rows: usize = second.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 4_000_000);
    // There is nothing left of the one.
    assert!(one.get_cancel_handle().try_cancel().is_err());
}

#[test]
fn columns_are_known_before_a_query_runs() {
    let mut connection = connection();
    run(
        &mut connection,
        "create table t (a int not null, b varchar)",
    )
    .unwrap();
    let schema = statement(&mut connection, "select a, b, a / 0 as c from t")
        .execute_schema()
        .unwrap();
    let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(*schema.field(1).data_type(), DataType::Utf8);
    let none = statement(&mut connection, "insert into t values (1, 'x')")
        .execute_schema()
        .unwrap();
    assert!(none.fields().is_empty());
    assert_eq!(number(&mut connection, "select count(*) from t"), 0);
}

#[test]
fn what_there_is_not_says_so() {
    let mut connection = connection();
    let mut query = statement(&mut connection, "select 1");
    let missing = [
        query.execute_partitions().err(),
        query.set_substrait_plan(b"").err(),
        query
            .set_option(OptionStatement::Incremental, "true".into())
            .err(),
        query
            .set_option(OptionStatement::Other("atoll.nothing".into()), "1".into())
            .err(),
        query.get_option_double(OptionStatement::Progress).err(),
        connection.read_partition(b"").err(),
        connection
            .set_option("adbc.connection.readonly".into(), "true".into())
            .err(),
        open([("username", "ann")]).err(),
    ];
    for error in missing {
        let error = error.unwrap();
        assert_eq!(error.status, Status::NotImplemented, "{error}");
        assert_eq!(code(&error), "0A000");
    }
    let empty = connection.new_statement().unwrap().execute().err().unwrap();
    assert_eq!(empty.status, Status::InvalidState);
}

#[test]
fn stores_are_opened_as_the_options_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a b.atoll").display().to_string();
    let uri = format!("file://{}", path.replace(' ', "%20"));
    assert!(open([("uri", uri.as_str()), ("atoll.create", "false")]).is_err());
    let database = opened([("uri", uri.as_str()), ("atoll.threads", "1")]);
    run(
        &mut database.new_connection().unwrap(),
        "create table t as select 42 as a",
    )
    .unwrap();
    let get = |key: &str| database.get_option_string(OptionDatabase::from(key));
    assert_eq!(get("path").unwrap(), path);
    assert_eq!(get("atoll.threads").unwrap(), "1");
    assert_eq!(database.get_option_int("atoll.threads".into()).unwrap(), 1);
    assert!(
        database
            .get_option_int("atoll.memory_limit".into())
            .unwrap()
            > 0
    );
    assert_eq!(get("atoll.nothing").unwrap_err().status, Status::NotFound);
    let busy = open([("path", path.as_str())]).unwrap_err();
    assert_eq!(code(&busy), "55006", "{busy}");
    drop(database);
    // What was written is in the file, and it was closed.
    let reading = opened([("path", path.as_str()), ("atoll.read_only", "true")]);
    let mut connection = reading.new_connection().unwrap();
    assert_eq!(number(&mut connection, "select a from t"), 42);
    assert_eq!(
        connection
            .get_option_string("adbc.connection.readonly".into())
            .unwrap(),
        "true"
    );
    let error = run(&mut connection, "insert into t values (1)").unwrap_err();
    assert_eq!(code(&error), "25006", "{error}");
    assert!(open([("atoll.read_only", "true")]).is_err());
}

#[test]
fn a_stream_outlives_its_connection_and_a_temporary_store_goes() {
    let database = database();
    let mut connection = database.new_connection().unwrap();
    run(
        &mut connection,
        "create table t as select x from generate_series(1, 300000) a(x)",
    )
    .unwrap();
    let files = || {
        let folder = std::env::temp_dir();
        let names = std::fs::read_dir(folder).unwrap().flatten();
        names
            .filter(|entry| entry.path().join("memory.atoll").exists())
            .count()
    };
    assert!(files() > 0);
    let mut query = statement(&mut connection, "select x from t");
    let reader = query.execute().unwrap();
    drop((query, connection, database));
    assert_eq!(collected(reader).unwrap().num_rows(), 300_000);
}
