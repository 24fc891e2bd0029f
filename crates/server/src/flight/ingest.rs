//! Rows of a client for a table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use atoll::Frames;
use parking_lot::Mutex;

use crate::flight::call::{self, Call, Incoming};
use crate::flight::caller::{Caller, Entered};
use crate::flight::data::Batches;
use crate::flight::messages::{FlightData, Ingest};
use crate::flight::running::{changed, together, told_of};
use crate::flight::shelf::Shelf;
use crate::flight::status::{Ended, Status};
use crate::sessions::Client;
use crate::wire::backend::Report;

/// How long a client may say nothing in the middle of what it sends.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// The name by which statements read the rows. No table has it, for no client can say it.
const ROWS: &str = "rows of the client\u{2}";

/// Puts the rows that follow into a table, and says how many there were.
///
/// # Errors
/// If the table is there and must not be, or the other way around; if the rows do not fit it. Nothing is changed then.
pub(crate) fn ingest(
    shelf: &Shelf,
    call: &mut Call,
    caller: &Caller,
    asked: &Ingest,
    first: &FlightData,
) -> Result<u64, Ended> {
    if let Some(name) = asked.options.keys().next() {
        let message = format!("there is no option {name:?} for rows of a client");
        return Err(Status::unsupported(message).into());
    }
    let mut incoming = call.take_incoming();
    let mut batches = Batches::default();
    let mut ready = batches.take(first)?;
    let until = Instant::now() + PATIENCE;
    while batches.schema.is_none() {
        let data = incoming.message(&mut || call::in_time(until))?;
        let data = data.ok_or_else(|| Status::invalid("the rows have no schema"))?;
        ready = batches.take(&data)?;
    }
    let schema = batches.schema.clone();
    let schema = schema.ok_or_else(|| Status::invalid("the rows have no schema"))?;
    let transaction = asked.transaction.as_ref();
    let entered = caller.enter(&shelf.shared, &shelf.transactions, transaction)?;
    let wrong = Arc::new(Mutex::new(None));
    let done = Arc::new(AtomicBool::new(false));
    let reader = Reader {
        schema: Arc::clone(&schema),
        incoming,
        batches,
        ready,
        client: Arc::clone(&entered.client),
        patience: entered.patience().min(PATIENCE),
        wrong: Arc::clone(&wrong),
        done: Arc::clone(&done),
    };
    let put = put(&entered, asked, &schema, Box::new(reader));
    // Who reads stops where nobody takes the rows.
    done.store(true, Ordering::Release);
    let put = put.map_err(|ended| wrong.lock().take().unwrap_or(ended));
    told_of(&entered, put)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// The table as statements name it.
fn named(asked: &Ingest) -> String {
    let schema = asked.schema.as_deref().filter(|schema| !schema.is_empty());
    match schema {
        Some(schema) => format!("{}.{}", quoted(schema), quoted(&asked.table)),
        None => quoted(&asked.table),
    }
}

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Create,
    Append,
    Replace,
}

/// What is to be done with a table that is there, or is not.
fn way(asked: &Ingest, there: bool) -> Result<Way, Ended> {
    let definition = asked.definition.clone().unwrap_or_default();
    match (there, definition.if_not_exist, definition.if_exists) {
        (true, _, 2) => Ok(Way::Append),
        (true, _, 3) => Ok(Way::Replace),
        (true, _, _) => {
            let message = format!("relation \"{}\" already exists", asked.table);
            Err(Report::error("42P07", message).into())
        }
        (false, 1, _) => Ok(Way::Create),
        (false, ..) => {
            let message = format!("relation \"{}\" does not exist", asked.table);
            Err(Report::error("42P01", message).into())
        }
    }
}

fn put(
    entered: &Entered,
    asked: &Ingest,
    schema: &SchemaRef,
    reader: Box<Reader>,
) -> Result<u64, Ended> {
    let table = named(asked);
    let label = format!("insert into {table} /* rows of the client */");
    entered.begin(&label);
    let mut frames = Frames::default();
    let framed = frames.add_reader(ROWS, reader);
    framed.map_err(|e| entered.failed(&e.into(), &label))?;
    let rows = quoted(ROWS);
    // What is there may not change before it is written.
    together(entered, true, || {
        let way = way(asked, is_there(entered, asked)?)?;
        if way == Way::Replace {
            entered.run_quietly(&format!("drop table {table}"))?;
        }
        let columns: Vec<String> = schema.fields().iter().map(|f| quoted(f.name())).collect();
        let columns = columns.join(", ");
        let kind = if asked.temporary { "temporary " } else { "" };
        let statement = match way {
            Way::Append => {
                format!("insert into {table} ({columns}) select {columns} from {rows}")
            }
            _ => format!("create {kind}table {table} as select {columns} from {rows}"),
        };
        let run = |session: &atoll::Session| session.with_frames(frames).query(&statement);
        let rows = entered.timed(&statement, run)?;
        changed(entered, rows, &statement)
    })
}

/// Whether the table is there.
fn is_there(entered: &Entered, asked: &Ingest) -> Result<bool, Ended> {
    let schema = asked.schema.as_deref().filter(|schema| !schema.is_empty());
    let schema = schema.map_or_else(String::new, |schema| {
        format!(" and table_schema = {}", text(schema))
    });
    let question = format!(
        "select 1 from information_schema.tables where table_name = {}{schema}",
        text(&asked.table)
    );
    let answers = entered.timed(&question, |session| session.sql(&question))?;
    Ok(answers.iter().any(|answer| answer.rows() > 0))
}

/// Reads what a client sends, on a thread of whoever takes the rows.
struct Reader {
    schema: SchemaRef,
    incoming: Incoming,
    batches: Batches,
    /// A batch that came with the schema.
    ready: Option<RecordBatch>,
    client: Arc<Client>,
    /// How long the client may say nothing, while others that write wait.
    patience: Duration,
    /// Why there are no more rows: what the client is told.
    wrong: Arc<Mutex<Option<Ended>>>,
    done: Arc<AtomicBool>,
}

impl Reader {
    fn read(&mut self) -> Result<Option<RecordBatch>, Ended> {
        if let Some(batch) = self.ready.take() {
            return Ok(Some(batch));
        }
        let until = Instant::now() + self.patience;
        let (client, done) = (&self.client, &self.done);
        let mut going = || {
            if done.load(Ordering::Acquire) {
                return Err(Ended::Gone);
            }
            call::wanted(client).and_then(|()| call::in_time(until))
        };
        while let Some(data) = self.incoming.message::<FlightData>(&mut going)? {
            if let Some(batch) = self.batches.take(&data)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.read() {
            Ok(batch) => batch.map(Ok),
            Err(ended) => {
                let words = match &ended {
                    Ended::Told(status) => status.report.message.to_string(),
                    Ended::Gone => "the client has gone".to_string(),
                };
                *self.wrong.lock() = Some(ended);
                Some(Err(ArrowError::ExternalError(words.into())))
            }
        }
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
