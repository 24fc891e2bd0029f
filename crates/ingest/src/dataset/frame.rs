//! Batches as a dataset: those of a data frame, or a stream of them.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::batches::{BatchSource, Reader};
use crate::columns::Columns;
use crate::dataset::{Content, Dataset, Member, Origin};
use crate::error::{Error, Result};
use crate::piece::plain;
use crate::stream::Source;

impl Dataset {
    /// Batches in memory, which messages call `name`. Nothing of them is copied.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    ///
    /// let legs: ArrayRef = Arc::new(Int64Array::from(vec![4, 8]));
    /// let batch = RecordBatch::try_from_iter([("legs", legs)])?;
    /// let frame = ingest::Dataset::of_batches("frame", &batch.schema(), vec![batch])?;
    /// assert_eq!(frame.rows(), Some(2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If it has no columns, or two of one name; if a batch has other columns than `schema`.
    pub fn of_batches(
        name: &str,
        schema: &SchemaRef,
        batches: Vec<RecordBatch>,
    ) -> Result<Dataset> {
        let fields = |schema: &Schema| -> Vec<DataType> {
            let fields = schema.fields().iter();
            fields.map(|field| field.data_type().clone()).collect()
        };
        let wanted = fields(schema);
        if batches
            .iter()
            .any(|batch| fields(&batch.schema()) != wanted)
        {
            let reason = "has batches with other columns than it says";
            return Err(Error::file(name.as_ref(), reason));
        }
        let bytes = batches.iter().map(RecordBatch::get_array_memory_size);
        let source = Source::of_batches(name, Some(bytes.sum::<usize>() as u64));
        dataset(source, BatchSource::held(schema, batches))
    }

    /// Columns that become batches of these fields as they are read. Messages call it `name`.
    ///
    /// # Errors
    /// If it has no columns, or two of one name.
    pub fn of_columns(
        name: &str,
        schema: &SchemaRef,
        columns: Arc<dyn Columns>,
    ) -> Result<Dataset> {
        let source = Source::of_batches(name, Some(columns.bytes()));
        dataset(source, BatchSource::lazy(schema, columns))
    }

    /// What hands over batches, once: a second reading fails. Messages call it `name`.
    ///
    /// # Errors
    /// If it has no columns, or two of one name.
    pub fn of_reader(name: &str, reader: Reader) -> Result<Dataset> {
        dataset(Source::of_batches(name, None), BatchSource::coming(reader))
    }
}

fn dataset(source: Source, batches: BatchSource) -> Result<Dataset> {
    let mut fields: Vec<Field> = Vec::new();
    for field in batches.schema().fields() {
        if fields.iter().any(|other| other.name() == field.name()) {
            let reason = format!("has two columns {:?}; rename one of them", field.name());
            return Err(Error::file(source.path(), reason));
        }
        let data_type = match plain(field.data_type()) {
            DataType::Null => DataType::Utf8View,
            known => known,
        };
        fields.push(Field::new(field.name(), data_type, true));
    }
    if fields.is_empty() {
        return Err(Error::file(source.path(), "has no columns"));
    }
    let count = fields.len();
    Ok(Dataset {
        members: vec![Member {
            source: Arc::new(source),
            content: Content::Batches(batches),
            keys: vec![],
            origins: (0..count).map(Origin::File).collect(),
        }],
        schema: Arc::new(Schema::new(fields)),
        guesses: vec![false; count],
        required: vec![false; count],
        named: true,
    })
}
