//! The rows of `copy` from the client: the thread of the connection receives them and cuts them into parts, the workers read
//! these.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringViewBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use atoll::{HeaderLine, TransferFormat};

use crate::client::conversation::{Conversation, Failed};
use crate::client::copy_binary::{BinaryReader, Line};
use crate::client::copy_columns::Columns;
use crate::client::copy_lines::{Cutter, PART};
use crate::client::copy_rows::{self, Rows, Wrong};
use crate::errors;
use crate::wire::backend::Report;
use crate::wire::channel::{Broken, Growing, Received};
use crate::wire::frontend::{self, Message};

/// Rows of a batch that comes from a client in binary.
const BATCH_ROWS: usize = 8192;

/// Bytes of such a batch, about.
const BATCH_BYTES: usize = 8 << 20;

/// Most bytes of a piece that a client sends.
const PIECE: usize = 64 << 20;

/// Most parts that are read at the same time. One connection brings no more than a few workers read.
const READING: usize = 8;

/// Bytes that are read sooner than a worker wakes.
const FEW: usize = 16 << 10;

/// What a client sends of a copy.
enum Piece {
    Bytes(Vec<u8>),
    /// That was all.
    Done,
    /// It gives up, and says why.
    GivenUp(Box<Report>),
}

/// Takes the next message of a copy.
fn receive(conversation: &mut Conversation) -> Result<Piece, Failed> {
    loop {
        let client = Arc::clone(conversation.client());
        // It has the turn to write.
        conversation.channel.patience = conversation.settings.idle_timeout();
        let message = conversation
            .channel
            .message(PIECE, &mut |_| match client.reason() {
                None => Ok(()),
                Some(_) => Err(Broken::Stopped),
            });
        conversation.channel.patience = None;
        let (kind, body) = match message {
            Ok(Received::Message(kind, body)) => (kind, body),
            Ok(Received::Refused(_, why)) => return Err(Report::error(errors::MEMORY, why).into()),
            Err(Broken::Stopped) => {
                conversation.wanted()?;
                continue;
            }
            Err(Broken::Late) => return Err(conversation.waited()),
            Err(broken) => return Err(broken.into()),
        };
        match frontend::message(kind, body).map_err(Broken::from)? {
            Message::CopyData(bytes) => return Ok(Piece::Bytes(bytes)),
            Message::CopyDone => return Ok(Piece::Done),
            Message::CopyFail(reason) => {
                let message = format!("COPY from stdin failed: {reason}");
                let report = Report::error(errors::CANCELLED, message);
                return Ok(Piece::GivenUp(Box::new(report)));
            }
            Message::Flush | Message::Sync => {}
            _ => {
                let message = format!("unexpected message type {kind} during COPY from stdin");
                return Err(Broken::from(frontend::Malformed(message)).into());
            }
        }
    }
}

/// The error for what there is no memory for.
fn no_memory(why: String) -> Report {
    Report::error(errors::MEMORY, why)
}

/// What a part is found to be.
type Found = Result<Rows, Wrong>;

/// Text or CSV that a client sends.
struct Lines {
    cutter: Cutter,
    format: Arc<TransferFormat>,
    columns: Arc<Columns>,
    /// What the first line holds that was not read yet.
    header: HeaderLine,
    /// Parts that are being read, in their order, and the most that there may be.
    reading: VecDeque<Receiver<Found>>,
    most: usize,
    /// Lines of the parts that were taken.
    taken: u64,
    /// All has come, and why the client has given up, if it has.
    come: bool,
    given_up: Option<Box<Report>>,
    /// All that has come is being read, or was.
    cut: bool,
    /// The line was read behind which nothing more comes.
    ended: bool,
    /// The memory of a line that has not ended.
    memory: Growing,
}

impl Lines {
    fn new(format: &TransferFormat, columns: Columns, (width, memory): (usize, Growing)) -> Lines {
        let header = match format {
            TransferFormat::Text { header, .. } | TransferFormat::Csv { header, .. } => *header,
            _ => HeaderLine::Row,
        };
        Lines {
            cutter: Cutter::new(format, PART),
            format: Arc::new(format.clone()),
            columns: Arc::new(columns),
            header,
            reading: VecDeque::new(),
            most: width.clamp(1, READING) + 1,
            taken: 0,
            come: false,
            given_up: None,
            cut: false,
            ended: false,
            memory,
        }
    }

    /// The rows of the next part that has any; none if there are no more.
    fn rows(&mut self, conversation: &mut Conversation) -> Result<Option<Rows>, Failed> {
        while !self.ended {
            let wait = self.cut || self.reading.len() >= self.most;
            if let Some(rows) = self.take(wait)? {
                self.ended = rows.ended;
                if rows.count > 0 {
                    return Ok(Some(rows));
                }
            } else if self.cut {
                return match self.given_up.take() {
                    Some(report) => Err(Failed::Told(report)),
                    None => Ok(None),
                };
            } else {
                self.more(conversation)?;
            }
        }
        Ok(None)
    }

    /// Takes the first part if it was read; waits for that if it is to. None if it was not, or there is none.
    fn take(&mut self, wait: bool) -> Result<Option<Rows>, Failed> {
        let Some(first) = self.reading.front() else {
            return Ok(None);
        };
        let found = if wait {
            first.recv().ok()
        } else {
            match first.try_recv() {
                Ok(found) => Some(found),
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Disconnected) => None,
            }
        };
        self.reading.pop_front();
        match found {
            Some(Ok(rows)) => {
                self.taken += rows.lines;
                Ok(Some(rows))
            }
            Some(Err(wrong)) => Err(Report::error(errors::BAD_COPY, wrong.told(self.taken)).into()),
            None => Err(Report::error(errors::INTERNAL, "rows could not be read").into()),
        }
    }

    /// Has a part read, or receives more.
    fn more(&mut self, conversation: &mut Conversation) -> Result<(), Failed> {
        if let Some(part) = self.cutter.lines(self.come) {
            self.read(part, conversation);
        } else if self.cutter.is_too_long() {
            // Told when those before it were read.
            let (tell, found) = mpsc::channel();
            let message = "the line is too long".to_string();
            let _ = tell.send(Err(Wrong { line: 0, message }));
            self.reading.push_back(found);
            self.cut = true;
        } else if self.come {
            self.cut = true;
            let rest = self.cutter.rest();
            // Where nothing comes, there are no names either.
            let rest = rest.or_else(|| (self.header == HeaderLine::Match).then(Vec::new));
            let rest = rest.filter(|_| self.given_up.is_none());
            if let Some(rest) = rest {
                self.read(rest, conversation);
            }
        } else {
            conversation.wanted()?;
            match receive(conversation)? {
                Piece::Bytes(bytes) => {
                    let waiting = self.cutter.waiting().saturating_add(bytes.len());
                    self.memory.to(waiting).map_err(no_memory)?;
                    self.cutter.push(&bytes);
                }
                Piece::Done => self.come = true,
                Piece::GivenUp(report) => {
                    self.come = true;
                    self.given_up = Some(report);
                }
            }
        }
        Ok(())
    }

    /// Has a worker read a part, or reads it if that is sooner done.
    fn read(&mut self, part: Vec<u8>, conversation: &Conversation) {
        let (tell, found) = mpsc::channel();
        let (format, columns) = (Arc::clone(&self.format), Arc::clone(&self.columns));
        let header = std::mem::take(&mut self.header);
        self.reading.push_back(found);
        if part.len() <= FEW && self.reading.len() == 1 {
            let _ = tell.send(copy_rows::read(&part, &format, &columns, header));
            return;
        }
        let workers = conversation.shared.database.workers();
        workers.handle().spawn(async move {
            // If nobody wants it any more the copy has failed.
            let _ = tell.send(copy_rows::read(&part, &format, &columns, header));
        });
    }
}

/// Rows in binary that a client sends.
struct BinaryRows {
    reader: BinaryReader,
    /// The client has sent all of it.
    come: bool,
    /// The memory of a row that has not ended.
    memory: Growing,
}

impl BinaryRows {
    /// Reads rows until there are many or no more.
    fn rows(
        &mut self,
        columns: usize,
        conversation: &mut Conversation,
    ) -> Result<Option<Rows>, Failed> {
        let builders = (0..columns).map(|_| StringViewBuilder::new());
        let mut columns: Vec<StringViewBuilder> = builders.collect();
        let (mut count, mut bytes) = (0, 0);
        while count < BATCH_ROWS && bytes < BATCH_BYTES {
            match self.reader.next(self.come) {
                Ok(Line::Row(fields)) => {
                    for (column, field) in columns.iter_mut().zip(fields) {
                        bytes += 16 + field.as_ref().map_or(0, String::len);
                        column.append_option(field);
                    }
                    count += 1;
                }
                Ok(Line::More) if self.come => break,
                Ok(Line::More) => match receive(conversation)? {
                    Piece::Bytes(piece) => {
                        let waiting = self.reader.waiting().saturating_add(piece.len());
                        self.memory.to(waiting).map_err(no_memory)?;
                        self.reader.push(&piece);
                    }
                    Piece::Done => self.come = true,
                    Piece::GivenUp(report) => return Err(Failed::Told(report)),
                },
                Ok(Line::End) => break,
                Err(message) => return Err(Report::error(errors::BAD_COPY, message).into()),
            }
        }
        let columns = columns
            .iter_mut()
            .map(|column| Arc::new(column.finish()) as ArrayRef);
        Ok((count > 0).then(|| Rows {
            columns: columns.collect(),
            count,
            lines: 0,
            ended: false,
        }))
    }
}

/// What reads the rows of a format.
enum Format {
    Lines(Box<Lines>),
    Binary(BinaryRows),
}

/// Rows that a client sends, in batches of texts.
pub(crate) struct Incoming<'c> {
    conversation: &'c mut Conversation,
    format: Format,
    schema: SchemaRef,
    /// All rows that there are were handed on.
    done: bool,
    failed: Option<Failed>,
}

impl<'c> Incoming<'c> {
    /// Rows of these columns.
    pub(crate) fn new(
        conversation: &'c mut Conversation,
        format: &TransferFormat,
        columns: &SchemaRef,
    ) -> Incoming<'c> {
        let fields = columns.fields().iter();
        let fields = fields.map(|field| Field::new(field.name(), DataType::Utf8View, true));
        let width = conversation.shared.database.workers().width();
        let memory = conversation.channel.growing();
        Incoming {
            conversation,
            format: match format {
                TransferFormat::Binary => Format::Binary(BinaryRows {
                    reader: BinaryReader::new(columns),
                    come: false,
                    memory,
                }),
                lines => {
                    let names = columns.fields().iter();
                    let names = names.map(|field| field.name().clone()).collect();
                    let lines = Lines::new(lines, Columns::new(names, lines), (width, memory));
                    Format::Lines(Box::new(lines))
                }
            },
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            done: false,
            failed: None,
        }
    }

    /// Why there are no more rows, if there should be.
    pub(crate) fn failed(&mut self) -> Option<Failed> {
        self.failed.take()
    }

    /// The next rows; none if there are no more.
    fn batch(&mut self) -> Result<Option<RecordBatch>, Failed> {
        let rows = match &mut self.format {
            Format::Lines(lines) => lines.rows(self.conversation)?,
            Format::Binary(binary) => binary.rows(self.schema.fields().len(), self.conversation)?,
        };
        let Some(rows) = rows else {
            return Ok(None);
        };
        let options = RecordBatchOptions::new().with_row_count(Some(rows.count));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, rows.columns, &options);
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
