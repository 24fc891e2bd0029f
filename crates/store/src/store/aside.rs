//! Commits beside a transaction that is under way: of single keys, which it neither sees nor undoes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::catalog::changes::Changes;
use crate::error::{Error, Result};
use crate::log::MAX_BODY;
use crate::options::Durability;
use crate::store::commit::Logged;
use crate::store::handle::Store;

/// How long to wait for a writer that is about to begin.
const SOON: Duration = Duration::from_micros(200);

impl Store {
    /// Sets the value of a key now, whether a transaction is under way or not: one that is does not see it, and its
    /// being undone does not undo it. When it commits the key keeps this value, unless it has changed the key itself.
    ///
    /// It is a commit: durable when this returns, and visible to snapshots from then on. It survives a killed process
    /// whatever the store's [durability](crate::Options::durability) is, and a loss of power where that says so. May
    /// be called from any thread, also by who holds a transaction.
    ///
    /// # Errors
    /// As [`begin`](Store::begin) and [`commit`](crate::Transaction::commit).
    pub fn put_aside(self: &Arc<Self>, space: u32, key: &[u8], value: &[u8]) -> Result<u64> {
        loop {
            if let Some(mut transaction) = self.try_begin()? {
                transaction.put(space, key, value);
                if self.durability == Durability::None {
                    transaction.set_durability(Durability::Process);
                }
                return transaction.commit();
            }
            if let Some(logged) = self.log_aside(space, key, value)? {
                self.settle_commit(&logged)?;
                return Ok(logged.version.number);
            }
            std::thread::sleep(SOON);
        }
    }

    /// Logs it beside the writer that is in; `None` if that has gone, or is not ready to write yet.
    fn log_aside(&self, space: u32, key: &[u8], value: &[u8]) -> Result<Option<Logged>> {
        // As long as this is held the transaction stays in, and with it the right to write to the files.
        let mut writer = self.writer.lock();
        if !writer.open {
            return Ok(None);
        }
        self.not_latched()?;
        let mut catalog = writer.head.catalog.clone();
        let (key, value): (Arc<[u8]>, Arc<[u8]>) = (key.into(), value.into());
        catalog.put(space, key.clone(), value.clone());
        let mut changes = Changes {
            next_space: catalog.next_space,
            ..Changes::default()
        };
        changes
            .keys
            .insert((space, key.clone()), Some(value.clone()));
        let bytes = changes.encoded_bytes();
        if bytes > MAX_BODY {
            return Err(Error::RecordTooLarge {
                bytes,
                limit: MAX_BODY,
            });
        }
        let version = writer.head.number + 1;
        let hidden = writer.head.number > self.current.read().number;
        let waits = self.durability == Durability::Power || hidden || self.writes_on_demand();
        self.log_changes(&mut writer, version, &changes, true)?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        let version = self.advance(&mut writer, version, &changes, catalog);
        // The transaction that is under way began without it.
        writer.aside.insert((space, key), value);
        if waits {
            self.group.hide(version.clone());
        } else {
            self.group.written(version.number);
            *self.current.write() = version.clone();
        }
        if self.writes_on_demand() {
            // Another process is not to build on what is not durable.
            self.make_durable(version.number)?;
        }
        Ok(Some(Logged {
            version,
            waits,
            due: false,
        }))
    }
}
