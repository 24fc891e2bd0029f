//! Record batches that somebody else has made: data frames in memory, and streams of batches that come once. [`columns`]
//! are no batches yet.
//!
//! Values stay where they are: a column is only cast where a table has another type for it, and texts become views of the
//! bytes that hold them.

use std::sync::{Arc, Mutex};

use arrow::array::{
    ArrayRef, ArrowNumericType, AsArray, RecordBatch, RecordBatchOptions, RecordBatchReader,
};
use arrow::compute::{max, min};
use arrow::datatypes::{
    DataType, Date32Type, Int8Type, Int16Type, Int32Type, Int64Type, SchemaRef, UInt8Type,
    UInt16Type, UInt32Type,
};
use arrow::error::ArrowError;

use crate::columns::{self, Columns};
use crate::error::{Error, Result};
use crate::piece::{BATCH_ROWS, Batches, Column, PIECE_ROWS, Piece, Pieces, cast_to, schema_of};
use crate::stream::{Source, failed};

/// What hands over batches, once.
pub type Reader = Box<dyn RecordBatchReader + Send>;

/// Batches as the content of a dataset.
pub(crate) struct BatchSource {
    schema: SchemaRef,
    batches: Held,
}

enum Held {
    /// All of them, to be read any number of times.
    All(Vec<RecordBatch>),
    /// Columns that become batches as they are read, any number of times.
    Lazy(Arc<dyn Columns>),
    /// To be read once.
    Coming(Mutex<Option<Reader>>),
}

impl std::fmt::Debug for BatchSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchSource")
            .field("schema", &self.schema)
            .field("rows", &self.rows())
            .finish_non_exhaustive()
    }
}

impl BatchSource {
    /// Batches of these columns, in memory.
    pub fn held(schema: &SchemaRef, batches: Vec<RecordBatch>) -> BatchSource {
        BatchSource {
            schema: Arc::clone(schema),
            batches: Held::All(batches),
        }
    }

    /// Columns that are to become batches of this schema.
    pub fn lazy(schema: &SchemaRef, columns: Arc<dyn Columns>) -> BatchSource {
        BatchSource {
            schema: Arc::clone(schema),
            batches: Held::Lazy(columns),
        }
    }

    /// Batches that come once.
    pub fn coming(reader: Reader) -> BatchSource {
        BatchSource {
            schema: reader.schema(),
            batches: Held::Coming(Mutex::new(Some(reader))),
        }
    }

    /// The columns, as they came.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many rows there are; none of what comes once.
    pub fn rows(&self) -> Option<u64> {
        match &self.batches {
            Held::All(batches) => {
                let rows = batches.iter().map(RecordBatch::num_rows);
                Some(rows.sum::<usize>() as u64)
            }
            Held::Lazy(columns) => Some(columns.rows() as u64),
            Held::Coming(_) => None,
        }
    }

    /// How many pieces there are, about.
    pub fn parts(&self) -> usize {
        match &self.batches {
            Held::All(batches) => {
                let pieces = |batch: &RecordBatch| batch.num_rows().div_ceil(PIECE_ROWS);
                batches.iter().map(pieces).sum()
            }
            Held::Lazy(columns) => columns::count(&**columns),
            Held::Coming(_) => 1,
        }
    }

    /// Whether a column may have NULLs: true unless it is known that there are none.
    pub fn may_be_null(&self, column: usize) -> bool {
        match &self.batches {
            Held::All(batches) => {
                let mut columns = batches.iter().map(|batch| batch.column(column));
                columns.any(|array| array.logical_null_count() > 0)
            }
            Held::Lazy(columns) => columns.may_be_null(column),
            Held::Coming(_) => true,
        }
    }

    /// Whether drawing pieces with these columns never waits.
    pub fn is_at_hand(&self, wanted: impl Iterator<Item = usize>) -> bool {
        match &self.batches {
            Held::All(_) => true,
            Held::Lazy(columns) => columns::is_at_hand(&**columns, wanted),
            Held::Coming(_) => false,
        }
    }

    /// How many pieces there are, if it numbers them itself and makes only those of its reader's share.
    pub fn numbered(&self) -> Option<u64> {
        match &self.batches {
            Held::Lazy(columns) => Some(columns::count(&**columns) as u64),
            Held::All(_) | Held::Coming(_) => None,
        }
    }

    /// The batches, cut into pieces. `numbers` is the number of the first piece, and the share of the reader.
    pub fn pieces(
        &self,
        source: &Arc<Source>,
        columns: &Arc<[Column]>,
        numbers: (u64, (usize, usize)),
    ) -> Result<Pieces> {
        let batches: Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>> + Send> =
            match &self.batches {
                Held::All(batches) => Box::new(batches.clone().into_iter().map(Ok)),
                Held::Lazy(held) => return Ok(columns::pieces(held, source, columns, numbers)),
                Held::Coming(reader) => {
                    let reader = reader.lock().unwrap_or_else(|e| e.into_inner()).take();
                    let Some(reader) = reader else {
                        let reason = "was read already, and a stream is read only once; make a table of it first";
                        return Err(Error::file(source.path(), reason));
                    };
                    Box::new(reader)
                }
            };
        let (source, columns) = (Arc::clone(source), Arc::clone(columns));
        let pieces = batches.flat_map(move |batch| match batch {
            Ok(batch) => cut(&batch, &source, &columns),
            Err(error) => vec![Err(failed(&source, &error))],
        });
        Ok(Box::new(pieces))
    }
}

/// The pieces of a batch.
fn cut(batch: &RecordBatch, source: &Arc<Source>, columns: &Arc<[Column]>) -> Vec<Result<Piece>> {
    let width = batch.get_array_memory_size() / batch.num_rows().max(1);
    let starts = (0..batch.num_rows()).step_by(PIECE_ROWS);
    let pieces = starts.map(|start| {
        let rows = PIECE_ROWS.min(batch.num_rows() - start);
        let part = batch.slice(start, rows);
        let (source, columns) = (Arc::clone(source), Arc::clone(columns));
        Ok(Piece {
            number: 0,
            rows: Some(rows as u64),
            bytes: (width * rows) as u64,
            read: Box::new(move || Ok(conformed(part, source, columns))),
        })
    });
    pieces.collect()
}

/// The rows of a piece, some at a time, with the columns that are wanted.
fn conformed(piece: RecordBatch, source: Arc<Source>, columns: Arc<[Column]>) -> Batches {
    let schema = schema_of(&columns);
    let starts = (0..piece.num_rows()).step_by(BATCH_ROWS);
    Box::new(starts.map(move |start| {
        let rows = BATCH_ROWS.min(piece.num_rows() - start);
        let column = |column: &Column| {
            let array = piece.column(column.source).slice(start, rows);
            cast_to(&array, column.field.data_type())
        };
        let columns = columns
            .iter()
            .map(column)
            .collect::<std::result::Result<_, _>>();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        columns
            .and_then(|columns| {
                RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)
            })
            .map_err(|error| failed(&source, &error))
    }))
}

/// Whether [`bounds`] knows values of a type.
pub(crate) fn is_whole(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32
    ) || matches!(
        data_type,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32
    )
}

/// The least and the greatest of whole numbers or days; none if all are NULL.
pub(crate) fn bounds(array: &ArrayRef) -> Option<(i64, i64)> {
    fn of<T: ArrowNumericType>(array: &ArrayRef) -> Option<(i64, i64)>
    where
        T::Native: Into<i64>,
    {
        let array = array.as_primitive::<T>();
        Some((min(array)?.into(), max(array)?.into()))
    }
    match array.data_type() {
        DataType::Int8 => of::<Int8Type>(array),
        DataType::Int16 => of::<Int16Type>(array),
        DataType::Int32 => of::<Int32Type>(array),
        DataType::Int64 => of::<Int64Type>(array),
        DataType::UInt8 => of::<UInt8Type>(array),
        DataType::UInt16 => of::<UInt16Type>(array),
        DataType::UInt32 => of::<UInt32Type>(array),
        DataType::Date32 => of::<Date32Type>(array),
        _ => None,
    }
}
