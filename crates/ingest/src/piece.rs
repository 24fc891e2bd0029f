//! Parts of files that are decoded by themselves, and the columns they are decoded to.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;

use crate::error::Result;
use crate::options::NullRule;

/// Rows decoded at a time: what is decoded stays in the cache until it is worked on.
pub(crate) const BATCH_ROWS: usize = 8192;

/// Rows of a piece of what is in memory: enough to be worth a task, few enough that all workers get some.
pub(crate) const PIECE_ROWS: usize = 65_536;

/// The batches of one piece, in order.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// The pieces of a file or of several, in order. Drawing one may read from the file, and wait for it.
pub type Pieces = Box<dyn Iterator<Item = Result<Piece>> + Send>;

/// A part of a file that is decoded by itself: a row group, a stretch of lines.
pub struct Piece {
    /// Its place in the order of the pieces.
    pub number: u64,
    /// Its rows, where that is known before it is decoded. A piece of unknown length has some MiB.
    pub rows: Option<u64>,
    /// Bytes of the uncompressed file that it stands for.
    pub bytes: u64,
    /// Decodes it. It computes only, unless it was drawn from a file that is read as it is decoded.
    pub read: Box<dyn FnOnce() -> Result<Batches> + Send>,
}

impl std::fmt::Debug for Piece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Piece")
            .field("number", &self.number)
            .field("rows", &self.rows)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// A column that is to be decoded.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Its place in the file.
    pub source: usize,
    /// Its name, type and whether it may be NULL, as they are to be delivered.
    pub field: FieldRef,
    /// Its type is inferred: values that would lose something in this type are refused.
    pub strict: bool,
    /// Which of its fields are NULL, in text.
    pub nulls: NullRule,
}

/// The schema of batches of these columns.
pub(crate) fn schema_of(columns: &[Column]) -> SchemaRef {
    let fields: Fields = columns
        .iter()
        .map(|column| Arc::clone(&column.field))
        .collect();
    Arc::new(Schema::new(fields))
}

/// `array` as another type; a value that does not fit fails.
pub(crate) fn cast_to(
    array: &ArrayRef,
    data_type: &DataType,
) -> std::result::Result<ArrayRef, ArrowError> {
    if array.data_type() == data_type {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(array, data_type, &options)
}

/// The type as which a file's column is delivered: texts as views, however the file has them, also within arrays and
/// structs.
pub(crate) fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Dictionary(_, values) => plain(values),
        DataType::RunEndEncoded(_, values) => plain(values.data_type()),
        DataType::Struct(fields) => {
            let of = |field: &FieldRef| Field::new(field.name(), part(field), true);
            DataType::Struct(fields.iter().map(of).collect())
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => {
            DataType::List(Arc::new(Field::new_list_field(part(item), true)))
        }
        DataType::Map(entries, sorted) => match entries.data_type() {
            DataType::Struct(parts) => {
                let of =
                    |field: &FieldRef| Field::new(field.name(), part(field), field.is_nullable());
                let parts = DataType::Struct(parts.iter().map(of).collect());
                let entries = entries.as_ref().clone().with_data_type(parts);
                DataType::Map(Arc::new(entries), *sorted)
            }
            _ => data_type.clone(),
        },
        other => other.clone(),
    }
}

/// The type of what stands in an array or a struct. There is no value without a type there: it is a text that is NULL.
fn part(field: &FieldRef) -> DataType {
    match plain(field.data_type()) {
        DataType::Null => DataType::Utf8View,
        known => known,
    }
}
