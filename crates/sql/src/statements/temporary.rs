//! Temporary tables, views and sequences: they are seen by their session alone, and go with it.
//!
//! In the catalog they are tables whose names begin with a schema of the session. Where a session has made some, names that
//! statements read are looked up there first, and those of the tables that statements change are replaced before they
//! run. What a process that was killed has left behind is removed when one of the next makes its first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use store::Transaction;
use syntax::names::{base, session_of};
use table::{OnCommit, Tables};

use crate::error::{Error, Result};
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
    /// Whether there may be some that a transaction empties or drops when it ends.
    ends: AtomicBool,
}

impl Temporary {
    /// Of a new session.
    pub(crate) fn new(instance: &Arc<Instance>) -> Temporary {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Temporary {
            instance: Arc::clone(instance),
            schema: format!("pg_temp_{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            made: AtomicBool::new(false),
            ends: AtomicBool::new(false),
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

    /// The session makes a temporary table that a transaction empties or drops when it ends.
    pub(crate) fn ends(&self) {
        self.ends.store(true, Ordering::Release);
    }

    /// Whether there may be some that a transaction empties or drops when it ends.
    pub(crate) fn has_ends(&self) -> bool {
        self.ends.load(Ordering::Acquire)
    }

    /// Empties and drops those of `tables` that a transaction which ends is to, in what it has written.
    ///
    /// # Errors
    /// If a table that stays refers to one of them; those of the store.
    pub(crate) fn end(&self, tables: &Tables, tx: &mut Transaction) -> Result<()> {
        let own: Vec<_> = tables
            .names()
            .into_iter()
            .filter(|name| session_of(name) == Some(self.schema()))
            .filter_map(|name| tables.get(name))
            .collect();
        let ends = |name: &str| {
            let mut named = own.iter().filter(|table| table.definition().name == name);
            let found = named.next().map(|table| table.definition().on_commit);
            found.unwrap_or_default()
        };
        for table in &own {
            let definition = table.definition();
            for key in &definition.foreign_keys {
                let both = (definition.on_commit, ends(&key.parent));
                if both.0 == OnCommit::Preserve && both.1 == OnCommit::DeleteRows {
                    return Err(Error::coded(
                        "0A000",
                        format!(
                            "unsupported ON COMMIT and foreign key combination: Table \"{}\" references \"{}\", but they do not have the same ON COMMIT setting.",
                            base(&definition.name),
                            base(&key.parent)
                        ),
                    ));
                }
            }
        }
        let mut gone: Vec<&String> = Vec::new();
        for table in &own {
            let definition = table.definition();
            let name = &definition.name;
            match definition.on_commit {
                OnCommit::DeleteRows if table.rows() > 0 => table::truncate(tx, name)?,
                OnCommit::Drop => {
                    for other in own.iter().map(|table| table.definition()) {
                        let refers = other.foreign_keys.iter().any(|key| key.parent == *name);
                        // Those that have gone already refer to nothing.
                        if refers && !gone.contains(&&other.name) {
                            table::redefine(tx, &other.name, |own| {
                                own.forget_references(|parent| parent == name);
                                Ok(())
                            })?;
                        }
                    }
                    table::drop(tx, name)?;
                    gone.push(name);
                }
                _ => {}
            }
        }
        Ok(())
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
    let mut writing = Writing::begin(instance, None).await?;
    let context = StatementContext::new(instance, writing.tx.base(), std::time::Instant::now())?;
    remove(&context, &mut writing, |of| of == schema)?;
    writing.commit().await
}

/// Removes the temporary tables, views and sequences of these schemas.
fn remove(
    context: &StatementContext,
    writing: &mut Writing,
    of: impl Fn(&str) -> bool,
) -> Result<()> {
    let names = context.tables.names().into_iter();
    let names = names.filter(|name| session_of(name).is_some_and(&of));
    let names: Vec<&str> = names.collect();
    let views = context.tables.views().into_iter();
    for view in views.filter(|name| session_of(name).is_some_and(&of)) {
        table::drop_view(&mut writing.tx, view)?;
    }
    // They refer to each other only.
    for name in &names {
        table::redefine(&mut writing.tx, name, |own| {
            own.foreign_keys.clear();
            own.rules.clear();
            Ok(())
        })?;
    }
    for name in names {
        table::drop(&mut writing.tx, name)?;
    }
    let sequences = context.tables.sequences().into_iter();
    for name in sequences.filter(|name| session_of(name).is_some_and(&of)) {
        match table::drop_sequence(&mut writing.tx, name) {
            // It belonged to a column, and went with the table.
            Ok(()) | Err(table::Error::NoTable { .. }) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}
