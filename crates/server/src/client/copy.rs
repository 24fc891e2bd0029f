//! `copy` through the connection.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{Field, Schema};
use arrow::error::ArrowError;
use atoll::{Transfer, TransferFormat};
use sql::Local;

use crate::client::conversation::{Conversation, Failed};
use crate::client::copy_format::Writer;
use crate::client::copy_in::Incoming;
use crate::errors;
use crate::values::row::Rows;
use crate::values::types;
use crate::wire::backend::{self, Report};

impl Conversation {
    /// Runs a `copy` through the connection; what it is called when it is done.
    pub(crate) fn copy(&mut self, transfer: &Transfer, text: &str) -> Result<String, Failed> {
        let rows = if transfer.is_incoming() {
            self.copy_in(transfer, text)?
        } else {
            self.copy_out(transfer, text)?
        };
        Ok(format!("COPY {rows}"))
    }

    fn copy_out(&mut self, transfer: &Transfer, text: &str) -> Result<u64, Failed> {
        let mut rows = self.timed(text, |it| it.session.copy_out(transfer))?;
        let schema = Arc::clone(rows.schema());
        let columns = schema.fields().len();
        let writer = Writer::new(&transfer.format, names(&schema));
        let binary = writer.is_binary();
        backend::copying(&mut self.channel.out, b'H', columns, binary);
        let mut head = writer.head(&schema).unwrap_or_default();
        if !binary && !head.is_empty() {
            backend::copied(&mut self.channel.out, |out| out.append(&mut head));
        }
        let mut sent = 0;
        // Batches are made messages of by the workers, some at a time, and sent in their order.
        let workers = Arc::clone(self.shared.database.workers());
        let local = self.settings.local();
        let most = workers.width() + 1;
        let mut encoding = VecDeque::new();
        let mut ended = false;
        loop {
            self.wanted()?;
            while !ended && encoding.len() < most {
                let Some(batch) = rows.next() else {
                    ended = true;
                    break;
                };
                let batch = batch.map_err(|e| self.reported(&e, text))?;
                for part in parts(&batch) {
                    let count = part.num_rows() as u64;
                    // Drivers read the head of the binary format and the first row from one message, as PostgreSQL sends
                    // them.
                    let head = std::mem::take(&mut head);
                    let format = transfer.format.clone();
                    let task = async move { messages(&part, &format, local, head) };
                    encoding.push_back((count, workers.handle().spawn(task)));
                }
            }
            let Some((count, task)) = encoding.pop_front() else {
                break;
            };
            let lost = |_| Report::error(errors::INTERNAL, "rows could not be written");
            let messages = workers.handle().block_on(task).map_err(lost)?;
            let mut messages = messages.map_err(unwritten)?;
            if self.channel.out.is_empty() {
                self.channel.out = messages;
            } else {
                self.channel.out.append(&mut messages);
            }
            self.send(false)?;
            sent += count;
            self.shared.counts.rows.add(count);
        }
        if let Some(end) = writer.end() {
            backend::copied(&mut self.channel.out, |out| {
                out.append(&mut head);
                out.extend(end);
            });
        }
        backend::bare(&mut self.channel.out, b'c');
        Ok(sent)
    }

    fn copy_in(&mut self, transfer: &Transfer, text: &str) -> Result<u64, Failed> {
        let schema = self.timed(text, |it| it.session.copy_columns(transfer))?;
        let binary = transfer.format == TransferFormat::Binary;
        let bytes = |field: &&Arc<Field>| types::oid(field.data_type()) == types::BYTEA;
        if let Some(field) = schema.fields().iter().find(bytes).filter(|_| binary) {
            // Values go on as texts, which are not made bytes again.
            let message = format!(
                "column \"{}\" is bytea, which `copy from stdin` does not read in binary: insert it with parameters",
                field.name()
            );
            return Err(Report::error(errors::NOT_SUPPORTED, message).into());
        }
        backend::copying(&mut self.channel.out, b'G', schema.fields().len(), binary);
        self.send(true)?;
        self.channel.patient(false)?;
        let session = self.session.clone();
        let mut incoming = Incoming::new(self, &transfer.format, &schema);
        let copied = session.copy_in(transfer, &mut incoming);
        let failed = incoming.failed();
        // What the client may still send of it is not looked at.
        self.channel.patient(true)?;
        match (copied, failed) {
            (_, Some(failed)) => Err(failed),
            (Ok(rows), None) => {
                self.settle(&rows);
                Ok(rows)
            }
            (Err(e), None) => Err(self.reported(&e, text)),
        }
    }
}

fn names(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.fields().iter().map(|field| field.name().as_str())
}

/// Most bytes of rows that are made messages of at once, about.
const PART: usize = 2 << 20;

/// Parts of a batch that are not too large as messages; none of one without rows.
fn parts(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> + '_ {
    let bytes = |column: &ArrayRef| match column.as_string_view_opt() {
        Some(texts) => texts.total_buffer_bytes_used() + 16 * texts.len(),
        None => {
            let data = column.to_data();
            let slice = data.get_slice_memory_size();
            slice.unwrap_or_else(|_| column.get_array_memory_size())
        }
    };
    let bytes: usize = batch.columns().iter().map(bytes).sum();
    let count = bytes.div_ceil(PART).max(1);
    let most = batch.num_rows().div_ceil(count).max(1);
    let starts = (0..batch.num_rows()).step_by(most);
    starts.map(move |from| batch.slice(from, most.min(batch.num_rows() - from)))
}

/// The rows of a batch as messages of a copy. `head` is before the first.
fn messages(
    batch: &RecordBatch,
    format: &TransferFormat,
    local: Local,
    mut head: Vec<u8>,
) -> Result<Vec<u8>, ArrowError> {
    let schema = batch.schema();
    let writer = Writer::new(format, names(&schema));
    let binary = vec![writer.is_binary(); batch.num_columns()];
    let rows = Rows::new(batch, binary)?.of(local);
    let writers = rows.writers()?;
    let mut out = Vec::with_capacity(PART);
    writer.messages(&writers, rows.len(), &mut head, &mut out);
    Ok(out)
}

fn unwritten(e: ArrowError) -> Report {
    Report::error(errors::INTERNAL, e.to_string())
}
