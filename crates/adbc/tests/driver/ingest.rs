//! Bulk ingest: its modes, temporary tables, types.

use std::sync::Arc;

use adbc_core::error::Status;
use adbc_core::options::OptionStatement;
use adbc_core::{Connection as _, Optionable, Statement as _};
use arrow::array::*;
use arrow::datatypes::{Int8Type, Schema};

use super::{code, connection, database, manual, number, numbers, rows, run, shown};
use adbc_core::Database as _;

fn fish(names: &[&str]) -> RecordBatch {
    let names: ArrayRef = Arc::new(StringArray::from(names.to_vec()));
    let legs: ArrayRef = Arc::new(Int32Array::from(vec![0; names.len()]));
    RecordBatch::try_from_iter([("name", names), ("Legs \"n\"", legs)]).unwrap()
}

fn ingest(
    connection: &mut adbc::Connection,
    batch: RecordBatch,
    options: &[(OptionStatement, &str)],
) -> adbc_core::error::Result<Option<i64>> {
    let mut statement = connection.new_statement()?;
    for (key, value) in options {
        statement.set_option(key.clone(), (*value).into())?;
    }
    statement.bind(batch)?;
    statement.execute_update()
}

fn into_fish(
    connection: &mut adbc::Connection,
    names: &[&str],
    mode: &str,
) -> adbc_core::error::Result<Option<i64>> {
    let mode = format!("adbc.ingest.mode.{mode}");
    let options = [
        (OptionStatement::TargetTable, "Fish"),
        (OptionStatement::IngestMode, &mode),
    ];
    ingest(connection, fish(names), &options)
}

#[test]
fn modes_make_append_and_replace() {
    let mut connection = connection();
    let missing = into_fish(&mut connection, &["a"], "append").unwrap_err();
    assert_eq!(
        (missing.status, code(&missing).as_str()),
        (Status::NotFound, "42P01"),
        "{missing}"
    );
    assert_eq!(
        into_fish(&mut connection, &["a", "b"], "create").unwrap(),
        Some(2)
    );
    let there = into_fish(&mut connection, &["a"], "create").unwrap_err();
    assert_eq!(there.status, Status::AlreadyExists, "{there}");
    assert_eq!(
        into_fish(&mut connection, &["c"], "append").unwrap(),
        Some(1)
    );
    assert_eq!(
        into_fish(&mut connection, &["d"], "create_append").unwrap(),
        Some(1)
    );
    assert_eq!(
        number(
            &mut connection,
            "select count(*) from \"Fish\" where \"Legs \"\"n\"\"\" = 0"
        ),
        4
    );
    assert_eq!(
        into_fish(&mut connection, &["e"], "replace").unwrap(),
        Some(1)
    );
    assert_eq!(number(&mut connection, "select count(*) from \"Fish\""), 1);
    run(&mut connection, "drop table \"Fish\"").unwrap();
    assert_eq!(
        into_fish(&mut connection, &["f"], "create_append").unwrap(),
        Some(1)
    );
    assert_eq!(into_fish(&mut connection, &[], "append").unwrap(), Some(0));
    assert_eq!(number(&mut connection, "select count(*) from \"Fish\""), 1);
}

#[test]
fn columns_go_to_those_of_their_names() {
    let mut connection = connection();
    run(
        &mut connection,
        "create table t (id bigint generated always as identity, b varchar, a int default 7)",
    )
    .unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
    let batch = RecordBatch::try_from_iter([("b", texts)]).unwrap();
    let options = [
        (OptionStatement::TargetTable, "t"),
        (OptionStatement::IngestMode, "adbc.ingest.mode.append"),
    ];
    assert_eq!(ingest(&mut connection, batch, &options).unwrap(), Some(2));
    let found = shown(&rows(&mut connection, "select * from t order by id").unwrap());
    assert!(found.contains("| 2  | y | 7 |"), "{found}");
    let wrong = ingest(&mut connection, fish(&["a"]), &options).unwrap_err();
    assert_eq!(code(&wrong), "42703", "{wrong}");
}

#[test]
fn a_temporary_table_is_of_its_connection() {
    let database = database();
    let mut one = database.new_connection().unwrap();
    let mut two = database.new_connection().unwrap();
    let temporary = |mode: &'static str| {
        [
            (OptionStatement::TargetTable, "t"),
            (OptionStatement::IngestMode, mode),
            (OptionStatement::Temporary, "true"),
        ]
    };
    run(
        &mut one,
        "create table t (name varchar, \"Legs \"\"n\"\"\" int)",
    )
    .unwrap();
    let missing = ingest(
        &mut one,
        fish(&["a"]),
        &temporary("adbc.ingest.mode.append"),
    )
    .unwrap_err();
    assert_eq!(missing.status, Status::NotFound, "{missing}");
    for (mode, rows) in [
        ("create", 1),
        ("append", 2),
        ("create_append", 3),
        ("replace", 1),
    ] {
        let mode: &'static str = Box::leak(format!("adbc.ingest.mode.{mode}").into_boxed_str());
        assert_eq!(
            ingest(&mut one, fish(&["a"]), &temporary(mode)).unwrap(),
            Some(1)
        );
        assert_eq!(number(&mut one, "select count(*) from t"), rows, "{mode}");
        assert_eq!(number(&mut two, "select count(*) from t"), 0, "{mode}");
    }
    let mut placed = temporary("adbc.ingest.mode.create").to_vec();
    placed.push((OptionStatement::TargetDbSchema, "public"));
    assert_eq!(
        ingest(&mut two, fish(&["a"]), &placed).unwrap_err().status,
        Status::InvalidArguments
    );
    drop(one);
    assert_eq!(number(&mut two, "select count(*) from t"), 0);
}

#[test]
fn an_ingest_belongs_to_the_transaction() {
    let database = database();
    let (mut one, mut two) = (
        database.new_connection().unwrap(),
        database.new_connection().unwrap(),
    );
    manual(&mut one);
    assert_eq!(into_fish(&mut one, &["a"], "create").unwrap(), Some(1));
    assert_eq!(into_fish(&mut one, &["b"], "append").unwrap(), Some(1));
    assert!(rows(&mut two, "select * from \"Fish\"").is_err());
    one.rollback().unwrap();
    assert!(rows(&mut one, "select * from \"Fish\"").is_err());
    one.rollback().unwrap();
    into_fish(&mut one, &["a"], "create_append").unwrap();
    one.commit().unwrap();
    assert_eq!(number(&mut two, "select count(*) from \"Fish\""), 1);
}

#[test]
fn a_stream_of_this_database_may_go_into_it() {
    let database = database();
    let mut connection = database.new_connection().unwrap();
    run(
        &mut connection,
        "create table t as select x, 'text ' || x as s from generate_series(1, 500000) a(x)",
    )
    .unwrap();
    let mut query = super::statement(&mut connection, "select * from t");
    let reader = query.execute().unwrap();
    let mut copy = connection.new_statement().unwrap();
    copy.set_option(OptionStatement::TargetTable, "copy".into())
        .unwrap();
    copy.bind_stream(reader).unwrap();
    assert_eq!(copy.execute_update().unwrap(), Some(500_000));
    assert_eq!(
        number(
            &mut connection,
            "select count(*) from t join copy using (x) where t.s = copy.s"
        ),
        500_000
    );
}

#[test]
fn what_is_wrong_is_told_and_nothing_is_made() {
    let mut connection = connection();
    let target = (OptionStatement::TargetTable, "t");
    let mut unbound = connection.new_statement().unwrap();
    unbound
        .set_option(target.0.clone(), target.1.into())
        .unwrap();
    assert_eq!(
        unbound.execute_update().unwrap_err().status,
        Status::InvalidState
    );
    let none = RecordBatch::new_empty(Arc::new(Schema::empty()));
    assert!(ingest(&mut connection, none, std::slice::from_ref(&target)).is_err());
    for (key, value) in [
        (OptionStatement::TargetCatalog, "other"),
        (OptionStatement::TargetDbSchema, "other"),
        (OptionStatement::IngestMode, "other"),
        (OptionStatement::Temporary, "other"),
    ] {
        let options = [target.clone(), (key, value)];
        assert!(
            ingest(&mut connection, fish(&["a"]), &options).is_err(),
            "{options:?}"
        );
    }
    let struct_: ArrayRef = Arc::new(StructArray::from(fish(&["a"])));
    let nested = RecordBatch::try_from_iter([("s", struct_)]).unwrap();
    let refused = ingest(&mut connection, nested, std::slice::from_ref(&target));
    if refused.is_err() {
        assert!(rows(&mut connection, "select * from t").is_err());
    }
    assert!(
        numbers(
            &mut connection,
            "select count(*) from information_schema.tables where table_name = 'Fish'"
        )[0] == Some(0)
    );
}

#[test]
fn a_query_after_an_ingest_is_a_query() {
    let mut connection = connection();
    let mut statement = connection.new_statement().unwrap();
    statement
        .set_option(OptionStatement::TargetTable, "t".into())
        .unwrap();
    assert_eq!(
        statement
            .get_option_string(OptionStatement::TargetTable)
            .unwrap(),
        "t"
    );
    statement.bind(fish(&["a"])).unwrap();
    assert!(statement.execute_schema().is_err());
    statement.execute_update().unwrap();
    statement.set_sql_query("select count(*) from t").unwrap();
    assert_eq!(statement.execute().unwrap().count(), 1);
    assert!(
        statement
            .get_option_string(OptionStatement::TargetTable)
            .is_err()
    );
}

#[test]
fn types_of_other_libraries_become_columns() {
    let mut connection = connection();
    let dictionary: DictionaryArray<Int8Type> = ["x", "y", "x"].into_iter().collect();
    let columns: [(&str, ArrayRef); 7] = [
        (
            "a",
            Arc::new(LargeStringArray::from(vec![Some("p"), None, Some("q")])),
        ),
        (
            "b",
            Arc::new(StringViewArray::from(vec![Some("p"), None, Some("q")])),
        ),
        ("c", Arc::new(dictionary)),
        ("d", Arc::new(TimestampNanosecondArray::from(vec![1, 2, 3]))),
        (
            "e",
            Arc::new(TimestampSecondArray::from(vec![1, 2, 3]).with_timezone("UTC")),
        ),
        ("f", Arc::new(UInt32Array::from(vec![1, 2, u32::MAX]))),
        ("g", Arc::new(Float32Array::from(vec![0.5, f32::NAN, 1.0]))),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).unwrap();
    let options = [(OptionStatement::TargetTable, "t")];
    assert_eq!(ingest(&mut connection, batch, &options).unwrap(), Some(3));
    let found = shown(&rows(&mut connection, "select a, b, c, f from t order by f").unwrap());
    assert!(found.contains("| q | q | x | 4294967295 |"), "{found}");
}
