//! The tail: small inserts, kept in the log and the catalog until they fill a block.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt64Array};
use arrow::compute::{concat, concat_batches, filter, filter_record_batch};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, UInt64Type};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;

use crate::error::Result;
use crate::format::nested::{from_storage, storage, to_storage};
use crate::format::row_id::{ROW_COLUMN, RowId};
use crate::schema::Definition;

/// A chunk of the tail.
///
/// The numbers of a tail's chunks are never given again, and its chunks are in the order in which their rows came: a chunk that
/// several became has the number of the last. So the row of an id is in the first chunk whose number is not less than that in
/// the id, if it is still there.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub rows: RecordBatch,
    /// The ids of the rows, ascending. Absent as long as all lie where they were inserted.
    ids: Option<UInt64Array>,
}

impl Chunk {
    /// Rows as they are inserted.
    pub(crate) fn new(rows: RecordBatch) -> Chunk {
        Chunk { rows, ids: None }
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// The ids of its rows, where its number is `number`.
    pub(crate) fn ids(&self, number: u32) -> UInt64Array {
        let inserted = || {
            let first = RowId::Tail {
                key: number,
                row: 0,
            };
            let first = first.number();
            UInt64Array::from_iter_values(first..first + self.len() as u64)
        };
        self.ids.clone().unwrap_or_else(inserted)
    }

    /// The id of the row that lies at a position, where the chunk's number is `number`.
    ///
    /// # Panics
    /// If it has no such row.
    pub(crate) fn id(&self, number: u32, row: u16) -> u64 {
        match &self.ids {
            Some(ids) => ids.value(row.into()),
            None => RowId::Tail { key: number, row }.number(),
        }
    }

    /// The position of the row of an id, if it has it and its own number is `number`.
    pub(crate) fn position(&self, number: u32, id: u64) -> Option<u16> {
        let position = match (&self.ids, RowId::of(id)) {
            (Some(ids), _) => ids.values().binary_search(&id).ok()?,
            (None, RowId::Tail { key, row }) if key == number => row.into(),
            _ => return None,
        };
        (position < self.len()).then_some(position as u16)
    }

    /// The rows at some of its positions, where its number is `number`.
    ///
    /// # Errors
    /// Those of Arrow.
    pub(crate) fn kept(&self, number: u32, keep: &BooleanArray) -> Result<Chunk> {
        let ids = filter(&self.ids(number), keep)?;
        Ok(Chunk {
            rows: filter_record_batch(&self.rows, keep)?,
            ids: Some(ids.as_primitive().clone()),
        })
    }

    /// The same rows with other columns.
    pub(crate) fn with_rows(self, rows: RecordBatch) -> Chunk {
        Chunk { rows, ..self }
    }

    /// The chunk that several become, which come with their numbers and follow each other.
    ///
    /// # Errors
    /// Those of Arrow.
    pub(crate) fn merged(chunks: &[(u32, Chunk)], definition: &Definition) -> Result<Chunk> {
        let ids: Vec<UInt64Array> = chunks
            .iter()
            .map(|(number, chunk)| chunk.ids(*number))
            .collect();
        let ids: Vec<&dyn Array> = ids.iter().map(|ids| ids as &dyn Array).collect();
        let rows = chunks.iter().map(|(_, chunk)| &chunk.rows);
        Ok(Chunk {
            rows: concat_batches(&definition.schema(), rows)?,
            ids: Some(concat(&ids)?.as_primitive().clone()),
        })
    }
}

/// A chunk as the catalog keeps it: an Arrow IPC stream of one batch, whose values are as they [lie in
/// pages](crate::format::nested). The ids follow the columns, where the chunk has any.
pub(crate) fn encode(chunk: &Chunk) -> Result<Vec<u8>> {
    let batch = &with_ids(own(&as_stored(&chunk.rows)?)?, chunk.ids.as_ref())?;
    let mut bytes = Vec::with_capacity(batch.get_array_memory_size());
    let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema())?;
    writer.write(batch)?;
    writer.finish()?;
    drop(writer);
    Ok(bytes)
}

fn with_ids(batch: RecordBatch, ids: Option<&UInt64Array>) -> Result<RecordBatch> {
    let Some(ids) = ids else { return Ok(batch) };
    let schema = batch.schema();
    let field = Arc::new(Field::new(ROW_COLUMN, DataType::UInt64, false));
    let fields: Vec<FieldRef> = schema.fields().iter().cloned().chain([field]).collect();
    let mut columns = batch.columns().to_vec();
    columns.push(Arc::new(ids.clone()));
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
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

/// A chunk; `None` if it is none of `definition`'s.
pub(crate) fn decode(bytes: &[u8], definition: &Definition) -> Option<Chunk> {
    let reader = StreamReader::try_new(bytes, None).ok()?;
    let batches = reader.collect::<std::result::Result<Vec<_>, _>>().ok()?;
    let schema = definition.schema();
    let batch = concat_batches(&batches.first()?.schema(), &batches).ok()?;
    let (columns, rest) = batch.columns().split_at_checked(schema.fields().len())?;
    let ids = match rest {
        [] => None,
        [ids] => Some(decode_ids(ids)?),
        _ => return None,
    };
    let columns = columns.iter().zip(schema.fields()).map(|(column, field)| {
        let wanted = storage(field.data_type());
        let is_wanted = column.data_type() == wanted.as_ref().unwrap_or(field.data_type());
        is_wanted.then(|| from_storage(column.clone(), field.data_type()))?
    });
    let rows = RecordBatch::try_new(schema.clone(), columns.collect::<Option<_>>()?).ok()?;
    Some(Chunk { rows, ids })
}

fn decode_ids(column: &ArrayRef) -> Option<UInt64Array> {
    let ids = column.as_primitive_opt::<UInt64Type>()?;
    let ascends = ids.values().is_sorted_by(|a, b| a < b);
    (ascends && ids.null_count() == 0).then(|| ids.clone())
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
            let bytes = encode(&Chunk::new(batch)).unwrap();
            assert_eq!(super::rows(&bytes), Some(rows as usize));
            assert_eq!(super::rows(&bytes[..bytes.len().min(20)]), None);
        }
    }
}
