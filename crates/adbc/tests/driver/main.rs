//! The driver by the traits of ADBC, as a program in Rust uses it.

mod catalog;
mod entry;
mod ingest;
mod parameters;
mod random;
mod statements;
mod transactions;

use adbc_core::error::{Error, Result};
use adbc_core::options::{OptionConnection, OptionDatabase, OptionValue};
use adbc_core::{Connection as _, Database as _, Driver as _, Optionable, Statement as _};
use arrow::array::{AsArray, RecordBatch, RecordBatchReader};
use arrow::datatypes::Int64Type;

/// A temporary store.
fn database() -> adbc::Database {
    opened([("atoll.threads", "2"), ("atoll.memory_limit", "268435456")])
}

fn opened<const N: usize>(options: [(&str, &str); N]) -> adbc::Database {
    open(options).unwrap()
}

fn open<const N: usize>(options: [(&str, &str); N]) -> Result<adbc::Database> {
    let options = options.map(|(key, value)| (OptionDatabase::from(key), value.into()));
    adbc::Driver.new_database_with_opts(options)
}

fn connection() -> adbc::Connection {
    database().new_connection().unwrap()
}

fn statement(connection: &mut adbc::Connection, text: &str) -> adbc::Statement {
    let mut statement = connection.new_statement().unwrap();
    statement.set_sql_query(text).unwrap();
    statement
}

/// Runs a statement that returns no rows, and says how many it has written.
fn run(connection: &mut adbc::Connection, text: &str) -> Result<Option<i64>> {
    statement(connection, text).execute_update()
}

/// All rows of a query as one batch.
fn rows(connection: &mut adbc::Connection, text: &str) -> Result<RecordBatch> {
    collected(statement(connection, text).execute()?)
}

fn collected(reader: Box<dyn RecordBatchReader + Send>) -> Result<RecordBatch> {
    let schema = reader.schema();
    let batches = reader.collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(arrow::compute::concat_batches(&schema, &batches)?)
}

/// The numbers of a query's first column.
fn numbers(connection: &mut adbc::Connection, text: &str) -> Vec<Option<i64>> {
    let batch = rows(connection, text).unwrap();
    let column = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Int64);
    let column = column.unwrap();
    column.as_primitive::<Int64Type>().iter().collect()
}

/// The one number of a query.
fn number(connection: &mut adbc::Connection, text: &str) -> i64 {
    let found = numbers(connection, text);
    assert_eq!(found.len(), 1, "{text}");
    found[0].unwrap()
}

/// A batch as a table of text.
fn shown(batch: &RecordBatch) -> String {
    let batches = [batch.clone()];
    let shown = arrow::util::pretty::pretty_format_batches(&batches);
    shown.unwrap().to_string()
}

/// The SQLSTATE of an error.
fn code(error: &Error) -> String {
    error.sqlstate.iter().map(|c| *c as u8 as char).collect()
}

fn manual(connection: &mut adbc::Connection) {
    let off = OptionValue::from("false");
    connection
        .set_option(OptionConnection::AutoCommit, off)
        .unwrap();
}
