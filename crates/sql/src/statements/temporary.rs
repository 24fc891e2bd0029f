//! Temporary tables: they are seen by their session alone, and go with it.
//!
//! In the catalog they are tables whose names begin with a schema of the session. Where a session has made some, names that
//! statements read are looked up there first, and those of the tables that statements change are replaced before they
//! run. What a process that was killed has left behind is removed when one of the next makes its first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::Result;
use crate::names::session_of;
use crate::run::context::StatementContext;
use crate::run::instance::Instance;
use crate::statements::write::Writing;

/// The temporary tables of one session.
#[derive(Debug)]
pub(crate) struct Temporary {
    instance: Arc<Instance>,
    schema: String,
    /// Whether there may be any.
    made: AtomicBool,
}

impl Temporary {
    /// Of a new session.
    pub(crate) fn new(instance: &Arc<Instance>) -> Temporary {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Temporary {
            instance: Arc::clone(instance),
            schema: format!("pg_temp_{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            made: AtomicBool::new(false),
        }
    }

    /// The schema that they are in.
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// Whether there may be any.
    pub(crate) fn is_made(&self) -> bool {
        self.made.load(Ordering::Acquire)
    }

    /// The session makes a temporary table. Before its first, what sessions that are gone have left is removed.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn begin(&self, context: &StatementContext, writing: &mut Writing) -> Result<()> {
        let mut live = self.instance.temporary.lock();
        if live.insert(self.schema.clone()) {
            let left = |schema: &str| schema == self.schema || !live.contains(schema);
            remove(context, writing, left)?;
            self.made.store(true, Ordering::Release);
        }
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_made() {
            return;
        }
        let (instance, schema) = (Arc::clone(&self.instance), self.schema.clone());
        // What is not removed now is removed when another session makes its first temporary table.
        self.instance.workers().handle().spawn(async move {
            let removed = gone(&instance, &schema).await;
            instance.temporary.lock().remove(&schema);
            removed
        });
    }
}

/// Removes the tables of a session that has ended.
async fn gone(instance: &Arc<Instance>, schema: &str) -> Result<()> {
    let mut writing = Writing::begin(instance).await?;
    let context = StatementContext::new(instance, writing.tx.base(), std::time::Instant::now())?;
    remove(&context, &mut writing, |of| of == schema)?;
    writing.commit().await
}

/// Removes the temporary tables of these schemas.
fn remove(
    context: &StatementContext,
    writing: &mut Writing,
    of: impl Fn(&str) -> bool,
) -> Result<()> {
    let names = context.tables.names().into_iter();
    for name in names.filter(|name| session_of(name).is_some_and(&of)) {
        table::drop(&mut writing.tx, name)?;
    }
    Ok(())
}
