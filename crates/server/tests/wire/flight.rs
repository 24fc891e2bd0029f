//! Arrow Flight SQL.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, Date32Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::DataType;

use crate::client::Served;
use crate::flight_client::{
    Flight, Pb, changed, data, descriptor, field, query, schema_of, served, served_with, statement,
};

/// Waits until so many sessions are left, the one that asks among them.
pub fn settle(served: &Served, wanted: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    let mut watcher = served.client();
    while watcher.value("select count(*) from pg_stat_activity") != wanted {
        assert!(Instant::now() < until, "other sessions are left");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn fish(served: &Served) -> Flight {
    let mut flight = Flight::connect(served);
    let made = "create table fish (name varchar, legs int, weight decimal(8,2), seen date)";
    flight.update(made, None).ok();
    let insert =
        "insert into fish values ('blenny', 0, 0.25, date '2026-11-25'), ('crab', 10, null, null)";
    assert_eq!(changed(&flight.update(insert, None).ok()), 2);
    flight
}

#[test]
fn queries_are_planned_and_then_fetched() {
    let served = served();
    let mut flight = fish(&served);
    let (ticket, schema) = flight.info(&query("select * from fish order by name", None));
    let schema = schema_of(&schema);
    let types: Vec<&DataType> = schema.fields().iter().map(|f| f.data_type()).collect();
    let wanted = [
        DataType::Utf8,
        DataType::Int32,
        DataType::Decimal128(8, 2),
        DataType::Date32,
    ];
    assert_eq!(types, wanted.iter().collect::<Vec<_>>());
    let answer = flight.call("DoGet", &ticket).ok();
    assert_eq!(*answer.batches().0, schema);
    assert_eq!(answer.rows(), ["blenny|0|0.25|2026-11-25", "crab|10||"]);
    // Who asks for the columns alone runs nothing.
    let delete = descriptor(&query("delete from fish", None));
    flight.call("GetSchema", &delete).ok();
    assert_eq!(flight.rows("select count(*) from fish"), ["2"]);
    // What is planned is not run, if it has rows.
    flight.info(&query("delete from fish returning name", None));
    assert_eq!(flight.rows("select count(*) from fish"), ["2"]);
    // Nothing, and what has no columns.
    assert!(flight.rows("select * from fish where legs > 99").is_empty());
    let answer = flight.fetch(&query("create table reef (a int)", None)).ok();
    assert_eq!(answer.batches().0.fields().len(), 0);
    assert_eq!(flight.rows("select count(*) from reef"), ["0"]);
    let answer = flight.fetch(&query("insert into reef values (7) returning a", None));
    assert_eq!(answer.ok().rows(), ["7"]);
    settle(&served, "1");
}

#[test]
fn large_results_come_in_messages_that_clients_take() {
    let served = served();
    let mut flight = Flight::connect(&served);
    let text = "select x, repeat('reef', 500) as t, cast(x as double) / 3 as d from generate_series(1, 40000) a(x)";
    let answer = flight.fetch(&query(text, None)).ok();
    let (_, batches) = answer.batches();
    assert_eq!(
        batches.iter().map(RecordBatch::num_rows).sum::<usize>(),
        40_000
    );
    let bytes: usize = answer.messages.iter().map(Vec::len).sum();
    assert!((80_000_000..90_000_000).contains(&bytes), "{bytes}");
}

#[test]
fn errors_have_words_codes_and_places() {
    let served = served();
    let mut flight = fish(&served);
    for (text, grpc, sql, position) in [
        ("select nam from fish", 3, "42703", "8"),
        ("select * from nowhere", 5, "42P01", "15"),
        ("selec 1", 3, "42601", "1"),
        ("begin", 12, "0A000", ""),
        ("show timezone", 12, "0A000", ""),
        ("select 1; select 2", 3, "42601", ""),
        ("select $1::int", 3, "42P02", ""),
        ("", 3, "08P01", ""),
    ] {
        let answer = flight.call("GetFlightInfo", &descriptor(&query(text, None)));
        assert_eq!(answer.status(), grpc, "{text}: {answer:?}");
        assert_eq!(answer.header("sqlstate"), sql, "{text}: {answer:?}");
        assert_eq!(answer.header("sql-position"), position, "{text}");
        assert!(!answer.words().is_empty());
    }
    // Of the rows, not of the plan.
    let answer = flight.fetch(&query("select 1 / legs from fish", None));
    assert_eq!((answer.status(), answer.header("sqlstate")), (3, "22012"));
    let answer = flight.update("create table fish (a int)", None);
    assert_eq!((answer.status(), answer.header("sqlstate")), (6, "42P07"));
    let answer = flight.call("Nothing", &Pb::default());
    assert_eq!(answer.status(), 12);
    let answer = flight.act("Nothing", &Pb::default());
    assert!(answer.words().contains("there are CreatePreparedStatement"));
}

#[test]
fn transactions_are_of_several_calls() {
    let served = served();
    let mut flight = fish(&served);
    let id = flight.begin_transaction();
    flight.update("delete from fish", Some(&id)).ok();
    let count = "select count(*) from fish";
    let inside = flight.fetch(&query(count, Some(&id))).ok().rows();
    assert_eq!(
        (inside, flight.rows(count)),
        (vec!["0".into()], vec!["2".into()])
    );
    let mut watcher = served.client();
    let state = "select state from pg_stat_activity where state like 'idle in%'";
    assert_eq!(watcher.value(state), "idle in transaction");
    drop(watcher);
    flight.end_transaction(&id, 2).ok();
    assert_eq!(flight.rows(count), ["2"]);
    let answer = flight.update("delete from fish", Some(&id));
    assert_eq!(answer.status(), 5, "{answer:?}");

    let id = flight.begin_transaction();
    let point = Pb::default().bytes(1, &id).bytes(2, "a \"point\"");
    let answer = flight
        .act("BeginSavepoint", &point.any("ActionBeginSavepointRequest"))
        .ok();
    let point = field(&field(&field(&answer.messages[0], 1), 2), 1);
    flight.update("delete from fish", Some(&id)).ok();
    let back = Pb::default().bytes(1, &point).number(2, 2);
    flight
        .act("EndSavepoint", &back.any("ActionEndSavepointRequest"))
        .ok();
    flight
        .update("update fish set legs = 8 where legs = 10", Some(&id))
        .ok();
    flight.end_transaction(&id, 1).ok();
    assert_eq!(flight.rows("select legs from fish order by 1"), ["0", "8"]);

    // One that has failed keeps nothing.
    let id = flight.begin_transaction();
    flight.update("delete from fish", Some(&id)).ok();
    assert_eq!(flight.update("delete from nowhere", Some(&id)).status(), 5);
    let answer = flight.update("delete from fish", Some(&id));
    assert_eq!((answer.status(), answer.header("sqlstate")), (9, "25P02"));
    let answer = flight.end_transaction(&id, 1);
    assert_eq!((answer.status(), answer.header("sqlstate")), (9, "25P02"));
    assert_eq!(flight.rows(count), ["2"]);
    settle(&served, "1");
}

#[test]
fn a_transaction_that_waits_for_too_long_is_undone() {
    let served = served_with(|options, _| {
        options.idle_in_transaction_timeout = Some(Duration::from_millis(300));
    });
    let mut flight = fish(&served);
    let id = flight.begin_transaction();
    flight.update("delete from fish", Some(&id)).ok();
    settle(&served, "1");
    assert_eq!(flight.update("delete from fish", Some(&id)).status(), 5);
    assert_eq!(flight.rows("select count(*) from fish"), ["2"]);
}

pub fn prepare(flight: &mut Flight, text: &str) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let body = statement(text, None).any("ActionCreatePreparedStatementRequest");
    let answer = flight.act("CreatePreparedStatement", &body).ok();
    let told = field(&field(&answer.messages[0], 1), 2);
    (field(&told, 1), field(&told, 2), field(&told, 3))
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
        .unwrap()
}

#[test]
fn prepared_statements_take_rows_of_parameters() {
    let served = served();
    let mut flight = fish(&served);
    let text =
        "select name from fish where legs >= $1 and seen is not distinct from $2::date order by 1";
    let (handle, columns, parameters) = prepare(&mut flight, text);
    assert_eq!(schema_of(&columns).field(0).name(), "name");
    let types = schema_of(&parameters);
    let types: Vec<&DataType> = types.fields().iter().map(|f| f.data_type()).collect();
    assert_eq!(types, [&DataType::Int32, &DataType::Date32]);
    let command = Pb::default()
        .bytes(1, &handle)
        .any("CommandPreparedStatementQuery");
    assert_eq!(flight.fetch(&command).header("sqlstate"), "42P02");
    let rows = batch(vec![
        ("a", Arc::new(Int64Array::from(vec![0, 5, 0]))),
        (
            "b",
            Arc::new(Date32Array::from(vec![Some(20_782), None, None])),
        ),
    ]);
    flight.put(&command, &[rows]).ok();
    assert_eq!(
        flight.fetch(&command).ok().rows(),
        ["blenny", "crab", "crab"]
    );

    let (insert, _, _) = prepare(&mut flight, "insert into fish (name, legs) values ($1, $2)");
    let command = Pb::default()
        .bytes(1, &insert)
        .any("CommandPreparedStatementUpdate");
    let names: StringArray = (0..500).map(|at| Some(format!("f{at}"))).collect();
    let legs: Int32Array = (0..500).map(Some).collect();
    let rows = batch(vec![("a", Arc::new(names)), ("b", Arc::new(legs))]);
    assert_eq!(changed(&flight.put(&command, &[rows]).ok()), 500);
    // All of them, or none.
    let legs = StringArray::from(vec!["1", "2", "many"]);
    let names = StringArray::from(vec!["x", "y", "z"]);
    let rows = batch(vec![("a", Arc::new(names)), ("b", Arc::new(legs))]);
    let answer = flight.put(&command, &[rows]);
    assert_eq!((answer.status(), answer.header("sqlstate")), (3, "22P02"));
    assert_eq!(flight.rows("select count(*) from fish"), ["502"]);
    let rows = batch(vec![("a", Arc::new(Int64Array::from(vec![1])))]);
    assert_eq!(flight.put(&command, &[rows]).status(), 3);

    let close = Pb::default().bytes(1, &insert);
    flight
        .act(
            "ClosePreparedStatement",
            &close.any("ActionClosePreparedStatementRequest"),
        )
        .ok();
    assert_eq!(flight.put(&command, &[]).status(), 5);
}

fn ingest(table: &str, missing: u64, there: u64) -> Pb {
    let options = Pb::default().number(1, missing).number(2, there);
    let command = Pb::default().bytes(1, &options.0).bytes(2, table);
    command.any("CommandStatementIngest")
}

/// Rows with the numbers from one to another, of which half have a name.
fn numbered(from: i64, to: i64) -> RecordBatch {
    let numbers: Int64Array = (from..to).map(Some).collect();
    let names: StringArray = (from..to)
        .map(|at| (at % 2 == 0).then(|| format!("n{at}")))
        .collect();
    batch(vec![("n", Arc::new(numbers)), ("name", Arc::new(names))])
}

#[test]
fn rows_of_a_client_become_those_of_a_table() {
    let served = served();
    let mut flight = fish(&served);
    let batches = [
        numbered(0, 1000),
        numbered(1000, 1001),
        numbered(1001, 30_000),
    ];
    assert_eq!(
        flight
            .put(&ingest("made", 2, 2), &batches)
            .header("sqlstate"),
        "42P01"
    );
    assert_eq!(
        changed(&flight.put(&ingest("made", 1, 1), &batches).ok()),
        30_000
    );
    let sums = "select count(*), sum(n), count(name) from made";
    assert_eq!(flight.rows(sums), ["30000|449985000|15000"]);
    assert_eq!(
        flight
            .put(&ingest("made", 1, 1), &batches)
            .header("sqlstate"),
        "42P07"
    );
    assert_eq!(
        changed(&flight.put(&ingest("made", 1, 2), &batches[..1]).ok()),
        1000
    );
    assert_eq!(flight.rows("select count(*) from made"), ["31000"]);
    assert_eq!(
        changed(&flight.put(&ingest("made", 1, 3), &batches[..1]).ok()),
        1000
    );
    assert_eq!(flight.rows("select count(*) from made"), ["1000"]);
}

#[test]
fn rows_that_do_not_fit_are_not_there() {
    let served = served();
    let mut flight = Flight::connect(&served);
    let batches = [
        numbered(0, 1000),
        numbered(1000, 1001),
        numbered(1001, 30_000),
    ];
    flight.put(&ingest("made", 1, 1), &batches[..1]).ok();
    let bad = batch(vec![("m", Arc::new(Int64Array::from(vec![1])))]);
    assert_eq!(
        flight.put(&ingest("made", 1, 2), &[bad]).header("sqlstate"),
        "42703"
    );
    flight
        .update(
            "create table strict (n int primary key, name varchar)",
            None,
        )
        .ok();
    let answer = flight.put(&ingest("strict", 1, 2), &[numbered(0, 10), numbered(5, 6)]);
    assert_eq!((answer.status(), answer.header("sqlstate")), (6, "23505"));
    assert_eq!(flight.rows("select count(*) from strict"), ["0"]);
    // Within a transaction.
    let id = flight.begin_transaction();
    let options = Pb::default().number(1, 1).number(2, 2);
    let command = Pb::default()
        .bytes(1, &options.0)
        .bytes(2, "made")
        .bytes(6, &id);
    flight
        .put(&command.any("CommandStatementIngest"), &batches[..1])
        .ok();
    flight.end_transaction(&id, 2).ok();
    assert_eq!(flight.rows("select count(*) from made"), ["1000"]);
    // A client that goes in the middle.
    let mut other = Flight::connect(&served);
    let stream = other.begin("DoPut", &[]);
    let mut messages = data(&batches);
    messages[0] = messages[0]
        .clone()
        .bytes(1, descriptor(&ingest("made", 1, 2)).0);
    for message in &messages[..3] {
        other.message(stream, &message.0);
    }
    drop(other);
    settle(&served, "1");
    assert_eq!(flight.rows("select count(*) from made"), ["1000"]);
}

/// Tables that refer to each other, and a view.
fn reef(served: &Served) -> Flight {
    let mut flight = fish(served);
    let parent = "create table reef (id int primary key, name varchar)";
    flight.update(parent, None).ok();
    let child = "create table spot (reef int references reef (id) on delete cascade, depth int)";
    flight.update(child, None).ok();
    flight
        .update("create view deep as select * from spot", None)
        .ok();
    flight
}

#[test]
fn the_catalog_says_what_there_is() {
    let served = served();
    let mut flight = reef(&served);
    let none = Pb::default();
    assert_eq!(
        flight.fetch(&none.any("CommandGetCatalogs")).ok().rows(),
        ["atoll"]
    );
    let schemas = flight.fetch(&none.any("CommandGetDbSchemas")).ok().rows();
    assert!(schemas.contains(&"atoll|public".to_string()), "{schemas:?}");
    let kinds = flight.fetch(&none.any("CommandGetTableTypes")).ok().rows();
    assert!(
        kinds.contains(&"TABLE".to_string()) && kinds.contains(&"VIEW".to_string()),
        "{kinds:?}"
    );
    let asked = Pb::default()
        .bytes(2, "pub%")
        .bytes(4, "TABLE")
        .number(5, 1);
    let answer = flight.fetch(&asked.any("CommandGetTables")).ok();
    let (_, batches) = answer.batches();
    let rows: Vec<String> = answer
        .rows()
        .iter()
        .map(|row| row.rsplit_once('|').unwrap().0.to_string())
        .collect();
    assert_eq!(
        rows,
        [
            "atoll|public|fish|TABLE",
            "atoll|public|reef|TABLE",
            "atoll|public|spot|TABLE"
        ]
    );
    let schemas = batches[0].column(4);
    let schemas = schemas
        .as_any()
        .downcast_ref::<arrow::array::BinaryArray>()
        .unwrap();
    assert_eq!(
        schema_of(schemas.value(0)).field(2).data_type(),
        &DataType::Decimal128(8, 2)
    );
    let asked = Pb::default().bytes(3, "de_p");
    let rows = flight.fetch(&asked.any("CommandGetTables")).ok().rows();
    assert_eq!(rows, ["atoll|public|deep|VIEW"]);
}

#[test]
fn the_catalog_says_what_refers_to_what() {
    let served = served();
    let mut flight = reef(&served);
    let none = Pb::default();
    let asked = Pb::default().bytes(3, "reef");
    let rows = flight
        .fetch(&asked.any("CommandGetPrimaryKeys"))
        .ok()
        .rows();
    assert_eq!(rows, ["atoll|public|reef|id||1"]);
    let wanted = ["atoll|public|reef|id|atoll|public|spot|reef|1|spot_reef_fkey||3|0"];
    let rows = flight
        .fetch(&asked.any("CommandGetExportedKeys"))
        .ok()
        .rows();
    assert_eq!(rows, wanted);
    let asked = Pb::default().bytes(3, "spot");
    let rows = flight
        .fetch(&asked.any("CommandGetImportedKeys"))
        .ok()
        .rows();
    assert_eq!(rows, wanted);
    let asked = Pb::default().bytes(3, "reef").bytes(6, "spot");
    let rows = flight
        .fetch(&asked.any("CommandGetCrossReference"))
        .ok()
        .rows();
    assert_eq!(rows, wanted);
    let types = flight
        .fetch(&none.any("CommandGetXdbcTypeInfo"))
        .ok()
        .rows();
    assert!(types.len() > 10);
    let asked = Pb::default().number(1, 0).number(1, 8);
    let rows = flight.fetch(&asked.any("CommandGetSqlInfo")).ok().rows();
    assert_eq!(rows.len(), 2, "{rows:?}");
    let schema = flight
        .call("GetSchema", &descriptor(&none.any("CommandGetCatalogs")))
        .ok();
    assert_eq!(
        schema_of(&field(&schema.messages[0], 1)).field(0).name(),
        "catalog_name"
    );
    assert!(
        flight
            .call("ListActions", &Pb::default())
            .ok()
            .messages
            .len()
            > 5
    );
}
