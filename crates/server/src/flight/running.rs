//! The statements that run, and how others stop them; what descriptors and tickets have in them.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message;

use crate::flight::call;
use crate::flight::caller::Entered;
use crate::flight::messages::{Any, Asked, Cancelled, FlightDescriptor, FlightInfo, Ticket};
use crate::flight::status::{Ended, Status};
use crate::security::identity::Identity;
use crate::sessions::{Client, Reason};

/// The statements that run, by the numbers in their tickets.
#[derive(Debug, Default)]
pub(crate) struct Running(Mutex<HashMap<Bytes, Arc<Client>>>);

/// A statement that is among those that run until this is dropped.
pub(crate) struct Listed<'r>(&'r Running, Bytes);

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.0.0.lock().remove(&self.1);
    }
}

impl Running {
    /// The statement of a client runs until what is returned is dropped.
    pub(crate) fn list(&self, id: &Bytes, client: &Arc<Client>) -> Listed<'_> {
        self.0.lock().insert(id.clone(), Arc::clone(client));
        Listed(self, id.clone())
    }

    /// Stops the statement for which a user has this information.
    ///
    /// # Errors
    /// If it is none of this server.
    pub(crate) fn cancel(&self, info: &FlightInfo, who: &Identity) -> Result<Cancelled, Ended> {
        let mut found = Cancelled::NotCancellable;
        for endpoint in &info.endpoint {
            let ticket = endpoint.ticket.clone().unwrap_or_default();
            let asked = read_ticket(ticket)?;
            let client = self.0.lock().get(&asked.id).cloned();
            if let Some(client) = client.filter(|client| client.is_of(who)) {
                client.ask(Reason::Cancelled);
                found = Cancelled::Doing;
            }
        }
        Ok(found)
    }
}

/// What a ticket has in it.
///
/// # Errors
/// If it is none that this server has made.
pub(crate) fn read_ticket(ticket: Ticket) -> Result<Asked, Ended> {
    let wrong = || Status::invalid("the ticket is none of this server");
    let asked = Asked::decode(ticket.ticket).map_err(|_| wrong())?;
    if asked.id.is_empty() || asked.schema.is_empty() {
        return Err(wrong().into());
    }
    Ok(asked)
}

/// The command that a descriptor has.
///
/// # Errors
/// If it has none of Flight SQL.
pub(crate) fn command(descriptor: &FlightDescriptor) -> Result<Any, Ended> {
    if descriptor.command.is_empty() {
        let message = "name a command of Flight SQL: there are no flights with paths";
        return Err(Status::invalid(message).into());
    }
    call::decoded(descriptor.command.clone())
}

/// An error ends what can be done in the transaction.
pub(crate) fn told_of<T>(entered: &Entered, done: Result<T, Ended>) -> Result<T, Ended> {
    if done.is_err() && !entered.is_alone() {
        entered.session.fail();
    }
    done
}

/// Follows a statement to its end.
pub(crate) fn changed(entered: &Entered, mut rows: atoll::Rows, text: &str) -> Result<u64, Ended> {
    let mut returned = 0;
    for batch in rows.by_ref() {
        let batch = batch.map_err(|e| entered.failed(&e, text))?;
        returned += batch.num_rows() as u64;
    }
    Ok(rows.changed().unwrap_or(returned))
}

/// Does `work` as one transaction, unless that of the client does for it, or it is one statement.
pub(crate) fn together<T>(
    entered: &Entered,
    several: bool,
    work: impl FnOnce() -> Result<T, Ended>,
) -> Result<T, Ended> {
    if !several || !entered.is_alone() {
        return work();
    }
    entered.run_quietly("begin")?;
    // A session that is dropped undoes what was not committed.
    let done = work()?;
    entered.run_quietly("commit")?;
    Ok(done)
}
