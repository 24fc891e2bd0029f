//! The tail: small inserts, kept in the log and the catalog until they fill a block.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::DataType;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;

use crate::error::Result;
use crate::schema::Definition;

/// Rows from which an insert goes to blocks at once, and at which the tail is sealed.
pub(crate) const SEAL_ROWS: usize = 65_536;
/// An insert of at least this many rows does not pass through the tail.
pub(crate) const DIRECT_ROWS: usize = 16_384;
/// Chunks below [`SMALL_ROWS`] that may pile up before they become one.
pub(crate) const SMALL_CHUNKS: usize = 64;
/// A chunk of at least this many rows is not merged again.
pub(crate) const SMALL_ROWS: usize = 1_024;

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

/// Where a row lies, as the hidden column `__row` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowId {
    Block { key: u32, row: u16 },
    Tail { key: u32, row: u16 },
}

const TAIL_BIT: u64 = 1 << 63;

impl RowId {
    pub(crate) fn number(self) -> u64 {
        match self {
            RowId::Block { key, row } => u64::from(key) << 16 | u64::from(row),
            RowId::Tail { key, row } => TAIL_BIT | u64::from(key) << 16 | u64::from(row),
        }
    }

    pub(crate) fn of(number: u64) -> RowId {
        let (key, row) = ((number >> 16) as u32, number as u16);
        match number & TAIL_BIT {
            0 => RowId::Block { key, row },
            _ => RowId::Tail { key, row },
        }
    }
}
