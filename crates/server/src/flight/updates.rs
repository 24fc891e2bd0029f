//! `DoPut`: statements that change something, parameters, and rows for a table.

use arrow::array::RecordBatch;
use bytes::Bytes;
use prost::Message;

use crate::errors;
use crate::flight::call::{self, Call, Incoming};
use crate::flight::caller::{self, Caller};
use crate::flight::data::Batches;
use crate::flight::ingest;
use crate::flight::messages::{FlightData, Handle, Outcome, Text, UpdateResult};
use crate::flight::parameters::{self, Texts};
use crate::flight::prepared::{Kept, PARAMETERS};
use crate::flight::running::{changed, command, together, told_of};
use crate::flight::shelf::Shelf;
use crate::flight::status::{Ended, Status};
use crate::wire::backend::Report;

/// Does what the first message asks with those that follow.
///
/// # Errors
/// If it asks for nothing that there is; those of the statement.
pub(crate) fn put(shelf: &Shelf, call: &mut Call, caller: &Caller) -> Result<(), Ended> {
    let first: FlightData = call.request()?;
    let descriptor = first.descriptor.clone().unwrap_or_default();
    let command = command(&descriptor)?;
    let changed = match command.name() {
        Some("CommandStatementUpdate") => {
            let Text { query, transaction } = call::decoded(command.value)?;
            update(shelf, caller, &query, transaction.as_ref())?
        }
        Some("CommandPreparedStatementUpdate") => {
            let Handle { handle } = call::decoded(command.value)?;
            let kept = shelf.prepared.get(&handle, &caller.who)?;
            let bound = bound(call, &first)?;
            let bound = if bound.is_empty() {
                kept.parameters.lock().clone()
            } else {
                Some(bound)
            };
            prepared(shelf, caller, &kept, bound)?
        }
        Some("CommandPreparedStatementQuery") => {
            let asked: Handle = call::decoded(command.value)?;
            let kept = shelf.prepared.get(&asked.handle, &caller.who)?;
            let bound = bound(call, &first)?;
            let limits = caller.limits(&shelf.shared)?;
            let account = caller.session(&shelf.shared, &limits)?.account();
            kept.bind(bound, account.map_err(|e| errors::report(&e, ""))?)?;
            return outcome(call, &asked);
        }
        Some("CommandStatementIngest") => {
            let asked = call::decoded(command.value)?;
            ingest::ingest(shelf, call, caller, &asked, &first)?
        }
        name => {
            let name = name.unwrap_or(&command.type_url);
            return Err(Status::unsupported(format!("nothing can be put for {name:?}")).into());
        }
    };
    let count = i64::try_from(changed).unwrap_or(i64::MAX);
    outcome(call, &UpdateResult { count })
}

fn outcome(call: &mut Call, message: &impl Message) -> Result<(), Ended> {
    let body = Bytes::from(message.encode_to_vec());
    call.answer(&Outcome { body })
}

/// The batches that a client sends as parameters.
fn bound(call: &mut Call, first: &FlightData) -> Result<Vec<RecordBatch>, Ended> {
    let mut batches = Batches::default();
    let mut all = Vec::new();
    let mut bytes = 0;
    all.extend(batches.take(first)?);
    let mut incoming: Incoming = call.take_incoming();
    let until = std::time::Instant::now() + ingest::PATIENCE;
    while let Some(data) = incoming.message::<FlightData>(&mut || call::in_time(until))? {
        bytes += data.body.len();
        if bytes > PARAMETERS {
            let message = format!("more than {PARAMETERS} bytes of parameters: send them in parts");
            return Err(Report::error("54000", message).into());
        }
        all.extend(batches.take(&data)?);
    }
    // An empty batch binds nothing.
    all.retain(|batch| batch.num_columns() > 0);
    Ok(all)
}

/// Runs a statement, and says how many rows it has changed.
pub(crate) fn update(
    shelf: &Shelf,
    caller: &Caller,
    text: &str,
    transaction: Option<&Bytes>,
) -> Result<u64, Ended> {
    caller::check(text)?;
    let entered = caller.enter(&shelf.shared, &shelf.transactions, transaction)?;
    entered.begin(text);
    let rows = entered.timed(text, |session| session.query(text));
    told_of(
        &entered,
        rows.and_then(|rows| changed(&entered, rows, text)),
    )
}

/// Runs a prepared statement, once for each row that was bound: all of them, or none.
pub(crate) fn prepared(
    shelf: &Shelf,
    caller: &Caller,
    kept: &Kept,
    bound: Option<Vec<RecordBatch>>,
) -> Result<u64, Ended> {
    let types = kept.statement.parameters();
    let batches = parameters::batches(bound, types.len())?;
    let transaction = kept.transaction.as_ref();
    let entered = caller.enter(&shelf.shared, &shelf.transactions, transaction)?;
    entered.begin(&kept.text);
    let run = || -> Result<u64, Ended> {
        let mut all = 0;
        for batch in &batches {
            let texts = Texts::new(batch, types)?;
            for at in 0..texts.rows() {
                let values = texts.row(at)?;
                let values: Vec<Option<&str>> = values.iter().map(Option::as_deref).collect();
                let rows = entered.timed(&kept.text, |s| s.run(&kept.statement, &values))?;
                all += changed(&entered, rows, &kept.text)?;
            }
        }
        Ok(all)
    };
    let one = batches.iter().flatten().all(|batch| batch.num_rows() <= 1) && batches.len() <= 1;
    told_of(&entered, together(&entered, !one, run))
}
