//! The tail: small inserts, kept in the log and the catalog until they fill a block.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, FieldRef, Schema};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;

use crate::error::Result;
use crate::format::nested::{from_storage, storage, to_storage};
use crate::schema::Definition;

/// A chunk as the catalog keeps it: an Arrow IPC stream of one batch, whose values are as they [lie in
/// pages](crate::format::nested).
pub(crate) fn encode(batch: &RecordBatch) -> Result<Vec<u8>> {
    let batch = &own(&as_stored(batch)?)?;
    let mut bytes = Vec::with_capacity(batch.get_array_memory_size());
    let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema())?;
    writer.write(batch)?;
    writer.finish()?;
    drop(writer);
    Ok(bytes)
}

fn as_stored(batch: &RecordBatch) -> Result<RecordBatch> {
    let of = |field: &FieldRef| match storage(field.data_type()) {
        Some(stored) => Arc::new(field.as_ref().clone().with_data_type(stored)),
        None => field.clone(),
    };
    let schema = batch.schema();
    let fields: Vec<FieldRef> = schema.fields().iter().map(of).collect();
    let columns = batch.columns().iter().map(to_storage);
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
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

/// The number of rows of a chunk, from its header; `None` if that is not what [`encode`] writes.
pub(crate) fn rows(bytes: &[u8]) -> Option<usize> {
    // A stream is two messages, of the schema and of the batch: a mark, a length, and so many bytes.
    let message = |bytes| -> Option<(&[u8], &[u8])> {
        let (mark, rest) = <[u8]>::split_first_chunk::<4>(bytes)?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        (*mark == [0xff; 4]).then(|| rest.split_at_checked(length))?
    };
    let (_, rest) = message(bytes)?;
    let (batch, _) = message(rest)?;
    let header = arrow::ipc::root_as_message(batch).ok()?;
    usize::try_from(header.header_as_record_batch()?.length()).ok()
}

/// The batch of a chunk; `None` if it is none of `definition`'s.
pub(crate) fn decode(bytes: &[u8], definition: &Definition) -> Option<RecordBatch> {
    let reader = StreamReader::try_new(bytes, None).ok()?;
    let batches = reader.collect::<std::result::Result<Vec<_>, _>>().ok()?;
    let schema = definition.schema();
    let batch = concat_batches(&batches.first()?.schema(), &batches).ok()?;
    let mut columns = Vec::with_capacity(batch.num_columns());
    if batch.num_columns() != schema.fields().len() {
        return None;
    }
    for (column, field) in batch.columns().iter().zip(schema.fields()) {
        let wanted = storage(field.data_type());
        if column.data_type() != wanted.as_ref().unwrap_or(field.data_type()) {
            return None;
        }
        columns.push(from_storage(column.clone(), field.data_type())?);
    }
    RecordBatch::try_new(schema, columns).ok()
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, StringViewArray};

    use super::*;

    #[test]
    fn rows_are_counted_without_decoding() {
        for rows in [0, 1, 7, 3_000] {
            let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..rows));
            let texts = (0..rows).map(|n| (n % 3 > 0).then(|| format!("a text of number {n}")));
            let texts: ArrayRef = Arc::new(StringViewArray::from_iter(texts));
            let batch = RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).unwrap();
            let bytes = encode(&batch).unwrap();
            assert_eq!(super::rows(&bytes), Some(rows as usize));
            assert_eq!(super::rows(&bytes[..bytes.len().min(20)]), None);
        }
    }
}
