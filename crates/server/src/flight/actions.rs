//! Actions: preparing statements, transactions, cancelling.

use bytes::Bytes;
use prost::Message;

use crate::flight::call::{self, Call};
use crate::flight::caller::{self, Caller, unguessable};
use crate::flight::data;
use crate::flight::messages::{
    Action, ActionType, Any, CancelRequest, CancelResult, End, Handle, Outcome, PreparedResult,
    Savepoint, Text,
};
use crate::flight::prepared::Kept;
use crate::flight::running::told_of;
use crate::flight::shelf::Shelf;
use crate::flight::status::{Ended, Status};
use crate::limits::IDLE;
use crate::sessions::Doing;
use crate::wire::backend::Report;
use arrow::datatypes::{Field, Schema};

/// Actions, and what they do.
const ALL: [(&str, &str); 9] = [
    ("CreatePreparedStatement", "Prepares a statement."),
    ("ClosePreparedStatement", "Forgets a prepared statement."),
    ("BeginTransaction", "Begins a transaction."),
    ("EndTransaction", "Commits a transaction, or rolls it back."),
    ("BeginSavepoint", "Makes a savepoint."),
    ("EndSavepoint", "Releases a savepoint, or rolls back to it."),
    ("CancelFlightInfo", "Cancels a statement."),
    ("CancelQuery", "Cancels a statement."),
    ("CloseSession", "Forgets the token of the client."),
];

/// Lists the actions.
///
/// # Errors
/// If the client is gone.
pub(crate) fn list(call: &mut Call) -> Result<(), Ended> {
    for (kind, description) in ALL {
        let (kind, description) = (kind.to_string(), description.to_string());
        call.answer(&ActionType { kind, description })?;
    }
    Ok(())
}

/// Does an action.
///
/// # Errors
/// If there is none of that name; those of what it does.
pub(crate) fn act(shelf: &Shelf, call: &mut Call, caller: &Caller) -> Result<(), Ended> {
    let action: Action = call.request()?;
    let body = action.body.clone();
    match action.kind.as_str() {
        "CreatePreparedStatement" => {
            let text: Text = inner(body)?;
            let told = prepare(shelf, caller, text)?;
            outcome(call, "ActionCreatePreparedStatementResult", &told)
        }
        "ClosePreparedStatement" => {
            let Handle { handle } = inner(body)?;
            shelf.prepared.close(&handle, &caller.who);
            Ok(())
        }
        "BeginTransaction" => {
            let handle = begin(shelf, caller)?;
            outcome(call, "ActionBeginTransactionResult", &Handle { handle })
        }
        "EndTransaction" => end(shelf, caller, &inner(body)?),
        "BeginSavepoint" => {
            let handle = savepoint(shelf, caller, &inner(body)?)?;
            outcome(call, "ActionBeginSavepointResult", &Handle { handle })
        }
        "EndSavepoint" => end_savepoint(shelf, caller, &inner(body)?),
        "CancelFlightInfo" => {
            let asked: CancelRequest = call::decoded(body)?;
            let info = asked.info.unwrap_or_default();
            let status = shelf.running.cancel(&info, &caller.who)? as i32;
            let body = CancelResult { status }.encode_to_vec().into();
            call.answer(&Outcome { body })
        }
        "CancelQuery" => {
            let Handle { handle } = inner(body)?;
            let info = call::decoded(handle)?;
            let status = shelf.running.cancel(&info, &caller.who)? as i32;
            outcome(call, "ActionCancelQueryResult", &CancelResult { status })
        }
        "CloseSession" => {
            shelf.tokens.forget(&call.headers);
            // `CloseSessionResult` with the status 1, closed.
            let body = Bytes::from_static(&[8, 1]);
            call.answer(&Outcome { body })
        }
        other => {
            let known: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
            let message = format!(
                "there is no action {other:?}: there are {}",
                known.join(", ")
            );
            Err(Status::unsupported(message).into())
        }
    }
}

/// What the body of an action of Flight SQL has in it.
fn inner<M: Message + Default>(body: Bytes) -> Result<M, Ended> {
    let any: Any = call::decoded(body)?;
    call::decoded(any.value)
}

fn outcome(call: &mut Call, name: &str, message: &impl Message) -> Result<(), Ended> {
    let body = Any::of(name, message).encode_to_vec().into();
    call.conclude(&Outcome { body })
}

fn prepare(shelf: &Shelf, caller: &Caller, asked: Text) -> Result<PreparedResult, Ended> {
    let text = asked.query;
    caller::check(&text)?;
    let transaction = asked.transaction.filter(|id| !id.is_empty());
    let entered = caller.enter(&shelf.shared, &shelf.transactions, transaction.as_ref())?;
    entered.begin(&text);
    let prepared = entered.timed(&text, |session| session.prepare(&text, &[]));
    let prepared = told_of(&entered, prepared)?;
    let prepared = prepared.ok_or_else(|| Status::invalid("there is no statement in the text"))?;
    let parameters = prepared.parameters().iter().enumerate();
    let parameters = parameters
        .map(|(at, data_type)| Field::new(format!("${}", at + 1), data_type.clone(), true));
    let parameters = Schema::new(parameters.collect::<Vec<_>>());
    let told = PreparedResult {
        handle: unguessable()?,
        columns: prepared.columns().map_or_else(
            || data::framed(&Schema::empty()),
            |columns| data::framed(&data::told(columns)),
        ),
        parameters: data::framed(&data::told(&parameters)),
    };
    let kept = Kept::new(text, prepared, transaction, &caller.who);
    shelf.prepared.keep(told.handle.clone(), kept)?;
    Ok(told)
}

fn begin(shelf: &Shelf, caller: &Caller) -> Result<Bytes, Ended> {
    let shared = &shelf.shared;
    let limits = caller.limits(shared)?;
    let session = caller.session(shared, &limits)?;
    let begun = session.sql("begin");
    begun.map_err(|e| crate::errors::report(&e, "begin"))?;
    let id = unguessable()?;
    let seat = |session: &atoll::Session, line| {
        let seat = caller.seat(shared, (session, &limits), line)?;
        let idle = shared.options.idle_in_transaction_timeout;
        let idle = limits.time(IDLE, None, idle);
        let deadline = idle.and_then(|time| std::time::Instant::now().checked_add(time));
        seat.client.rest(Doing::IdleInTransaction, deadline);
        Ok(seat)
    };
    shelf
        .transactions
        .keep(id.clone(), &caller.who, session, seat)?;
    Ok(id)
}

fn end(shelf: &Shelf, caller: &Caller, asked: &End) -> Result<(), Ended> {
    let text = match asked.action {
        1 => "commit",
        2 => "rollback",
        _ => return Err(Status::invalid("a transaction ends with commit or rollback").into()),
    };
    let transaction = Some(&asked.handle).filter(|id| !id.is_empty());
    let transaction = transaction.ok_or_else(|| Status::unknown("name a transaction"))?;
    let entered = caller.enter(&shelf.shared, &shelf.transactions, Some(transaction))?;
    entered.begin(text);
    let failed = entered.session.transaction() == atoll::TransactionStatus::Failed;
    if failed && text == "commit" {
        entered.run_quietly("rollback")?;
        let message = "current transaction is aborted: it is rolled back, nothing of it is kept";
        return Err(Report::error("25P02", message).into());
    }
    entered.run_quietly(text)
}

/// What stands between a transaction and the name in the handle of a savepoint.
const BETWEEN: usize = 16;

fn savepoint(shelf: &Shelf, caller: &Caller, asked: &Savepoint) -> Result<Bytes, Ended> {
    if asked.transaction.len() != BETWEEN || asked.name.is_empty() {
        return Err(Status::invalid("name a transaction and a savepoint").into());
    }
    in_transaction(shelf, caller, &asked.transaction, "savepoint", &asked.name)?;
    Ok([&asked.transaction[..], asked.name.as_bytes()]
        .concat()
        .into())
}

fn end_savepoint(shelf: &Shelf, caller: &Caller, asked: &End) -> Result<(), Ended> {
    let what = match asked.action {
        1 => "release savepoint",
        2 => "rollback to savepoint",
        _ => return Err(Status::invalid("a savepoint is released or rolled back to").into()),
    };
    let unknown = || Status::unknown("there is no such savepoint");
    if asked.handle.len() <= BETWEEN {
        return Err(unknown().into());
    }
    let transaction = asked.handle.slice(..BETWEEN);
    let name = std::str::from_utf8(&asked.handle[BETWEEN..]).map_err(|_| unknown())?;
    in_transaction(shelf, caller, &transaction, what, name)
}

fn in_transaction(
    shelf: &Shelf,
    caller: &Caller,
    transaction: &Bytes,
    what: &str,
    name: &str,
) -> Result<(), Ended> {
    let text = format!("{what} \"{}\"", name.replace('"', "\"\""));
    let entered = caller.enter(&shelf.shared, &shelf.transactions, Some(transaction))?;
    entered.begin(&text);
    told_of(&entered, entered.run_quietly(&text))
}
