//! What calls of all clients share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll::PreparedStatement;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::flight::login::Tokens;
use crate::flight::prepared::Statements;
use crate::flight::running::Running;
use crate::flight::transactions::Transactions;
use crate::security::identity::Identity;
use crate::shared::Shared;

/// Most statements that wait for their tickets to be shown.
const MOST: usize = 256;

/// How long one waits.
const LASTS: Duration = Duration::from_secs(60);

/// Statements that were planned for tickets, by the numbers in these. A ticket is good without: its statement is planned
/// again then.
#[derive(Debug, Default)]
pub(crate) struct Planned(Mutex<HashMap<Bytes, Waiting>>);

#[derive(Debug)]
struct Waiting {
    who: Identity,
    text: String,
    statement: PreparedStatement,
    since: Instant,
}

impl Planned {
    /// Keeps the statement of a user for its ticket.
    pub(crate) fn keep(
        &self,
        id: &Bytes,
        who: &Identity,
        text: &str,
        statement: PreparedStatement,
    ) {
        let mut all = self.0.lock();
        if all.len() >= MOST {
            all.retain(|_, waiting| waiting.since.elapsed() < LASTS);
        }
        if all.len() >= MOST {
            let oldest = all.iter().min_by_key(|(_, waiting)| waiting.since);
            let oldest = oldest.map(|(id, _)| id.clone());
            oldest.and_then(|id| all.remove(&id));
        }
        let waiting = Waiting {
            who: who.clone(),
            text: text.to_owned(),
            statement,
            since: Instant::now(),
        };
        all.insert(id.clone(), waiting);
    }

    /// The statement of a ticket, for the user and the text that it was planned for; it is kept no longer.
    pub(crate) fn take(&self, id: &Bytes, who: &Identity, text: &str) -> Option<PreparedStatement> {
        let mut all = self.0.lock();
        all.get(id)
            .filter(|waiting| waiting.who.is(who) && waiting.text == text)?;
        all.remove(id)
            .filter(|waiting| waiting.since.elapsed() < LASTS)
            .map(|waiting| waiting.statement)
    }
}

/// What calls of all clients share.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub shared: Arc<Shared>,
    pub tokens: Tokens,
    pub transactions: Arc<Transactions>,
    pub prepared: Statements,
    pub running: Running,
    pub planned: Planned,
}

impl Shelf {
    pub(crate) fn new(shared: &Arc<Shared>) -> Shelf {
        Shelf {
            shared: Arc::clone(shared),
            tokens: Tokens::default(),
            transactions: Arc::default(),
            prepared: Statements::default(),
            running: Running::default(),
            planned: Planned::default(),
        }
    }
}
