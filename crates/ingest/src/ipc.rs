//! Arrow IPC files and streams: each record batch is a piece.

use std::io::{BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::{FileReader, StreamReader};

use crate::error::{Error, Result, panicked};
use crate::piece::{BATCH_ROWS, Batches, Column, Piece, Pieces, cast_to, schema_of};
use crate::stream::{Source, Stream};

const MAGIC: &[u8] = b"ARROW1";

type Read1 = Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>> + Send>;

/// An Arrow file or stream whose schema has been read.
#[derive(Debug)]
pub(crate) struct IpcFile {
    schema: SchemaRef,
    /// The file format, which is read at any place; otherwise a stream.
    file: bool,
}

impl IpcFile {
    /// Reads the schema.
    pub fn open(source: &Source, mut stream: Stream) -> Result<IpcFile> {
        let head = stream
            .peek(MAGIC.len())
            .map_err(|error| Error::io(source.path(), &error))?;
        let file = head.starts_with(MAGIC);
        if source.is_once() && !file {
            // The schema stands at the beginning of a stream: looked at, it stays there.
            let schema = stream_schema(source, &mut stream)?;
            source.keep(stream);
            return Ok(IpcFile { schema, file });
        }
        if source.is_once() {
            return Err(Error::file(
                source.path(),
                "is an Arrow file, which is read from its end, and cannot come through a pipe; write it to a file, or send an Arrow stream",
            ));
        }
        let (schema, _) = reader(source, file)?;
        Ok(IpcFile { schema, file })
    }

    /// The file's columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The record batches. Reading one is a copy, so they are read in turn when they are drawn, and only cast
    /// when they are decoded.
    pub fn pieces(&self, source: &Arc<Source>, columns: &Arc<[Column]>) -> Result<Pieces> {
        let (_, mut batches) = reader(source, self.file)?;
        let (source, columns) = (Arc::clone(source), Arc::clone(columns));
        let schema = schema_of(&columns);
        let mut failed = false;
        Ok(Box::new(std::iter::from_fn(move || {
            if failed {
                return None;
            }
            let next = catch_unwind(AssertUnwindSafe(|| batches.next()));
            let batch = match next {
                Ok(None) => return None,
                Ok(Some(batch)) => batch.map_err(|error| damaged(&source, &error.to_string())),
                Err(panic) => Err(damaged(&source, &panicked(panic.as_ref()))),
            };
            failed = batch.is_err();
            Some(batch.map(|batch| {
                let of = (
                    Arc::clone(&source),
                    Arc::clone(&columns),
                    Arc::clone(&schema),
                );
                Piece {
                    number: 0,
                    rows: Some(batch.num_rows() as u64),
                    bytes: batch.get_array_memory_size() as u64,
                    read: Box::new(move || Ok(conformed(batch, of.0, of.1, of.2))),
                }
            }))
        })))
    }
}

/// The rows of a batch, some at a time, with the columns that are wanted.
fn conformed(
    batch: RecordBatch,
    source: Arc<Source>,
    columns: Arc<[Column]>,
    schema: SchemaRef,
) -> Batches {
    let starts = (0..batch.num_rows()).step_by(BATCH_ROWS);
    Box::new(starts.map(move |start| {
        let rows = BATCH_ROWS.min(batch.num_rows() - start);
        let array = |column: &Column| {
            let array = batch.column(column.source).slice(start, rows);
            let array = catch_unwind(AssertUnwindSafe(|| {
                cast_to(&array, column.field.data_type())
            }));
            match array {
                Ok(array) => array.map_err(|error| damaged(&source, &error.to_string())),
                Err(panic) => Err(damaged(&source, &panicked(panic.as_ref()))),
            }
        };
        let arrays = columns.iter().map(array).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)
            .map_err(|error| damaged(&source, &error.to_string()))
    }))
}

fn reader(source: &Source, file: bool) -> Result<(SchemaRef, Read1)> {
    let open = || -> std::result::Result<(SchemaRef, Read1), ReadError> {
        if file {
            let file = BufReader::with_capacity(1 << 20, source.random(None)?);
            let reader = FileReader::try_new(file, None)?;
            return Ok((reader.schema(), Box::new(reader)));
        }
        let reader =
            StreamReader::try_new(BufReader::with_capacity(1 << 20, source.read()?), None)?;
        Ok((reader.schema(), Box::new(reader)))
    };
    match catch_unwind(AssertUnwindSafe(open)) {
        Ok(Ok(opened)) => Ok(opened),
        Ok(Err(ReadError::Ours(error))) => Err(error),
        Ok(Err(ReadError::Arrow(error))) => Err(damaged(source, &error.to_string())),
        Err(panic) => Err(damaged(source, &panicked(panic.as_ref()))),
    }
}

enum ReadError {
    Ours(Error),
    Arrow(ArrowError),
}

impl From<Error> for ReadError {
    fn from(error: Error) -> ReadError {
        ReadError::Ours(error)
    }
}

impl From<ArrowError> for ReadError {
    fn from(error: ArrowError) -> ReadError {
        ReadError::Arrow(error)
    }
}

/// The schema of a stream that is read once, which stays at its beginning.
fn stream_schema(source: &Source, stream: &mut Stream) -> Result<SchemaRef> {
    let failed = |error: std::io::Error| Error::io(source.path(), &error);
    // A marker, the length of the message, the message.
    let prefix = stream.peek(8).map_err(failed)?;
    let length = prefix
        .get(4..8)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u32::from_le_bytes);
    if length > 1 << 28 {
        return Err(damaged(source, "its schema is longer than 256 MiB"));
    }
    let head = stream.peek(8 + length as usize).map_err(failed)?;
    let head = head.chain(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0][..]);
    let schema = catch_unwind(AssertUnwindSafe(|| {
        StreamReader::try_new(head, None).map(|reader| reader.schema())
    }));
    match schema {
        Ok(schema) => schema.map_err(|error| damaged(source, &error.to_string())),
        Err(panic) => Err(damaged(source, &panicked(panic.as_ref()))),
    }
}

fn damaged(source: &Source, error: &str) -> Error {
    if let Err(changed) = source.check() {
        return changed;
    }
    let reason = if error.contains("ipc_compression") {
        "has compressed buffers, which are not read; write it without compression, or as Parquet"
            .to_owned()
    } else {
        format!("is no readable Arrow IPC file ({error}); check the path or write the file again")
    };
    Error::file(source.path(), reason)
}
