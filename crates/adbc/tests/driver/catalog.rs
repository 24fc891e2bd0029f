//! What there is: objects, schemas of tables, statistics.

use adbc_core::error::Status;
use adbc_core::options::ObjectDepth;
use adbc_core::{Connection as _, schemas};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::DataType;

use super::{collected, connection, manual, run, shown};

/// Catalog, schema and list of tables.
fn objects(
    connection: &adbc::Connection,
    depth: ObjectDepth,
    table: Option<&str>,
    types: Option<Vec<&str>>,
    column: Option<&str>,
) -> RecordBatch {
    let found = connection
        .get_objects(depth, None, None, table, types, column)
        .unwrap();
    assert_eq!(found.schema(), *schemas::GET_OBJECTS_SCHEMA);
    collected(found).unwrap()
}

fn with_tables() -> adbc::Connection {
    let mut connection = connection();
    let script = "create table reef (id int primary key, name varchar not null, unique (name));
        create table fish (id bigint generated always as identity, reef_id int references reef (id), weight decimal(8,2) default 1.5, grams double generated always as (weight * 1000) stored);
        create view large as select id, weight from fish where weight > 2;
        create materialized view heavy as select count(*) as n from fish;
        comment on column reef.name is 'as on the map'";
    run(&mut connection, script).unwrap();
    connection
}

#[test]
fn objects_come_at_every_depth() {
    let connection = with_tables();
    let catalogs = objects(&connection, ObjectDepth::Catalogs, None, None, None);
    assert_eq!(catalogs.column(0).as_string::<i32>().value(0), "atoll");
    assert!(catalogs.column(1).is_null(0));
    let schemas = objects(&connection, ObjectDepth::Schemas, None, None, None);
    let schemas = schemas.column(1).as_list::<i32>().value(0);
    let schemas = schemas.as_struct();
    assert_eq!(schemas.column(0).as_string::<i32>().value(0), "public");
    assert!(schemas.column(1).is_null(0));
    let tables = objects(&connection, ObjectDepth::Tables, None, None, None);
    let text = shown(&tables);
    assert!(
        text.contains("table_name: reef, table_type: TABLE, table_columns: , table_constraints: "),
        "{text}"
    );
    for (name, kind) in [
        ("fish", "TABLE"),
        ("large", "VIEW"),
        ("heavy", "MATERIALIZED VIEW"),
    ] {
        assert!(
            text.contains(&format!("table_name: {name}, table_type: {kind}")),
            "{text}"
        );
    }
    for depth in [ObjectDepth::All, ObjectDepth::Columns] {
        let text = shown(&objects(&connection, depth, None, None, None));
        for part in [
            "column_name: name, ordinal_position: 2, remarks: as on the map, ",
            "xdbc_type_name: text",
            "xdbc_column_size: 8, xdbc_decimal_digits: 2, xdbc_num_prec_radix: 10, xdbc_nullable: 1, xdbc_column_def: 1.5",
            "xdbc_is_autoincrement: true",
            "xdbc_is_generatedcolumn: true",
            "constraint_type: PRIMARY KEY, constraint_column_names: [id]",
            "constraint_type: FOREIGN KEY, constraint_column_names: [reef_id], constraint_column_usage: [{fk_catalog: atoll, fk_db_schema: public, fk_table: reef, fk_column_name: id}]",
            "table_name: heavy, table_type: MATERIALIZED VIEW, table_columns: [{column_name: n, ordinal_position: 1",
            "table_name: large, table_type: VIEW, table_columns: [{column_name: id",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}

#[test]
fn patterns_and_types_choose() {
    let connection = with_tables();
    let tables = |table, types, column| {
        let found = objects(&connection, ObjectDepth::All, table, types, column);
        let schemas = found.column(1).as_list::<i32>().value(0);
        let tables = schemas.as_struct().column(1).as_list::<i32>().value(0);
        let names = tables.as_struct().column(0).as_string::<i32>();
        let names: Vec<String> = names.iter().flatten().map(str::to_owned).collect();
        (names, shown(&found))
    };
    assert_eq!(
        tables(Some("%e%"), None, None).0,
        ["heavy", "large", "reef"]
    );
    assert_eq!(tables(Some("_ish"), None, None).0, ["fish"]);
    assert_eq!(
        tables(None, Some(vec!["VIEW", "TABLE"]), None).0,
        ["fish", "large", "reef"]
    );
    assert!(
        tables(None, Some(vec!["LOCAL TEMPORARY"]), None)
            .0
            .is_empty()
    );
    let (names, text) = tables(Some("fish"), None, Some("w%"));
    assert_eq!(names, ["fish"]);
    assert!(
        text.contains("column_name: weight") && !text.contains("column_name: grams"),
        "{text}"
    );
    for (catalog, schema, rows) in [
        (Some("other"), None, 0),
        (Some(""), None, 0),
        (Some("ato%"), Some("other"), 1),
    ] {
        let found = connection
            .get_objects(ObjectDepth::All, catalog, schema, None, None, None)
            .unwrap();
        let found = collected(found).unwrap();
        assert_eq!(found.num_rows(), rows);
        assert!(!shown(&found).contains("reef"));
    }
}

#[test]
fn a_transaction_sees_what_it_has_made() {
    let mut connection = with_tables();
    manual(&mut connection);
    run(&mut connection, "create table shell (a int)").unwrap();
    let seen = |connection: &adbc::Connection| {
        shown(&objects(
            connection,
            ObjectDepth::Tables,
            Some("shell"),
            None,
            None,
        ))
    };
    assert!(seen(&connection).contains("shell"));
    connection.rollback().unwrap();
    assert!(!seen(&connection).contains("shell"));
}

#[test]
fn tables_have_schemas() {
    let mut connection = with_tables();
    let schema = connection.get_table_schema(None, None, "reef").unwrap();
    assert_eq!(schema.field(0).data_type(), &DataType::Int32);
    assert_eq!(schema.field(1).data_type(), &DataType::Utf8);
    assert!(!schema.field(1).is_nullable());
    let placed = connection
        .get_table_schema(Some("atoll"), Some("public"), "large")
        .unwrap();
    assert_eq!(placed.fields().len(), 2);
    run(&mut connection, "create temporary table own (a date)").unwrap();
    let own = connection.get_table_schema(None, None, "own").unwrap();
    assert_eq!(own.field(0).data_type(), &DataType::Date32);
    let missing = connection
        .get_table_schema(None, None, "no \"table")
        .unwrap_err();
    assert_eq!(missing.status, Status::NotFound, "{missing}");
    assert!(
        connection
            .get_table_schema(Some("other"), None, "reef")
            .is_err()
    );
}

#[test]
fn statistics_are_rows_of_tables() {
    let mut connection = with_tables();
    run(
        &mut connection,
        "insert into reef values (1, 'north'), (2, 'south')",
    )
    .unwrap();
    let told = |connection: &adbc::Connection, table| {
        let found = connection.get_statistics(None, None, table, false).unwrap();
        assert_eq!(found.schema(), *schemas::GET_STATISTICS_SCHEMA);
        shown(&collected(found).unwrap())
    };
    let all = told(&connection, None);
    assert!(all.contains("table_name: reef, column_name: , statistic_key: 6, statistic_value: {int64=2}, statistic_is_approximate: false"), "{all}");
    assert!(all.contains("fish"), "{all}");
    assert!(!told(&connection, Some("r%")).contains("fish"));
    manual(&mut connection);
    run(&mut connection, "delete from reef where id = 1").unwrap();
    assert!(told(&connection, Some("reef")).contains("int64=1"));
    let names = collected(connection.get_statistic_names().unwrap()).unwrap();
    assert_eq!(names.num_rows(), 0);
    let types = collected(connection.get_table_types().unwrap()).unwrap();
    assert_eq!(types.num_rows(), 3);
    assert!(
        collected(connection.get_info(None).unwrap())
            .unwrap()
            .num_rows()
            >= 9
    );
}
