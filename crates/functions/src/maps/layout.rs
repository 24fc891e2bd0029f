//! How maps lie in arrays: put together of keys and values, and where the entries of a row are.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, MapArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::DataType;
use datafusion_common::{Result, internal_err};

/// Maps of type `to` of their parts. Whether keys come twice is not looked at.
///
/// # Errors
/// If the parts are not those of such maps.
pub(crate) fn of(
    to: &DataType,
    offsets: OffsetBuffer<i32>,
    keys: ArrayRef,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let DataType::Map(entries, sorted) = to else {
        return internal_err!("{to} is no map");
    };
    let DataType::Struct(fields) = entries.data_type() else {
        return internal_err!("{to} is no map");
    };
    let parts = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
    let maps = MapArray::try_new(Arc::clone(entries), offsets, parts, nulls, *sorted)?;
    Ok(Arc::new(maps))
}

/// The places of the entries of a row among all entries.
pub(super) fn range(maps: &MapArray, row: usize) -> std::ops::Range<usize> {
    if maps.is_null(row) {
        return 0..0;
    }
    let offsets = maps.value_offsets();
    offsets[row] as usize..offsets[row + 1] as usize
}
