//! Statements that clients have prepared.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use atoll::PreparedStatement;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::flight::status::{Ended, Status};
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
    user: String,
    used: Mutex<Instant>,
}

impl Kept {
    pub(crate) fn new(
        text: String,
        statement: PreparedStatement,
        transaction: Option<Bytes>,
        user: &str,
    ) -> Kept {
        Kept {
            text,
            statement,
            transaction,
            parameters: Mutex::new(None),
            user: user.to_string(),
            used: Mutex::new(Instant::now()),
        }
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
    pub(crate) fn get(&self, handle: &Bytes, user: &str) -> Result<Arc<Kept>, Ended> {
        let found = self.0.lock().get(handle).cloned();
        let kept = found.filter(|kept| kept.user == user);
        let kept = kept.ok_or_else(|| {
            Status::unknown(
                "there is no such prepared statement: it was closed, or not used for too long",
            )
        })?;
        *kept.used.lock() = Instant::now();
        Ok(kept)
    }

    /// Forgets a statement. One that is not there is forgotten.
    pub(crate) fn close(&self, handle: &Bytes, user: &str) {
        let mut all = self.0.lock();
        if all.get(handle).is_some_and(|kept| kept.user == user) {
            all.remove(handle);
        }
    }
}
