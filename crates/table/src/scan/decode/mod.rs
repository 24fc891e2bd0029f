//! Matrices back into Arrow arrays, for the rows a scan wants.

mod labels;
mod numbers;
mod texts;
mod views;

use arrow::array::{ArrayRef, new_null_array};
use arrow::datatypes::DataType;

use crate::dictionary::Dictionary;
use crate::error::Result;
use crate::format::block::Encoding;
use crate::format::nested::{from_storage, storage};
use crate::scan::chunk::{PinnedChunk, Tally};
use crate::scan::rows::Rows;

pub(crate) use self::numbers::{floats_into, numbers_into};

/// Decodes `rows` of a chunk into an array of `data_type`. `dictionary` is the column's, which
/// chunks of codes need.
///
/// # Errors
/// [`crate::Error::Damaged`] if a page does not hold what its record says.
pub(crate) fn decode(
    chunk: &PinnedChunk<'_>,
    rows: &Rows<'_>,
    data_type: &DataType,
    dictionary: Option<&Dictionary>,
    tally: &mut Tally<'_>,
) -> Result<ArrayRef> {
    if chunk.all_null() {
        return Ok(new_null_array(data_type, rows.len()));
    }
    if let Some(stored) = storage(data_type) {
        let values = decode(chunk, rows, &stored, dictionary, tally)?;
        return from_storage(values, data_type).ok_or_else(|| chunk.cannot_hold(data_type));
    }
    let nulls = chunk.nulls(rows);
    match chunk.matrix.encoding {
        Encoding::Text => texts::texts(chunk, rows, data_type, nulls, tally),
        Encoding::Code { .. } => labels::labels(chunk, rows, data_type, dictionary, nulls, tally),
        Encoding::Float { .. } => numbers::floats(chunk, rows, data_type, nulls, tally),
        Encoding::Int { .. } | Encoding::Constant(_) => {
            numbers::whole(chunk, rows, data_type, nulls, tally)
        }
    }
}
