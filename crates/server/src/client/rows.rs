//! Sends rows, and what they are.

use arrow::datatypes::SchemaRef;

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

    /// Passes up to `limit` rows, or all, without sending them. Returns how many there were.
    pub(crate) fn skip_rows(
        &mut self,
        sending: &mut Sending,
        limit: Option<u64>,
        text: &str,
    ) -> Result<u64, Failed> {
        let (most, mut gone) = (limit.unwrap_or(u64::MAX), 0);
        while gone < most {
            let Some((rows, from)) = sending.batch.take() else {
                self.wanted()?;
                match sending.source.next() {
                    None => break,
                    Some(Err(e)) => return Err(self.reported(&e, text)),
                    // What is passed as a whole need not be written.
                    Some(Ok(batch)) if batch.num_rows() as u64 <= most - gone => {
                        gone += batch.num_rows() as u64;
                    }
                    Some(Ok(batch)) => {
                        sending.batch = Some((sending.encoded(&batch, self.settings.local())?, 0))
                    }
                }
                continue;
            };
            let left = usize::try_from(most - gone).unwrap_or(usize::MAX);
            let to = rows.len().min(from.saturating_add(left));
            gone += (to - from) as u64;
            if to < rows.len() {
                sending.batch = Some((rows, to));
            }
        }
        Ok(gone)
    }

    /// Sends a description of columns, or that there are none.
    pub(crate) fn describe_columns(&mut self, columns: Option<(&SchemaRef, &[bool])>) {
        match columns {
            Some((schema, formats)) => {
                backend::columns(&mut self.channel.out, &described(schema, formats));
            }
            None => backend::bare(&mut self.channel.out, b'n'),
        }
    }
}
