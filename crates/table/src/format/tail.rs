//! The tail: small inserts, kept in the log and the catalog until they fill a block.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::DataType;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;

use crate::error::Result;
use crate::schema::Definition;

/// A chunk as the catalog keeps it: an Arrow IPC stream of one batch.
pub(crate) fn encode(batch: &RecordBatch) -> Result<Vec<u8>> {
    let batch = &own(batch)?;
    let mut bytes = Vec::with_capacity(batch.get_array_memory_size());
    let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema())?;
    writer.write(batch)?;
    writer.finish()?;
    drop(writer);
    Ok(bytes)
}

/// Texts copied out of the buffers they share, which may be whole pages or files.
fn own(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(|column| -> ArrayRef {
        match column.data_type() {
            DataType::Utf8View => Arc::new(column.as_string_view().gc()),
            DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
            _ => column.clone(),
        }
    });
    Ok(RecordBatch::try_new(batch.schema(), columns.collect())?)
}

/// The batch of a chunk; `None` if it is none of `definition`'s.
pub(crate) fn decode(bytes: &[u8], definition: &Definition) -> Option<RecordBatch> {
    let reader = StreamReader::try_new(bytes, None).ok()?;
    let batches = reader.collect::<std::result::Result<Vec<_>, _>>().ok()?;
    let schema = definition.schema();
    let batch = concat_batches(&batches.first()?.schema(), &batches).ok()?;
    let same = batch
        .schema()
        .fields()
        .iter()
        .map(|f| f.data_type())
        .eq(schema.fields().iter().map(|f| f.data_type()));
    same.then(|| RecordBatch::try_new(schema, batch.columns().to_vec()).ok())?
}
