//! Parameters: `$1`, `?`, one row of them and many.

use std::sync::Arc;

use adbc_core::error::Status;
use adbc_core::{Connection as _, Statement as _};
use arrow::array::*;
use arrow::datatypes::{DataType, Field, Schema};

use super::{code, collected, connection, manual, number, numbers, rows, run, shown, statement};

fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
    let fields = columns.iter().enumerate();
    let fields = fields.map(|(at, c)| Field::new(at.to_string(), c.data_type().clone(), true));
    RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns).unwrap()
}

fn ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

#[test]
fn both_ways_to_write_parameters() {
    let mut connection = connection();
    for text in ["select $1 + $2 as n", "select ? + ? as n"] {
        let mut query = statement(&mut connection, text);
        query.prepare().unwrap();
        query.bind(batch(vec![ints(&[40]), ints(&[2])])).unwrap();
        let found = collected(query.execute().unwrap()).unwrap();
        assert_eq!(
            found
                .column(0)
                .as_primitive::<arrow::datatypes::Int64Type>()
                .values(),
            &[42]
        );
    }
    assert!(
        connection
            .new_statement()
            .unwrap()
            .set_sql_query("select $1, ?")
            .is_err()
    );
    let mut query = statement(&mut connection, "select ?, nothing");
    query.bind(batch(vec![ints(&[1])])).unwrap();
    let error = query.execute().err().unwrap();
    assert!(error.message.contains("column 11"), "{error}");
}

#[test]
fn a_query_runs_with_each_row() {
    let mut connection = connection();
    let series = "create table t as select x from generate_series(1, 9) a(x)";
    run(&mut connection, series).unwrap();
    let mut query = statement(&mut connection, "select x from t where x <= ? order by x");
    query.bind(batch(vec![ints(&[2, 0, 3])])).unwrap();
    let found = collected(query.execute().unwrap()).unwrap();
    let found = arrow::compute::cast(found.column(0), &DataType::Int64).unwrap();
    assert_eq!(
        found.as_primitive::<arrow::datatypes::Int64Type>().values(),
        &[1, 2, 1, 2, 3]
    );
    // No row: no rows, but columns.
    query.bind(batch(vec![ints(&[])])).unwrap();
    let reader = query.execute().unwrap();
    assert_eq!(reader.schema().fields().len(), 1);
    assert_eq!(reader.count(), 0);
}

#[test]
fn parameters_have_the_types_that_the_statement_gives_them() {
    let mut connection = connection();
    run(&mut connection, "create table t (a int, b varchar, c date)").unwrap();
    let mut query = statement(
        &mut connection,
        "select * from t where a = $1 and b = $2 and c > $3 limit $4",
    );
    query.prepare().unwrap();
    let schema = query.get_parameter_schema().unwrap();
    let types: Vec<_> = schema
        .fields()
        .iter()
        .map(|f| f.data_type().clone())
        .collect();
    assert_eq!(
        types,
        [
            DataType::Int32,
            DataType::Utf8,
            DataType::Date32,
            DataType::Int64
        ]
    );
    assert_eq!(schema.field(1).name(), "$2");
    let unbound = query.execute().err().unwrap();
    assert_eq!(unbound.status, Status::InvalidState, "{unbound}");
    query.bind(batch(vec![ints(&[1])])).unwrap();
    let few = query.execute().err().unwrap();
    assert_eq!(few.status, Status::InvalidArguments, "{few}");
    let mut none = statement(&mut connection, "select 1");
    none.bind(batch(vec![ints(&[1])])).unwrap();
    assert!(none.execute().is_err());
}

/// Values of every type go in and come back, one by one and as rows of an insert.
#[test]
fn values_come_back_as_they_went() {
    let mut connection = connection();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(BooleanArray::from(vec![Some(true), None])),
        Arc::new(Int16Array::from(vec![Some(-7), None])),
        Arc::new(Int64Array::from(vec![Some(i64::MIN), None])),
        Arc::new(Float64Array::from(vec![Some(1e-300), None])),
        Arc::new(StringArray::from(vec![Some("it's $1 ? \\ é"), None])),
        Arc::new(BinaryArray::from(vec![Some(&b"\x00\xff'"[..]), None])),
        Arc::new(Date32Array::from(vec![Some(-1), None])),
        Arc::new(TimestampMicrosecondArray::from(vec![Some(1_234_567), None])),
        Arc::new(
            Decimal128Array::from(vec![Some(-1250), None])
                .with_precision_and_scale(10, 2)
                .unwrap(),
        ),
        Arc::new(Time64MicrosecondArray::from(vec![
            Some(3_723_000_001),
            None,
        ])),
    ];
    let given = batch(columns);
    run(&mut connection, "create table t (a boolean, b smallint, c bigint, d double, e varchar, f bytea, g date, h timestamp, i decimal(10,2), j time)").unwrap();
    let marks = ["?"; 10].join(", ");
    let plain = format!("insert into t values ({marks})");
    // Not a plain insert: each row is a statement.
    let other = format!(
        "insert into t select {}",
        (1..=10)
            .map(|n| format!("${n}"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    for text in [plain, other] {
        let mut insert = statement(&mut connection, &text);
        insert.bind(given.clone()).unwrap();
        assert_eq!(insert.execute_update().unwrap(), Some(2), "{text}");
        let found = rows(&mut connection, "select * from t order by a").unwrap();
        assert_eq!(found.num_rows(), 2);
        for (at, wanted) in given.columns().iter().enumerate() {
            let found = arrow::compute::cast(found.column(at), wanted.data_type()).unwrap();
            assert_eq!(&found, wanted, "{text}: column {at}");
        }
        run(&mut connection, "delete from t").unwrap();
    }
    let mut query = statement(
        &mut connection,
        "select ? = timestamp '1970-01-01 00:00:01.234567', ? = decimal '-12.50'",
    );
    let some = |at: usize| given.column(at).slice(0, 1);
    query.bind(batch(vec![some(7), some(8)])).unwrap();
    let found = shown(&collected(query.execute().unwrap()).unwrap());
    assert_eq!(found.matches("true").count(), 2, "{found}");
}

#[test]
fn what_a_parameter_is_may_not_be_known() {
    let mut connection = connection();
    manual(&mut connection);
    run(&mut connection, "create table t (a int)").unwrap();
    let query = statement(&mut connection, "select $1 + $2 from t");
    let schema = query.get_parameter_schema().unwrap();
    assert_eq!(schema.fields().len(), 2);
    assert_eq!(*schema.field(0).data_type(), DataType::Null);
    let none = statement(&mut connection, "select a from t");
    assert!(none.get_parameter_schema().unwrap().fields().is_empty());
    let missing = statement(&mut connection, "select $1 from nothing");
    assert_eq!(
        missing.get_parameter_schema().unwrap_err().status,
        Status::NotFound
    );
    // None of this has ended the transaction.
    assert_eq!(number(&mut connection, "select count(*) from t"), 0);
}

#[test]
fn many_rows_are_one_transaction() {
    let mut connection = connection();
    run(
        &mut connection,
        "create table t (a bigint primary key, b varchar default 'none')",
    )
    .unwrap();
    for text in [
        "insert into t (a) values ($1)",
        "insert into t (a) values ($1 + 0)",
    ] {
        let mut insert = statement(&mut connection, text);
        insert.bind(batch(vec![ints(&[1, 2, 1])])).unwrap();
        let error = insert.execute_update().unwrap_err();
        assert_eq!(code(&error), "23505", "{text}: {error}");
        assert_eq!(
            number(&mut connection, "select count(*) from t"),
            0,
            "{text}"
        );
        let mut insert = statement(&mut connection, text);
        insert.bind(batch(vec![ints(&[1, 2, 3])])).unwrap();
        assert_eq!(insert.execute_update().unwrap(), Some(3));
        assert_eq!(
            number(&mut connection, "select count(*) from t where b = 'none'"),
            3
        );
        let mut delete = statement(&mut connection, "delete from t where a = ?");
        delete.bind(batch(vec![ints(&[3, 4, 1, 2])])).unwrap();
        assert_eq!(delete.execute_update().unwrap(), Some(3));
    }
}

#[test]
fn a_stream_of_parameters_is_not_collected() {
    let mut connection = connection();
    run(&mut connection, "create table t (a bigint, b bigint)").unwrap();
    let schema = batch(vec![ints(&[]), ints(&[])]).schema();
    let batches = (0..200).map(|n| Ok(batch(vec![ints(&[n; 1000]), ints(&[1; 1000])])));
    let mut insert = statement(&mut connection, "insert into t (b, a) values (?, ?)");
    insert
        .bind_stream(Box::new(RecordBatchIterator::new(batches, schema)))
        .unwrap();
    assert_eq!(insert.execute_update().unwrap(), Some(200_000));
    assert_eq!(number(&mut connection, "select sum(a) from t"), 200_000);
    assert_eq!(
        number(&mut connection, "select count(distinct b) from t"),
        200
    );
}

#[test]
fn a_stream_that_fails_keeps_nothing() {
    let mut connection = connection();
    run(&mut connection, "create table t (a bigint)").unwrap();
    for text in ["insert into t values ($1)", "insert into t values ($1 + 0)"] {
        let schema = batch(vec![ints(&[])]).schema();
        let broken = arrow::error::ArrowError::ComputeError("the well is dry".into());
        let batches = vec![Ok(batch(vec![ints(&[1, 2])])), Err(broken)];
        let mut insert = statement(&mut connection, text);
        insert
            .bind_stream(Box::new(RecordBatchIterator::new(batches, schema)))
            .unwrap();
        let error = insert.execute_update().unwrap_err();
        assert!(error.message.contains("the well is dry"), "{text}: {error}");
        assert!(numbers(&mut connection, "select a from t").is_empty());
    }
}

#[test]
fn a_stream_that_panics_is_an_error() {
    let mut connection = connection();
    run(&mut connection, "create table t (a bigint)").unwrap();
    for text in [
        "insert into t values ($1)",
        "insert into t values ($1 + 0)",
        "select $1",
    ] {
        let schema = batch(vec![ints(&[])]).schema();
        let batches = std::iter::from_fn(
            || -> Option<Result<RecordBatch, arrow::error::ArrowError>> {
                panic!("the well is poisoned")
            },
        );
        let mut insert = statement(&mut connection, text);
        insert
            .bind_stream(Box::new(RecordBatchIterator::new(batches, schema)))
            .unwrap();
        assert!(insert.execute().is_err(), "{text}");
        assert!(numbers(&mut connection, "select a from t").is_empty());
    }
}

/// Whatever call reads the stream of a program that panics, it is that call's error, and the next call works.
#[test]
fn a_panic_is_the_error_of_every_call_that_reads() {
    use adbc_core::Optionable as _;
    use adbc_core::options::OptionStatement;
    let mut connection = connection();
    run(&mut connection, "create table t (\"0\" bigint)").unwrap();
    type Call = fn(&mut adbc::Statement) -> bool;
    let calls: [(&str, Call); 3] = [
        ("execute", |of| of.execute().is_err()),
        ("execute_update", |of| of.execute_update().is_err()),
        ("rows", |of| match of.execute() {
            Ok(mut rows) => rows.any(|batch| batch.is_err()),
            Err(_) => true,
        }),
    ];
    for ingests in [false, true] {
        for (name, call) in calls {
            let mut batches = vec![batch(vec![ints(&[1, 2])])];
            let schema = batches[0].schema();
            // The first batch comes, and then the program is at its end.
            let stream = std::iter::from_fn(
                move || -> Option<Result<RecordBatch, arrow::error::ArrowError>> {
                    Some(Ok(batches.pop().expect("the well is poisoned")))
                },
            );
            let mut insert = if ingests {
                let mut insert = connection.new_statement().unwrap();
                for (option, value) in [
                    (OptionStatement::TargetTable, "t"),
                    (OptionStatement::IngestMode, "adbc.ingest.mode.append"),
                ] {
                    insert.set_option(option, value.into()).unwrap();
                }
                insert
            } else {
                statement(&mut connection, "insert into t values ($1)")
            };
            insert
                .bind_stream(Box::new(RecordBatchIterator::new(stream, schema)))
                .unwrap();
            assert!(call(&mut insert), "{name}, ingests: {ingests}");
            assert!(
                numbers(&mut connection, "select * from t").is_empty(),
                "{name}, ingests: {ingests}"
            );
        }
    }
}
