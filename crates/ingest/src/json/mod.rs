//! JSON: an object a row.

mod values;

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::json::ReaderBuilder;
use arrow::json::reader::{Decoder, infer_json_schema_from_iterator};

use self::values::{Broken, Chunk, Chunks};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::piece::{BATCH_ROWS, Batches, Column, Piece, Pieces, cast_to, plain, schema_of};
use crate::stream::{Source, Stream};

/// Bytes of a file that are looked at; more where its first row is longer.
const SAMPLE: usize = 4 << 20;

/// The longest first row that is looked at.
const LONGEST: usize = 1 << 30;

/// A JSON file whose columns are known.
#[derive(Debug)]
pub(crate) struct JsonFile {
    schema: SchemaRef,
    /// Rows that were looked at.
    sampled: usize,
}

impl JsonFile {
    /// Finds the columns in the first rows, `most` at most.
    pub fn open(
        source: &Source,
        mut stream: Stream,
        options: &Options,
        most: usize,
    ) -> Result<JsonFile> {
        let rows = sample(source.path(), &mut stream, most)?;
        let schema = infer_json_schema_from_iterator(rows.iter().map(Ok)).map_err(|error| {
            Error::file(
                source.path(),
                format!("its columns cannot be told: {error}"),
            )
        })?;
        source.keep(stream);
        let fields = schema.fields().iter().map(|field| {
            let data_type = match (options.type_of(field.name()), field.data_type()) {
                (Some(declared), _) => declared.clone(),
                (None, DataType::Null) => DataType::Utf8View,
                (None, inferred) => {
                    let values = rows.iter().filter_map(|row| row.get(field.name()));
                    plain(&exact(inferred, &values.collect::<Vec<_>>()))
                }
            };
            Field::new(field.name(), data_type, true)
        });
        Ok(JsonFile {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            sampled: rows.len(),
        })
    }

    /// The file's columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Its rows in chunks of about `size` bytes, which are read when pieces are drawn.
    pub fn pieces(
        &self,
        source: &Arc<Source>,
        columns: &Arc<[Column]>,
        size: usize,
    ) -> Result<Pieces> {
        let mut chunks = Chunks::new(source.read()?, size);
        let shared = Arc::new(Shared {
            source: Arc::clone(source),
            read: self.read_as(columns),
            columns: Arc::clone(columns),
            schema: schema_of(columns),
            sampled: self.sampled,
        });
        Ok(Box::new(std::iter::from_fn(move || {
            let chunk = chunks
                .cut()
                .map_err(|broken| told(shared.source.path(), broken));
            let shared = Arc::clone(&shared);
            Some(chunk.transpose()?.map(|chunk| Piece {
                number: 0,
                rows: Some(chunk.starts.len() as u64),
                bytes: chunk.text.len() as u64,
                read: Box::new(move || shared.read(chunk)),
            }))
        })))
    }

    /// All columns of the file, with the types that are wanted of them: one that is not known must be told, so all
    /// of them are read.
    fn read_as(&self, columns: &[Column]) -> SchemaRef {
        let mut fields: Vec<Field> = self
            .schema
            .fields()
            .iter()
            .map(|field| field.as_ref().clone())
            .collect();
        for column in columns {
            let wanted = column.field.data_type();
            let alone = Schema::new(vec![Field::new("a", wanted.clone(), true)]);
            let scalar = !fields[column.source].data_type().is_nested();
            if scalar && decoder(Arc::new(alone)).is_ok() {
                fields[column.source].set_data_type(wanted.clone());
            }
        }
        Arc::new(Schema::new(fields))
    }
}

/// The type that was found for values, with decimals for whole numbers that are too great for 64 bits with a sign: as
/// doubles they would lose digits.
fn exact(inferred: &DataType, values: &[&serde_json::Value]) -> DataType {
    match inferred {
        DataType::Float64 => {
            let is_whole = |value: &&serde_json::Value| value.is_i64() || value.is_u64();
            let mut numbers = values.iter().filter(|value| value.is_number());
            if numbers.all(is_whole) {
                DataType::Decimal128(38, 0)
            } else {
                DataType::Float64
            }
        }
        DataType::List(item) => {
            let items = values.iter().filter_map(|value| value.as_array()).flatten();
            let data_type = exact(item.data_type(), &items.collect::<Vec<_>>());
            DataType::List(Arc::new(item.as_ref().clone().with_data_type(data_type)))
        }
        DataType::Struct(fields) => {
            let of = |field: &Arc<Field>| {
                let members = values.iter().filter_map(|value| value.get(field.name()));
                let data_type = exact(field.data_type(), &members.collect::<Vec<_>>());
                field.as_ref().clone().with_data_type(data_type)
            };
            DataType::Struct(fields.iter().map(of).collect())
        }
        other => other.clone(),
    }
}

fn decoder(schema: SchemaRef) -> std::result::Result<Decoder, arrow::error::ArrowError> {
    ReaderBuilder::new(schema)
        .with_batch_size(BATCH_ROWS)
        .with_coerce_primitive(true)
        .with_strict_mode(true)
        .build_decoder()
}

/// The first rows of a file.
fn sample(path: &Path, stream: &mut Stream, most: usize) -> Result<Vec<serde_json::Value>> {
    let mut size = SAMPLE;
    loop {
        let bytes = stream
            .peek(size)
            .map_err(|error| Error::io(path, &error))?
            .to_vec();
        let whole = bytes.len() < size;
        let mut chunks = Chunks::new(Cursor::new(bytes), 1);
        let mut rows = vec![];
        while rows.len() < most {
            match chunks.cut() {
                Ok(Some(chunk)) => {
                    for (row, line) in chunk.rows() {
                        rows.push(parsed(path, row, line)?);
                    }
                }
                Ok(None) => break,
                // The sample ends within a row.
                Err(Broken::Unclosed { .. }) if !whole => break,
                Err(broken) => return Err(told(path, broken)),
            }
        }
        if whole || !rows.is_empty() || size >= LONGEST {
            return Ok(rows);
        }
        size *= 4;
    }
}

fn parsed(path: &Path, row: &[u8], line: u64) -> Result<serde_json::Value> {
    serde_json::from_slice(row).map_err(|error| {
        let at = line + error.line().saturating_sub(1) as u64;
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or_default();
        Error::line(path, at, format!("is no JSON: {what}; correct the file"))
    })
}

fn told(path: &Path, broken: Broken) -> Error {
    match broken {
        Broken::Io(error) => Error::io(path, &error),
        Broken::Unexpected { line, found } => Error::line(
            path,
            line,
            format!(
                "{found:?} where an object should begin: rows are objects, one after the other or in one array"
            ),
        ),
        Broken::Unclosed { line } => Error::line(
            path,
            line,
            "what begins here has no end: a brace, a bracket or a quote is missing, or the file is cut off",
        ),
    }
}

/// What the chunks of a file share.
struct Shared {
    source: Arc<Source>,
    /// The columns as they are decoded.
    read: SchemaRef,
    columns: Arc<[Column]>,
    schema: SchemaRef,
    sampled: usize,
}

impl Shared {
    fn read(self: Arc<Self>, chunk: Chunk) -> Result<Batches> {
        let mut decoder = decoder(Arc::clone(&self.read))
            .map_err(|error| Error::file(self.source.path(), format!("cannot be read: {error}")))?;
        let (mut at, mut rows, mut failed) = (0, 0, false);
        Ok(Box::new(std::iter::from_fn(move || {
            if failed {
                return None;
            }
            let mut step =
                || -> std::result::Result<Option<RecordBatch>, arrow::error::ArrowError> {
                    loop {
                        let used = decoder.decode(&chunk.text[at..])?;
                        at += used;
                        if used == 0 || at == chunk.text.len() {
                            break;
                        }
                    }
                    decoder.flush()
                };
            let batch = step().map_err(|error| self.explain(&chunk, rows, &error.to_string()));
            let conformed = match batch {
                Ok(None) => return None,
                Ok(Some(batch)) => self.conform(&chunk, rows, &batch),
                Err(error) => Err(error),
            };
            failed = conformed.is_err();
            rows += conformed.as_ref().map_or(0, RecordBatch::num_rows);
            Some(conformed)
        })))
    }

    /// The columns that are wanted, of a batch that begins with row `first` of the chunk.
    fn conform(&self, chunk: &Chunk, first: usize, batch: &RecordBatch) -> Result<RecordBatch> {
        let array = |column: &Column| {
            let array = batch.column(column.source);
            let array = cast_to(array, column.field.data_type()).map_err(|error| {
                let alone =
                    |row: &usize| cast_to(&array.slice(*row, 1), column.field.data_type()).is_err();
                let row = (0..array.len()).find(alone).unwrap_or_default();
                self.failure(
                    chunk,
                    first + row,
                    format!("column {:?}: {error}", column.field.name()),
                )
            })?;
            match (0..array.len()).find(|row| !column.field.is_nullable() && array.is_null(*row)) {
                None => Ok(array),
                Some(row) => Err(self.failure(
                    chunk,
                    first + row,
                    format!(
                        "column {:?} must not be null, but has no value here; fill it in",
                        column.field.name()
                    ),
                )),
            }
        };
        let arrays = self.columns.iter().map(array).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|error| self.failure(chunk, first, error.to_string()))
    }

    fn failure(&self, chunk: &Chunk, row: usize, reason: String) -> Error {
        let line = chunk.starts.get(row).map_or(1, |(_, line)| *line);
        Error::line(self.source.path(), line, reason)
    }

    /// Says which row the decoder failed at, by decoding each alone.
    fn explain(&self, chunk: &Chunk, first: usize, error: &str) -> Error {
        for (row, (text, line)) in chunk.rows().enumerate().skip(first) {
            if let Err(error) = parsed(self.source.path(), text, line) {
                return error;
            }
            let alone = decoder(Arc::clone(&self.read)).and_then(|mut decoder| {
                decoder.decode(text)?;
                decoder.flush()
            });
            if let Err(error) = alone {
                let text = error.to_string();
                let what = text.trim_start_matches("Json error: ");
                let hint = if what.contains("missing from schema") {
                    "; it is none of the columns of the first rows"
                } else {
                    ""
                };
                return self.failure(
                    chunk,
                    row,
                    format!(
                        "{what}{hint}, which were found in the first {} rows; correct it, or declare the column's type (--schema for imports, types for queries)",
                        self.sampled
                    ),
                );
            }
        }
        self.failure(
            chunk,
            first,
            format!("at or after this line: {error}; correct the file"),
        )
    }
}
