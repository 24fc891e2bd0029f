//! `copy` through the connection.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringViewBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use atoll::{Transfer, TransferFormat};
use sql::Local;

use crate::client::conversation::{Conversation, Failed};
use crate::client::copy_binary::BinaryReader;
use crate::client::copy_format::Writer;
use crate::client::copy_lines::{Line, Reader};
use crate::errors;
use crate::values::row::Rows;
use crate::values::types;
use crate::wire::backend::{self, Report};
use crate::wire::channel::Broken;
use crate::wire::frontend::{self, Message};

/// Rows of a batch that comes from a client.
const BATCH_ROWS: usize = 8192;

/// Bytes of such a batch, about.
const BATCH_BYTES: usize = 8 << 20;

/// Most bytes of a piece that a client sends.
const PIECE: usize = 64 << 20;

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
        let writer = Writer::new(&transfer.format);
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
        let failed = incoming.failed.take();
        // What the client may still send of it is not looked at.
        self.channel.patient(true)?;
        match (copied, failed) {
            (_, Some(failed)) => Err(failed),
            (Ok(rows), None) => Ok(rows),
            (Err(e), None) => Err(self.reported(&e, text)),
        }
    }
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
    let writer = Writer::new(format);
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

/// What reads the rows of a format.
enum Format {
    Lines(Reader),
    Binary(BinaryReader),
}

impl Format {
    fn next(&mut self, last: bool) -> Result<Line, String> {
        match self {
            Format::Lines(reader) => reader.next(last),
            Format::Binary(reader) => reader.next(last),
        }
    }

    fn push(&mut self, piece: &[u8]) {
        match self {
            Format::Lines(reader) => reader.push(piece),
            Format::Binary(reader) => reader.push(piece),
        }
    }
}

/// Format that a client sends, in batches of texts.
struct Incoming<'c> {
    conversation: &'c mut Conversation,
    reader: Format,
    schema: SchemaRef,
    /// The client has sent all of it, or has given up.
    ended: bool,
    /// All rows that there are were handed on.
    done: bool,
    failed: Option<Failed>,
}

impl<'c> Incoming<'c> {
    fn new(
        conversation: &'c mut Conversation,
        format: &TransferFormat,
        columns: &SchemaRef,
    ) -> Incoming<'c> {
        let fields = columns.fields().iter();
        let fields = fields.map(|field| Field::new(field.name(), DataType::Utf8View, true));
        Incoming {
            conversation,
            reader: match format {
                TransferFormat::Binary => Format::Binary(BinaryReader::new(columns)),
                lines => Format::Lines(Reader::new(lines, columns.fields().len())),
            },
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            ended: false,
            done: false,
            failed: None,
        }
    }

    /// Takes the next message of the copy.
    fn receive(&mut self) -> Result<Option<Vec<u8>>, Failed> {
        loop {
            let client = Arc::clone(self.conversation.client());
            let message =
                self.conversation
                    .channel
                    .message(PIECE, &mut |_| match client.reason() {
                        None => Ok(()),
                        Some(_) => Err(Broken::Stopped),
                    });
            let (kind, body) = match message {
                Ok(message) => message,
                Err(Broken::Stopped) => {
                    self.conversation.wanted()?;
                    continue;
                }
                Err(broken) => return Err(broken.into()),
            };
            match frontend::message(kind, body).map_err(Broken::from)? {
                Message::CopyData(bytes) => return Ok(Some(bytes)),
                Message::CopyDone => {
                    self.ended = true;
                    return Ok(None);
                }
                Message::CopyFail(reason) => {
                    self.ended = true;
                    let message = format!("COPY from stdin failed: {reason}");
                    return Err(Report::error(errors::CANCELLED, message).into());
                }
                Message::Flush | Message::Sync => {}
                _ => {
                    let message = format!("unexpected message type {kind} during COPY from stdin");
                    return Err(Broken::from(frontend::Malformed(message)).into());
                }
            }
        }
    }

    /// Reads rows until a batch is full or there are no more; none if there is not even one.
    fn batch(&mut self) -> Result<Option<RecordBatch>, Failed> {
        let mut columns: Vec<StringViewBuilder> = self
            .schema
            .fields()
            .iter()
            .map(|_| StringViewBuilder::new())
            .collect();
        let (mut count, mut bytes) = (0, 0);
        while count < BATCH_ROWS && bytes < BATCH_BYTES {
            match self.reader.next(self.ended) {
                Ok(Line::Row(fields)) => {
                    for (column, field) in columns.iter_mut().zip(fields) {
                        bytes += 16 + field.as_ref().map_or(0, String::len);
                        column.append_option(field);
                    }
                    count += 1;
                }
                Ok(Line::More) if self.ended => break,
                Ok(Line::More) => {
                    if let Some(piece) = self.receive()? {
                        self.reader.push(&piece);
                    }
                }
                Ok(Line::End) => break,
                Err(message) => return Err(Report::error(errors::BAD_COPY, message).into()),
            }
        }
        if count == 0 {
            return Ok(None);
        }
        let columns = columns
            .iter_mut()
            .map(|column| Arc::new(column.finish()) as ArrayRef);
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns.collect());
        let batch = batch.map_err(|e| Report::error(errors::INTERNAL, e.to_string()))?;
        Ok(Some(batch))
    }
}

impl Iterator for &mut Incoming<'_> {
    type Item = Result<RecordBatch, sql::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        match self.batch() {
            Ok(Some(batch)) => Some(Ok(batch)),
            Ok(None) => {
                self.done = true;
                None
            }
            Err(failed) => {
                self.done = true;
                self.failed = Some(failed);
                // Only that nothing is kept: the client is told why by who failed.
                Some(Err(sql::Error::Cancelled))
            }
        }
    }
}
