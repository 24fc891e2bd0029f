//! Committing: the log record, then the new version.

use std::sync::Arc;

use crate::catalog::changes::Changes;
use crate::catalog::spaces::Catalog;
use crate::error::{Error, Result};
use crate::format::structures::CHUNK;
use crate::log::{Log, MAX_BODY};
use crate::state::version::Version;
use crate::state::writer::Writer;
use crate::store::gate::Gate;
use crate::store::handle::Store;

impl Store {
    /// Logs and publishes `changes`, whose result is `catalog`.
    pub(crate) fn commit(
        &self,
        changes: Changes,
        catalog: Catalog,
        gate: &Gate,
    ) -> Result<Arc<Version>> {
        self.not_latched()?;
        let mut writer = self.writer.lock();
        for &page in &changes.freed {
            if writer.pending.contains(page) || self.pages.map.get(page).is_none() {
                return Err(Error::NoSuchPage {
                    path: self.path().to_path_buf(),
                    page,
                });
            }
        }
        let bytes = changes.encoded_bytes();
        if bytes > MAX_BODY {
            return Err(Error::RecordTooLarge {
                bytes,
                limit: MAX_BODY,
            });
        }
        let version = self.current.read().number + 1;
        if !changes.written.is_empty() {
            self.sync_data()?;
        }
        self.log_changes(&mut writer.log, version, &changes)?;
        let version = self.publish(&mut writer, version, &changes, catalog);
        if writer.log.bytes() > writer.due {
            // The commit is durable whatever becomes of this. A disk that is full stays so for
            // a while: try again when the log has doubled.
            let roots = self.hold.change_roots(self.path());
            writer.checkpoint_failure = roots
                .and_then(|_roots| self.write_checkpoint(&mut writer, gate))
                .err();
            writer.due = self.checkpoint_bytes.max(2 * writer.log.bytes());
        }
        Ok(version)
    }

    fn publish(
        &self,
        writer: &mut Writer,
        number: u64,
        changes: &Changes,
        catalog: Catalog,
    ) -> Arc<Version> {
        let pages = changes
            .written
            .iter()
            .map(|(page, _)| page)
            .chain(&changes.freed);
        writer.chunks.extend(pages.map(|page| page / CHUNK));
        writer.spaces.extend(changes.spaces());
        self.pend(writer, number, changes.freed.iter().copied());
        let version = Arc::new(Version { number, catalog });
        self.versions.lock().add(&version);
        *self.current.write() = version.clone();
        version
    }

    /// Appends the record of `changes` to the log, durably.
    fn log_changes(&self, log: &mut Log, version: u64, changes: &Changes) -> Result<()> {
        log.tidy().map_err(|error| self.latch_unless_full(error))?;
        let logged = log.append(version, &changes.encode());
        match logged.and_then(|end| log.sync(end)) {
            // The record is not whole.
            Err(error) if error.is_full() => Err(error),
            Err(error) => {
                let uncertain = Error::Uncertain {
                    path: log.device().path().to_path_buf(),
                    version,
                    cause: Arc::new(error),
                };
                self.latch(uncertain.clone());
                Err(uncertain)
            }
            Ok(()) => Ok(()),
        }
    }
}
