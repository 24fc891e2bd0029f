//! Queries: what they will return, and their rows.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use atoll::PreparedStatement;
use bytes::Bytes;
use prost::Message;

use crate::errors;
use crate::flight::call::{self, Call};
use crate::flight::caller::{self, Caller, Entered, unguessable};
use crate::flight::catalog;
use crate::flight::data::{self, Encoder};
use crate::flight::messages::{
    Asked, FlightDescriptor, FlightEndpoint, FlightInfo, Handle, Text, Ticket,
};
use crate::flight::parameters;
use crate::flight::prepared::Kept;
use crate::flight::running::{command, read_ticket, told_of};
use crate::flight::shelf::Shelf;
use crate::flight::status::{Ended, Status};
use crate::flight::updates;
use crate::sessions::Reason;
use crate::wire::backend::Report;

/// What a client wants to know of what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// How it gets the rows.
    Rows,
    /// Only what their columns are: nothing runs.
    Schema,
}

/// What a descriptor stands for. A statement that returns rows runs when these are asked for, and stops when nobody wants
/// them any more; one that returns none runs now, as clients do not ask for what is not there, or stop before the end.
///
/// # Errors
/// If it stands for nothing; those of planning the statement, or of running it.
pub(crate) fn info(
    shelf: &Shelf,
    caller: &Caller,
    descriptor: FlightDescriptor,
    wanted: Wanted,
) -> Result<FlightInfo, Ended> {
    let command = command(&descriptor)?;
    let mut asked = Asked {
        id: unguessable()?,
        ..Asked::default()
    };
    let schema = match command.name() {
        Some("CommandStatementQuery") => {
            let Text { query, transaction } = call::decoded(command.value)?;
            let prepared = planned(shelf, caller, &query, transaction.as_ref())?;
            let schema = columns(prepared.columns());
            if wanted == Wanted::Rows && schema.fields().is_empty() {
                updates::update(shelf, caller, &query, transaction.as_ref())?;
                asked.done = true;
            } else if wanted == Wanted::Rows {
                shelf.planned.keep(&asked.id, &caller.who, &query, prepared);
            }
            asked.text = query;
            asked.transaction = transaction;
            schema
        }
        Some("CommandPreparedStatementQuery") => {
            let Handle { handle } = call::decoded(command.value)?;
            let kept = shelf.prepared.get(&handle, &caller.who)?;
            asked.prepared = Some(handle);
            let schema = columns(kept.statement.columns());
            if wanted == Wanted::Rows && schema.fields().is_empty() {
                let bound = kept.parameters.lock().clone();
                updates::prepared(shelf, caller, &kept, bound)?;
                asked.done = true;
            }
            schema
        }
        _ => {
            let schema = catalog::schema(&command)?;
            asked.command = Some(command);
            schema
        }
    };
    asked.schema = data::framed(&schema);
    Ok(FlightInfo {
        schema: asked.schema.clone(),
        descriptor: Some(descriptor),
        endpoint: vec![FlightEndpoint {
            ticket: Some(Ticket {
                ticket: asked.encode_to_vec().into(),
            }),
        }],
        total_records: -1,
        total_bytes: -1,
        ordered: true,
    })
}

/// The columns of a statement as clients are told of them; none where it returns no rows.
fn columns(schema: Option<&SchemaRef>) -> SchemaRef {
    schema.map_or_else(|| Arc::new(Schema::empty()), |schema| data::told(schema))
}

/// A query that is planned and not run.
fn planned(
    shelf: &Shelf,
    caller: &Caller,
    text: &str,
    transaction: Option<&Bytes>,
) -> Result<PreparedStatement, Ended> {
    caller::check(text)?;
    let entered = caller.enter(&shelf.shared, &shelf.transactions, transaction)?;
    entered.begin(text);
    let prepared = entered.timed(text, |session| session.prepare(text, &[]))?;
    let prepared = prepared.ok_or_else(|| Status::invalid("there is no statement in the text"))?;
    if !prepared.parameters().is_empty() {
        let message = "the statement has parameters: prepare it, and bind them";
        return Err(Report::error("42P02", message).into());
    }
    Ok(prepared)
}

/// Sends the rows that a ticket stands for.
///
/// # Errors
/// If it stands for none; those of the statement.
pub(crate) fn get(
    shelf: &Shelf,
    call: &mut Call,
    caller: &Caller,
    ticket: Ticket,
) -> Result<(), Ended> {
    let asked = read_ticket(ticket)?;
    let told = data::unframed(&asked.schema)?;
    let mut sending = Sending::new(call, told)?;
    if asked.done {
        return sending.begin(&mut || Ok(()));
    }
    if let Some(command) = &asked.command {
        let batch = catalog::rows(shelf, caller, command)?;
        return sending.batch(&batch, &mut || Ok(()));
    }
    if let Some(handle) = &asked.prepared {
        let kept = shelf.prepared.get(handle, &caller.who)?;
        let transaction = kept.transaction.as_ref();
        let entered = caller.enter(&shelf.shared, &shelf.transactions, transaction)?;
        let _listed = shelf.running.list(&asked.id, &entered.client);
        return told_of(&entered, prepared(&entered, &kept, &mut sending));
    }
    caller::check(&asked.text)?;
    let transaction = asked.transaction.as_ref();
    let entered = caller.enter(&shelf.shared, &shelf.transactions, transaction)?;
    let _listed = shelf.running.list(&asked.id, &entered.client);
    entered.begin(&asked.text);
    let planned = shelf.planned.take(&asked.id, &caller.who, &asked.text);
    let rows = entered.timed(&asked.text, |session| match &planned {
        Some(statement) => session.run(statement, &[]),
        None => session.query(&asked.text),
    });
    let sent = rows.and_then(|rows| sending.rows(&entered, rows, &asked.text));
    told_of(&entered, sent)
}

/// Runs a prepared query, once for each row that was bound.
fn prepared(entered: &Entered, kept: &Kept, sending: &mut Sending<'_>) -> Result<(), Ended> {
    let bound = kept.parameters.lock().clone();
    let types = kept.statement.parameters();
    for batch in parameters::batches(bound, types.len())? {
        let texts = parameters::Texts::new(&batch, types)?;
        for at in 0..texts.rows() {
            let values = texts.row(at)?;
            let values: Vec<Option<&str>> = values.iter().map(Option::as_deref).collect();
            entered.begin(&kept.text);
            let run = |session: &atoll::Session| session.run(&kept.statement, &values);
            let rows = entered.timed(&kept.text, run)?;
            sending.rows(entered, rows, &kept.text)?;
        }
    }
    Ok(())
}

/// Rows on their way.
struct Sending<'c> {
    call: &'c mut Call,
    told: SchemaRef,
    encoder: Encoder,
    begun: bool,
}

impl Sending<'_> {
    fn new(call: &mut Call, told: SchemaRef) -> Result<Sending<'_>, Ended> {
        let encoder = Encoder::new(&told)?;
        Ok(Sending {
            call,
            told,
            encoder,
            begun: false,
        })
    }

    /// Sends what the columns are, once there is something to be sent: errors that come before need no more than words.
    fn begin(&mut self, going: &mut dyn FnMut() -> Result<(), Ended>) -> Result<(), Ended> {
        if !std::mem::replace(&mut self.begun, true) {
            self.call
                .send(vec![data::schema_message(&self.told)], going)?;
        }
        Ok(())
    }

    fn batch(
        &mut self,
        batch: &arrow::array::RecordBatch,
        going: &mut dyn FnMut() -> Result<(), Ended>,
    ) -> Result<(), Ended> {
        let batch = data::conform(batch, &self.told)?;
        let mut messages = self.encoder.batch(&batch)?;
        if !std::mem::replace(&mut self.begun, true) {
            messages.insert(0, data::schema_message(&self.told));
        }
        self.call.send(messages, going)
    }

    /// Sends the rows of a statement. It waits for a client that reads slowly.
    fn rows(&mut self, entered: &Entered, mut rows: atoll::Rows, text: &str) -> Result<(), Ended> {
        let client = Arc::clone(&entered.client);
        // Others that write may wait for a transaction: its client must take each batch in time.
        let patience = (!entered.is_alone()).then(|| entered.patience());
        let waits = std::cell::Cell::new(std::time::Instant::now());
        let mut going = || {
            if patience.is_some_and(|patience| waits.get().elapsed() >= patience) {
                client.ask(Reason::Idle);
            }
            call::wanted(&client)
        };
        let counts = entered.counts();
        if rows.schema().fields().is_empty() {
            let message = "the statement has other columns than it had: ask for it again";
            return Err(Report::error(errors::NOT_SUPPORTED, message).into());
        }
        for batch in rows.by_ref() {
            let batch = batch.map_err(|e| entered.failed(&e, text))?;
            if batch.num_rows() > 0 {
                waits.set(std::time::Instant::now());
                self.batch(&batch, &mut going)?;
                counts.rows.add(batch.num_rows() as u64);
                counts.bytes.add(batch.get_array_memory_size() as u64);
            }
        }
        self.begin(&mut going)
    }
}
