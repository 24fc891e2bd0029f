//! Arrow streams: batches for other libraries, and from them, by the
//! [C stream interface](https://arrow.apache.org/docs/format/CStreamInterface.html).

use std::ffi::CStr;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::InterfaceError;

/// The name of a capsule with a stream.
const STREAM: &CStr = c"arrow_array_stream";

/// Batches to hand over, each when it is asked for; an error is a text.
pub(crate) type Outgoing = Box<dyn Iterator<Item = Result<RecordBatch, String>> + Send>;

/// A capsule with a stream of `batches`, whose texts are copied: those of a table borrow the pages of the buffer pool,
/// which other libraries would keep for as long as they like.
pub(crate) fn capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: Outgoing,
) -> PyResult<Bound<'py, PyCapsule>> {
    let exported = Exported {
        schema: own_schema(schema),
        batches,
    };
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(exported)), STREAM)
}

struct Exported {
    schema: SchemaRef,
    batches: Outgoing,
}

impl Exported {
    fn own(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        sql::refuse_not_finite(batch).map_err(|e| ArrowError::ComputeError(e.to_string()))?;
        let column = |(array, field): (&ArrayRef, &FieldRef)| cast(array, field.data_type());
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns.map(column).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

impl Iterator for Exported {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = match self.batches.next()? {
            Ok(batch) => self.own(&batch),
            Err(error) => Err(ArrowError::ExternalError(error.into())),
        };
        // The text of an error goes out as one of C.
        let plain = |error: ArrowError| match error.to_string() {
            text if text.contains('\0') => ArrowError::CDataInterface(text.replace('\0', " ")),
            _ => error,
        };
        Some(batch.map_err(plain))
    }
}

impl RecordBatchReader for Exported {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The type as which a column leaves: texts with their own bytes, in place of views.
fn own(data_type: &DataType) -> DataType {
    let item = |field: &FieldRef| Arc::new(own_field(field));
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Dictionary(_, value) => own(value),
        DataType::List(field) => DataType::List(item(field)),
        DataType::LargeList(field) => DataType::LargeList(item(field)),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(item(field), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(item).collect()),
        DataType::Map(entries, sorted) => match entries.data_type() {
            DataType::Struct(parts) => {
                let parts = parts
                    .iter()
                    .map(|part| Arc::new(own_field(part).with_nullable(part.is_nullable())));
                let parts = DataType::Struct(parts.collect());
                let entries = entries.as_ref().clone().with_data_type(parts);
                DataType::Map(Arc::new(entries), *sorted)
            }
            _ => data_type.clone(),
        },
        other => other.clone(),
    }
}

fn own_field(field: &FieldRef) -> Field {
    // In C a name ends at a zero byte.
    let name = field.name().split('\0').next().unwrap_or_default();
    Field::new(name, own(field.data_type()), field.is_nullable())
}

fn own_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter();
    Arc::new(Schema::new(fields.map(own_field).collect::<Vec<_>>()))
}

/// The stream of a capsule, which is taken out of it.
///
/// # Errors
/// [`InterfaceError`] if there is no stream in it, or not any more.
pub(crate) fn taken(capsule: &Bound<'_, PyCapsule>) -> PyResult<FFI_ArrowArrayStream> {
    let wrong = |_| InterfaceError::new_err("the capsule holds no Arrow stream");
    let pointer = capsule.pointer_checked(Some(STREAM)).map_err(wrong)?;
    // SAFETY: a capsule of this name holds a stream, aligned and initialised, which the interpreter, that this thread has,
    // lets nobody else use meanwhile. What stays behind in it is a released one.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) };
    if stream.release.is_none() {
        return Err(InterfaceError::new_err(
            "the Arrow stream was taken out of its capsule already",
        ));
    }
    Ok(stream)
}

/// A reader of a stream; it may wait for the interpreter, which this thread must not hold.
///
/// # Errors
/// If the stream does not say what its columns are.
pub(crate) fn reader(stream: FFI_ArrowArrayStream) -> Result<ArrowArrayStreamReader, ArrowError> {
    if stream.get_schema.is_none() || stream.get_next.is_none() {
        return Err(ArrowError::CDataInterface(
            "the stream has no functions".into(),
        ));
    }
    ArrowArrayStreamReader::try_new(stream)
}
