//! Sends rows, and what they are.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use sql::Origins;

use crate::client::conversation::{Conversation, Failed};
use crate::client::sending::{Sending, described, unwritten};
use crate::wire::backend;

impl Conversation {
    /// Sends up to `limit` rows, or all. True if there are no more.
    pub(crate) fn rows(
        &mut self,
        sending: &mut Sending,
        limit: Option<u64>,
        text: &str,
    ) -> Result<bool, Failed> {
        let mut left = limit.unwrap_or(u64::MAX);
        loop {
            if left == 0 {
                return Ok(false);
            }
            let Some((rows, from)) = sending.batch.take() else {
                self.wanted()?;
                match sending.source.next() {
                    None => return Ok(true),
                    Some(Err(e)) => return Err(self.reported(&e, text)),
                    Some(Ok(batch)) => {
                        sending.batch = Some((sending.encoded(&batch, self.settings.local())?, 0))
                    }
                }
                continue;
            };
            let to = rows
                .len()
                .min(from.saturating_add(usize::try_from(left).unwrap_or(usize::MAX)));
            let writers = rows.writers().map_err(unwritten)?;
            for at in from..to {
                writers.row(at, &mut self.channel.out);
                self.send(false)?;
            }
            drop(writers);
            let written = (to - from) as u64;
            self.shared.counts.rows.add(written);
            sending.sent += written;
            left -= written;
            if to < rows.len() {
                sending.batch = Some((rows, to));
            }
        }
    }

    /// Sends these rows, the last one first if they are sent backwards.
    pub(crate) fn kept_rows(
        &mut self,
        sending: &mut Sending,
        batch: &RecordBatch,
        backwards: bool,
    ) -> Result<(), Failed> {
        let rows = sending.encoded(batch, self.settings.local())?;
        let writers = rows.writers().map_err(unwritten)?;
        for at in 0..rows.len() {
            let at = if backwards { rows.len() - 1 - at } else { at };
            writers.row(at, &mut self.channel.out);
            self.send(false)?;
        }
        let written = rows.len() as u64;
        self.shared.counts.rows.add(written);
        sending.sent += written;
        Ok(())
    }

    /// Sends a description of columns, or that there are none.
    pub(crate) fn describe_columns(&mut self, columns: Option<(&SchemaRef, &Origins, &[bool])>) {
        match columns {
            Some((schema, origins, formats)) => {
                let columns = described(schema, origins, formats);
                backend::columns(&mut self.channel.out, &columns);
            }
            None => backend::bare(&mut self.channel.out, b'n'),
        }
    }
}
