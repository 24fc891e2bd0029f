//! Columns that a file does not have: values of folders' names, and NULL.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringViewArray, UInt32Array,
};
use arrow::compute::take;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;

use crate::error::{Error, Result};
use crate::piece::{Batches, cast_to};
use crate::stream::Source;

/// `rows` times the same value.
pub(crate) fn constant(
    value: Option<&str>,
    data_type: &DataType,
    rows: usize,
) -> std::result::Result<ArrayRef, ArrowError> {
    let text: ArrayRef = Arc::new(StringViewArray::from_iter(std::iter::once(value)));
    let one = match value {
        Some(_) => cast_to(&text, data_type)?,
        None => arrow::array::new_null_array(data_type, 1),
    };
    take(&one, &UInt32Array::from(vec![0; rows]), None)
}

/// Where a column of a batch comes from.
pub(crate) enum Slot {
    /// The column at this place of the file's batch.
    Read(usize),
    /// One value, for all rows.
    Constant(ArrayRef),
    /// The number of the row in the file.
    Row,
}

/// Adds the columns that a file does not have to its batches.
pub(crate) struct Filling {
    pub source: Arc<Source>,
    pub schema: SchemaRef,
    pub slots: Vec<Slot>,
}

impl Filling {
    /// The batches with all columns, the first row of which is this one of the file. After the last batch it is checked
    /// that the file has not changed meanwhile.
    pub fn fill(self: Arc<Self>, mut batches: Batches, first: u64) -> Batches {
        let (mut ended, mut row) = (false, first);
        Box::new(std::iter::from_fn(move || {
            if ended {
                return None;
            }
            let batch = match batches.next() {
                Some(batch) => batch.and_then(|batch| {
                    let first = row;
                    row += batch.num_rows() as u64;
                    self.batch(&batch, first)
                }),
                None => {
                    ended = true;
                    return self.source.check().err().map(Err);
                }
            };
            ended = batch.is_err();
            Some(batch)
        }))
    }

    fn batch(&self, batch: &RecordBatch, first: u64) -> Result<RecordBatch> {
        let read = |(place, slot): (usize, &Slot)| matches!(slot, Slot::Read(at) if *at == place);
        if self.slots.iter().enumerate().all(read) {
            return Ok(batch.clone());
        }
        let rows = batch.num_rows();
        let failed = |error: ArrowError| Error::file(self.source.path(), error.to_string());
        let column = |slot: &Slot| match slot {
            Slot::Read(at) => Ok(Arc::clone(batch.column(*at))),
            Slot::Constant(value) => {
                take(value, &UInt32Array::from(vec![0; rows]), None).map_err(failed)
            }
            Slot::Row => {
                let first = first.cast_signed();
                let numbers = first..first.saturating_add_unsigned(rows as u64);
                Ok(Arc::new(Int64Array::from_iter_values(numbers)) as ArrayRef)
            }
        };
        let columns = self.slots.iter().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(failed)
    }
}
