//! Statements that clients have prepared.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use atoll::{Account, PreparedStatement};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::errors;
use crate::flight::status::{Ended, Status};
use crate::security::identity::Identity;
use crate::wire::backend::Report;

/// Most prepared statements of all clients.
const MOST: usize = 10_000;

/// How long one is kept that nobody uses.
const LASTS: Duration = Duration::from_secs(3600);

/// Most bytes of the parameters of one.
pub(crate) const PARAMETERS: usize = 64 << 20;

/// A prepared statement.
#[derive(Debug)]
pub(crate) struct Kept {
    pub text: String,
    pub statement: PreparedStatement,
    pub transaction: Option<Bytes>,
    /// What was bound: the statement runs once for each row.
    pub parameters: Mutex<Option<Vec<RecordBatch>>>,
    /// The memory of that.
    memory: Mutex<Option<Account>>,
    who: Identity,
    used: Mutex<Instant>,
}

impl Kept {
    pub(crate) fn new(
        text: String,
        statement: PreparedStatement,
        transaction: Option<Bytes>,
        who: &Identity,
    ) -> Kept {
        Kept {
            text,
            statement,
            transaction,
            parameters: Mutex::new(None),
            memory: Mutex::new(None),
            who: who.clone(),
            used: Mutex::new(Instant::now()),
        }
    }
}

impl Kept {
    /// Binds these rows, which are kept in memory of this account.
    ///
    /// # Errors
    /// If it has not so much.
    pub(crate) fn bind(&self, rows: Vec<RecordBatch>, account: Account) -> Result<(), Ended> {
        let bytes: usize = rows.iter().map(RecordBatch::get_array_memory_size).sum();
        account
            .take(bytes as u64)
            .map_err(|e| Report::error(errors::MEMORY, e.to_string()))?;
        *self.parameters.lock() = Some(rows);
        *self.memory.lock() = Some(account);
        Ok(())
    }
}

/// All prepared statements, by their handles.
#[derive(Debug, Default)]
pub(crate) struct Statements(Mutex<HashMap<Bytes, Arc<Kept>>>);

impl Statements {
    /// Keeps a statement.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn keep(&self, handle: Bytes, kept: Kept) -> Result<(), Ended> {
        let mut all = self.0.lock();
        if all.len() >= MOST {
            all.retain(|_, kept| kept.used.lock().elapsed() < LASTS);
        }
        if all.len() >= MOST {
            let message = format!("there are {MOST} prepared statements: close some");
            return Err(Report::error("53400", message).into());
        }
        all.insert(handle, Arc::new(kept));
        Ok(())
    }

    /// The statement of this handle.
    ///
    /// # Errors
    /// If the user has none.
    pub(crate) fn get(&self, handle: &Bytes, who: &Identity) -> Result<Arc<Kept>, Ended> {
        let found = self.0.lock().get(handle).cloned();
        let kept = found.filter(|kept| kept.who.is(who));
        let kept = kept.ok_or_else(|| {
            Status::unknown(
                "there is no such prepared statement: it was closed, or not used for too long",
            )
        })?;
        *kept.used.lock() = Instant::now();
        Ok(kept)
    }

    /// Forgets a statement. One that is not there is forgotten.
    pub(crate) fn close(&self, handle: &Bytes, who: &Identity) {
        let mut all = self.0.lock();
        if all.get(handle).is_some_and(|kept| kept.who.is(who)) {
            all.remove(handle);
        }
    }
}
