//! JSON: an object a row.
//!
//! Numbers are read as the texts they are, so that no digit of them is lost on the way to their type. A column whose
//! values no other type holds is JSON: each value is then the text that it is in the file.

mod shape;
mod tokens;
mod values;

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::json::ReaderBuilder;
use arrow::json::reader::Decoder;
use serde::de::IgnoredAny;
use table::json_kind;

use self::shape::{OutOfRange, Shape};
use self::tokens::{Kind, Tokens};
use self::values::{Broken, Chunk, Chunks};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::piece::{BATCH_ROWS, Batches, Column, Piece, Pieces, schema_of};
use crate::stream::{Source, Stream};
use crate::texts::converted;

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
        let (shape, sampled) = sample(source.path(), &mut stream, most)?;
        source.keep(stream);
        let fields = shape.columns().map(|(name, found)| {
            let data_type = options.type_of(name).cloned().unwrap_or(found);
            Field::new(name, data_type, true)
        });
        Ok(JsonFile {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            sampled,
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
        let (read, raw) = self.read_as(columns);
        let shared = Arc::new(Shared {
            source: Arc::clone(source),
            read,
            raw,
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

    /// All columns of the file as they are decoded, and the names of those that stay JSON: one that is not known must be
    /// told, so all of them are read.
    fn read_as(&self, columns: &[Column]) -> (SchemaRef, Vec<String>) {
        let mut raw = vec![];
        let fields = self.schema.fields().iter().enumerate().map(|(at, field)| {
            let own = field.data_type();
            let wanted = columns.iter().filter(|column| column.source == at);
            let whole = |column: &Column| match column.field.data_type() {
                DataType::Utf8View => own.is_nested(),
                wanted => json_kind(wanted).is_some() && own.is_nested(),
            };
            if json_kind(own).is_some() || wanted.clone().any(whole) {
                raw.push(field.name().clone());
                return Field::new(field.name(), DataType::Utf8View, true);
            }
            let wanted = wanted.map(|column| column.field.data_type());
            // Arrays and structs are decoded as the file has them.
            let data_type =
                wanted.fold(own, |_, wanted| if own.is_nested() { own } else { wanted });
            Field::new(field.name(), as_texts(data_type), true)
        });
        let fields: Vec<Field> = fields.collect();
        (Arc::new(Schema::new(fields)), raw)
    }
}

/// A type with texts for all that is within it.
fn as_texts(data_type: &DataType) -> DataType {
    let within = |field: &FieldRef| {
        let data_type = as_texts(field.data_type());
        Field::new(field.name(), data_type, true)
    };
    match data_type {
        DataType::List(item) => DataType::List(Arc::new(within(item))),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(within).collect()),
        DataType::Map(..) => data_type.clone(),
        _ => DataType::Utf8View,
    }
}

fn decoder(schema: SchemaRef) -> std::result::Result<Decoder, arrow::error::ArrowError> {
    ReaderBuilder::new(schema)
        .with_batch_size(BATCH_ROWS)
        .with_coerce_primitive(true)
        .with_strict_mode(true)
        .build_decoder()
}

/// What the first rows of a file have, and how many of them were looked at.
fn sample(path: &Path, stream: &mut Stream, most: usize) -> Result<(Shape, usize)> {
    let mut size = SAMPLE;
    loop {
        let bytes = stream
            .peek(size)
            .map_err(|error| Error::io(path, &error))?
            .to_vec();
        let whole = bytes.len() < size;
        let mut chunks = Chunks::new(Cursor::new(bytes), 1);
        let (mut shape, mut rows) = (Shape::default(), 0);
        while rows < most {
            match chunks.cut() {
                Ok(Some(chunk)) => {
                    for (row, line) in chunk.rows() {
                        check(path, row, line)?;
                        shape
                            .add(&mut Tokens::new(row))
                            .map_err(|OutOfRange(number)| {
                                let reason = format!(
                                    "{number} is out of the range of numbers; write it as a string"
                                );
                                Error::line(path, line, reason)
                            })?;
                        rows += 1;
                    }
                }
                Ok(None) => break,
                // The sample ends within a row.
                Err(Broken::Unclosed { .. }) if !whole => break,
                Err(broken) => return Err(told(path, broken)),
            }
        }
        if whole || rows > 0 || size >= LONGEST {
            return Ok((shape, rows));
        }
        size *= 4;
    }
}

/// That a row is JSON.
fn check(path: &Path, row: &[u8], line: u64) -> Result<()> {
    let checked = serde_json::from_slice::<IgnoredAny>(row).map(|_| ());
    checked.map_err(|error| {
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
    /// The names of those whose values stay as they are written.
    raw: Vec<String>,
    columns: Arc<[Column]>,
    schema: SchemaRef,
    sampled: usize,
}

impl Shared {
    fn read(self: Arc<Self>, chunk: Chunk) -> Result<Batches> {
        for (row, line) in chunk.rows() {
            check(self.source.path(), row, line)?;
        }
        let chunk = if self.raw.is_empty() {
            chunk
        } else {
            self.quoted(&chunk)
        };
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

    /// The rows of a chunk with strings for the values that stay as they are written.
    fn quoted(&self, chunk: &Chunk) -> Chunk {
        let mut quoted = Chunk::default();
        for (row, line) in chunk.rows() {
            quoted.starts.push((quoted.text.len(), line));
            let mut tokens = Tokens::new(row);
            let mut copied = 0;
            tokens.enter();
            while tokens.more() {
                let name = tokens.name();
                let kind = tokens.kind();
                let from = tokens.at();
                let value = tokens.value();
                if kind == Kind::Null || !self.raw.contains(&name) {
                    continue;
                }
                // What is no UTF-8 is told by who decodes it.
                let Ok(text) = std::str::from_utf8(value) else {
                    continue;
                };
                let string = serde_json::Value::from(text).to_string();
                quoted.text.extend_from_slice(&row[copied..from]);
                quoted.text.extend_from_slice(string.as_bytes());
                copied = tokens.at();
            }
            quoted.text.extend_from_slice(&row[copied..]);
        }
        quoted
    }

    /// The columns that are wanted, of a batch that begins with row `first` of the chunk.
    fn conform(&self, chunk: &Chunk, first: usize, batch: &RecordBatch) -> Result<RecordBatch> {
        let array = |column: &Column| {
            let array = batch.column(column.source);
            let (wanted, strict) = (column.field.data_type(), column.strict);
            let array = converted(array, wanted, strict).map_err(|error| {
                let alone = |row: &usize| converted(&array.slice(*row, 1), wanted, strict).err();
                let found = (0..array.len()).find_map(|row| Some((row, alone(&row)?)));
                let (row, error) = found.unwrap_or((0, error));
                let text = error.to_string();
                let what = text.trim_start_matches("Cast error: ");
                let name = column.field.name();
                self.failure(
                    chunk,
                    first + row,
                    self.advised(&format!("column {name:?}: {what}")),
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

    /// What is wrong with a value, and what to do.
    fn advised(&self, what: &str) -> String {
        format!(
            "{what}, as far as the first {} rows tell; correct it, or declare the column's type (--schema for imports, types for queries)",
            self.sampled
        )
    }

    fn failure(&self, chunk: &Chunk, row: usize, reason: String) -> Error {
        let line = chunk.starts.get(row).map_or(1, |(_, line)| *line);
        Error::line(self.source.path(), line, reason)
    }

    /// Says which row the decoder failed at, by decoding each alone.
    fn explain(&self, chunk: &Chunk, first: usize, error: &str) -> Error {
        for (row, (text, line)) in chunk.rows().enumerate().skip(first) {
            if let Err(error) = check(self.source.path(), text, line) {
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
                return self.failure(chunk, row, self.advised(&format!("{what}{hint}")));
            }
        }
        self.failure(
            chunk,
            first,
            format!("at or after this line: {error}; correct the file"),
        )
    }
}
