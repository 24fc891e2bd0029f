//! Record batches as messages of Arrow Flight.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::{read_dictionary, read_record_batch};
use arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions, StreamEncoder};
use arrow::ipc::{Message, MessageHeader, root_as_message};
use bytes::{BufMut, Bytes, BytesMut};

use crate::errors;
use crate::flight::messages::FlightData;
use crate::flight::status::{Ended, Status};
use crate::wire::backend::Report;

/// Most bytes of a message that is sent, by the sizes of its columns: clients refuse those above 4 MiB.
const MOST: usize = 2 << 20;

/// Most rows of a batch that a client sends, whatever it says.
const ROWS: usize = 1 << 26;

/// What stands before a message in a stream: a mark, and a length.
const MARK: usize = 8;

/// `field` with texts as all clients read them. Views borrow what they are taken from, which a message cannot: they are
/// copied in any case, and so into the form that every reader of Arrow knows.
fn plain_field(field: &Field) -> Field {
    Field::new(field.name(), plain(field.data_type()), true)
}

fn plain(data_type: &DataType) -> DataType {
    let of = |field: &FieldRef| Arc::new(plain_field(field));
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Dictionary(_, values) => plain(values),
        DataType::List(item) => DataType::List(of(item)),
        DataType::LargeList(item) => DataType::LargeList(of(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(of(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(of).collect()),
        DataType::Map(entries, sorted) => match entries.data_type() {
            DataType::Struct(parts) => {
                let parts = parts
                    .iter()
                    .map(|part| Arc::new(plain_field(part).with_nullable(part.is_nullable())));
                let parts = DataType::Struct(parts.collect());
                let entries = entries.as_ref().clone().with_data_type(parts);
                DataType::Map(Arc::new(entries), *sorted)
            }
            _ => data_type.clone(),
        },
        other => other.clone(),
    }
}

/// The columns as clients are told of them.
pub(crate) fn told(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| plain_field(field));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// `batch` with the columns `told`.
///
/// # Errors
/// If it has others, as it may once tables have changed; if decimals in it are no numbers, which those of Arrow are.
pub(crate) fn conform(batch: &RecordBatch, told: &SchemaRef) -> Result<RecordBatch, Report> {
    if batch.num_columns() != told.fields().len() {
        let message = "the statement has other columns than it had: ask for it again";
        return Err(Report::error(errors::NOT_SUPPORTED, message));
    }
    sql::refuse_not_finite(batch)
        .map_err(|e| Report::error(errors::NOT_SUPPORTED, e.to_string()))?;
    let columns = batch.columns().iter().zip(told.fields());
    let columns = columns.map(|(column, field)| {
        if column.data_type() == field.data_type() {
            return Ok(Arc::clone(column));
        }
        arrow::compute::cast(column, field.data_type())
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    columns
        .collect::<Result<Vec<_>, _>>()
        .and_then(|columns| RecordBatch::try_new_with_options(Arc::clone(told), columns, &options))
        .map_err(unwritten)
}

fn unwritten(e: ArrowError) -> Report {
    Report::error(errors::INTERNAL, e.to_string())
}

/// A schema as it stands in messages: without what a stream puts before it.
fn bare(schema: &Schema) -> Vec<u8> {
    let mut tracker = DictionaryTracker::new(false);
    let options = IpcWriteOptions::default();
    IpcDataGenerator::default()
        .schema_to_bytes_with_dictionary_tracker(schema, &mut tracker, &options)
        .ipc_message
}

/// A schema as it stands in `FlightInfo` and its like: a message of a stream.
pub(crate) fn framed(schema: &Schema) -> Bytes {
    let message = bare(schema);
    let padded = message.len().next_multiple_of(8);
    let mut out = BytesMut::with_capacity(MARK + padded);
    out.put_u32_le(u32::MAX);
    out.put_u32_le(padded as u32);
    out.put_slice(&message);
    out.put_bytes(0, padded - message.len());
    out.freeze()
}

/// The schema that [`framed`] gives.
///
/// # Errors
/// If it is none.
pub(crate) fn unframed(bytes: &Bytes) -> Result<SchemaRef, Ended> {
    let message = bytes.get(MARK..).unwrap_or_default();
    let mut incoming = Batches::default();
    incoming.schema(message)?;
    incoming
        .schema
        .ok_or_else(|| Status::invalid("no schema").into())
}

/// The message with which a stream of such columns begins.
pub(crate) fn schema_message(schema: &Schema) -> Vec<Bytes> {
    message(bare(schema), Vec::new())
}

/// `FlightData` with this header and this body.
fn message(header: Vec<u8>, body: Vec<Bytes>) -> Vec<Bytes> {
    let length: usize = body.iter().map(Bytes::len).sum();
    let mut head = BytesMut::with_capacity(header.len() + 24);
    head.put_u8(2 << 3 | 2);
    prost::encoding::encode_varint(header.len() as u64, &mut head);
    head.put_slice(&header);
    prost::encoding::encode_varint(1000 << 3 | 2, &mut head);
    prost::encoding::encode_varint(length as u64, &mut head);
    let mut pieces = vec![head.freeze()];
    pieces.extend(body);
    pieces
}

/// Makes messages of batches. Columns of numbers are not copied: their buffers are pieces of messages.
pub(crate) struct Encoder(StreamEncoder);

/// A buffer, kept as long as something of it waits to be sent.
struct Owned(Buffer);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Encoder {
    /// # Errors
    /// If the format has not got one of the types.
    pub(crate) fn new(schema: &Schema) -> Result<Encoder, Report> {
        StreamEncoder::try_new(schema)
            .map(Encoder)
            .map_err(unwritten)
    }

    /// The messages of a batch, each in pieces.
    ///
    /// # Errors
    /// If it has other columns than the encoder.
    pub(crate) fn batch(&mut self, batch: &RecordBatch) -> Result<Vec<Vec<Bytes>>, Report> {
        let mut messages = Vec::new();
        for part in parts(batch) {
            let buffers = self.0.encode(&part).map_err(unwritten)?;
            let mut stream = Pieces {
                first: Bytes::new(),
                rest: buffers.into_iter().map(|b| Bytes::from_owner(Owned(b))),
            };
            loop {
                let mark = stream.take(MARK).concat();
                let Some(length) = mark.get(4..MARK) else {
                    break;
                };
                let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
                let header = stream.take(length as usize).concat();
                let (kind, body) = {
                    let header = root_as_message(&header)
                        .map_err(|e| Report::error(errors::INTERNAL, e.to_string()))?;
                    (header.header_type(), header.bodyLength())
                };
                let body = stream.take(usize::try_from(body).unwrap_or(0));
                // The schema has gone before.
                if kind != MessageHeader::Schema {
                    messages.push(message(header, body));
                }
            }
        }
        Ok(messages)
    }
}

/// Parts of a batch that are small enough to be sent.
fn parts(batch: &RecordBatch) -> Vec<RecordBatch> {
    let size = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or(0);
    let bytes: usize = batch.columns().iter().map(size).sum();
    let rows = batch.num_rows();
    if bytes <= MOST || rows <= 1 {
        return vec![batch.clone()];
    }
    // Rows differ in size: each half is looked at for itself.
    let half = rows / 2;
    let mut all = parts(&batch.slice(0, half));
    all.extend(parts(&batch.slice(half, rows - half)));
    all
}

/// A stream of buffers.
struct Pieces<I> {
    /// What is left of one.
    first: Bytes,
    rest: I,
}

impl<I: Iterator<Item = Bytes>> Pieces<I> {
    /// The next `count` bytes, or as many as there are.
    fn take(&mut self, mut count: usize) -> Vec<Bytes> {
        let mut taken = Vec::new();
        while count > 0 {
            if self.first.is_empty() {
                match self.rest.next() {
                    Some(next) => self.first = next,
                    None => break,
                }
                continue;
            }
            let some = self.first.len().min(count);
            taken.push(self.first.split_to(some));
            count -= some;
        }
        taken
    }
}

/// What a client sends, made batches of.
#[derive(Default)]
pub(crate) struct Batches {
    pub schema: Option<SchemaRef>,
    dictionaries: HashMap<i64, ArrayRef>,
}

impl Batches {
    /// Takes a message; returns the batch that it is, if it is one.
    ///
    /// # Errors
    /// If it is no message of Arrow, or does not fit those before it.
    pub(crate) fn take(&mut self, data: &FlightData) -> Result<Option<RecordBatch>, Ended> {
        if data.header.is_empty() {
            return Ok(None);
        }
        let header = checked(&data.header)?;
        let body = Buffer::from(data.body.clone());
        match header.header_type() {
            MessageHeader::Schema => {
                self.schema(&data.header)?;
                Ok(None)
            }
            MessageHeader::DictionaryBatch => {
                let (schema, version) = (self.known()?, header.version());
                let batch = header.header_as_dictionary_batch();
                let batch = batch.ok_or_else(|| invalid("no dictionary"))?;
                let all = &mut self.dictionaries;
                unharmed(|| read_dictionary(&body, batch, &schema, all, &version))?;
                Ok(None)
            }
            MessageHeader::RecordBatch => {
                let (schema, version) = (self.known()?, header.version());
                let batch = header.header_as_record_batch();
                let batch = batch.ok_or_else(|| invalid("no batch"))?;
                let rows = usize::try_from(batch.length()).unwrap_or(usize::MAX);
                if rows > ROWS {
                    return Err(invalid(format!(
                        "a batch of {rows} rows; {ROWS} are the most"
                    )));
                }
                let all = &self.dictionaries;
                let read = || read_record_batch(&body, batch, schema, all, None, &version);
                unharmed(read).map(Some)
            }
            _ => Err(invalid("a message is neither a schema nor a batch")),
        }
    }

    fn schema(&mut self, message: &[u8]) -> Result<(), Ended> {
        let header = checked(message)?;
        let schema = header.header_as_schema();
        let schema = schema.ok_or_else(|| invalid("a message has no schema"))?;
        let schema = unharmed(|| Ok(fb_to_schema(schema)))?;
        self.schema = Some(Arc::new(schema));
        Ok(())
    }

    fn known(&self) -> Result<SchemaRef, Ended> {
        let known = self.schema.clone();
        known.ok_or_else(|| invalid("a batch comes before its schema"))
    }
}

fn invalid(message: impl Into<String>) -> Ended {
    Status::invalid(message).into()
}

fn checked(message: &[u8]) -> Result<Message<'_>, Ended> {
    root_as_message(message).map_err(|e| invalid(format!("a message is none of Arrow: {e}")))
}

/// What `read` reads of bytes that nobody vouches for: where the reader does not expect them, it panics.
fn unharmed<T>(read: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, Ended> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(e)) => Err(invalid(format!("a message cannot be read: {e}"))),
        Err(_) => Err(invalid("a message cannot be read")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        DictionaryArray, Float64Array, Int64Array, ListArray, StringArray, StringViewArray,
    };
    use arrow::datatypes::{Int32Type, Int64Type};
    use prost::Message as _;

    fn sample(rows: usize) -> RecordBatch {
        let texts =
            (0..rows).map(|at| (at % 7 != 0).then(|| format!("a text of some length, {at}")));
        let views: StringViewArray = texts.collect();
        let numbers: Int64Array = (0..rows)
            .map(|at| (at % 3 != 0).then_some(at as i64))
            .collect();
        let floats: Float64Array = (0..rows).map(|at| Some(at as f64 / 3.0)).collect();
        let words: DictionaryArray<Int32Type> =
            (0..rows).map(|at| Some(["reef", "kelp"][at % 2])).collect();
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(
            (0..rows).map(|at| (at % 5 != 0).then(|| (0..at as i64 % 4).map(Some))),
        );
        let columns: [(&str, ArrayRef); 5] = [
            ("v", Arc::new(views)),
            ("n", Arc::new(numbers)),
            ("f", Arc::new(floats)),
            ("d", Arc::new(words)),
            ("l", Arc::new(lists)),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).unwrap()
    }

    fn received(messages: Vec<Vec<Bytes>>) -> Vec<RecordBatch> {
        let mut batches = Batches::default();
        let mut all = Vec::new();
        for message in messages {
            let data = FlightData::decode(Bytes::from(message.concat())).unwrap();
            all.extend(batches.take(&data).unwrap());
        }
        all
    }

    #[test]
    fn what_is_sent_is_received() {
        for rows in [0, 1, 1000, 150_000] {
            let batch = sample(rows);
            let schema = told(&batch.schema());
            assert_eq!(unframed(&framed(&schema)).unwrap(), schema);
            // A part of another batch is sent as what it is, not as what it is a part of.
            let parts = [batch.clone(), batch.slice(rows / 2, rows / 3)];
            let mut encoder = Encoder::new(&schema).unwrap();
            let mut messages = vec![schema_message(&schema)];
            for part in &parts {
                let part = conform(part, &schema).unwrap();
                messages.extend(encoder.batch(&part).unwrap());
            }
            for message in &messages {
                let length: usize = message.iter().map(Bytes::len).sum();
                assert!(length < 4 << 20, "{length}");
            }
            let found = received(messages);
            let found = arrow::compute::concat_batches(&schema, &found).unwrap();
            let wanted: Vec<_> = parts.iter().map(|p| conform(p, &schema).unwrap()).collect();
            assert_eq!(
                found,
                arrow::compute::concat_batches(&schema, &wanted).unwrap()
            );
        }
    }

    #[test]
    fn sparse_views_are_compact_when_they_are_sent() {
        let long = "x".repeat(100_000);
        let texts: StringViewArray = (0..100).map(|_| Some(long.as_str())).collect();
        let batch = RecordBatch::try_from_iter([("t", Arc::new(texts) as ArrayRef)]).unwrap();
        let schema = told(&batch.schema());
        let one = conform(&batch.slice(7, 1), &schema).unwrap();
        let messages = Encoder::new(&schema).unwrap().batch(&one).unwrap();
        let length: usize = messages.iter().flatten().map(Bytes::len).sum();
        assert!(length < 102_000, "{length}");
    }

    #[test]
    fn hostile_messages_are_refused() {
        let batch = conform(&sample(50), &told(&sample(1).schema())).unwrap();
        let schema = batch.schema();
        let schema_message = schema_message(&schema).concat();
        let messages = Encoder::new(&schema).unwrap().batch(&batch).unwrap();
        let message = messages[0].concat();
        let decode = |bytes: &[u8]| FlightData::decode(Bytes::copy_from_slice(bytes));
        // Without its schema.
        let data = decode(&message).unwrap();
        assert!(Batches::default().take(&data).is_err());
        let mut random = fastrand::Rng::with_seed(4);
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        for _ in 0..20_000 {
            let mut bad = [schema_message.clone(), message.clone()];
            let one = random.usize(0..2);
            for _ in 0..random.usize(1..4) {
                let at = random.usize(0..bad[one].len());
                bad[one][at] = random.u8(..);
            }
            bad[1].truncate(random.usize(0..bad[1].len() * 3).min(message.len()));
            let mut batches = Batches::default();
            for bytes in &bad {
                if let Ok(data) = decode(bytes) {
                    let _ = batches.take(&data);
                }
            }
        }
        std::panic::set_hook(hook);
    }

    #[test]
    fn plain_texts_stay_as_they_are() {
        let texts = Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("t", Arc::clone(&texts))]).unwrap();
        let found = conform(&batch, &told(&batch.schema())).unwrap();
        let address = |array: &ArrayRef| array.to_data().buffers()[1].as_ptr();
        assert_eq!(address(found.column(0)), address(&texts));
    }
}
