//! Maps of SQL, as DuckDB writes them: keys of one type, each once and none NULL, with values of one type, which may be NULL.
//!
//! They are maps of Arrow, in the form of [`table::map_type`]. The order of the entries is that in which they were given, and
//! says nothing: maps are equal that have equal values under the same keys.

mod access;
mod make;
mod read;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, MapArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err};

use crate::functions::own::Own;

pub(crate) use access::{map_and_key, value};
pub(crate) use read::read;

pub(super) fn all() -> Vec<Own> {
    access::all().into_iter().chain(make::all()).collect()
}

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
fn range(maps: &MapArray, row: usize) -> std::ops::Range<usize> {
    if maps.is_null(row) {
        return 0..0;
    }
    let offsets = maps.value_offsets();
    offsets[row] as usize..offsets[row + 1] as usize
}
