//! View arrays of texts, and when a page is lent to an array.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewArray, StringViewArray};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::DataType;

use crate::error::Result;

/// A run is lent rather than copied when it covers at least one part in this many of its page:
/// lending few rows would keep a whole frame pinned, and its bytes accounted, for them.
pub(super) const LEND_PART: usize = 2;

/// An array of views into `buffers`: text, or bytes if `data_type` says so.
///
/// Every view must be made of bytes within its buffer, and of UTF-8 unless it is bytes.
pub(super) fn finish(
    views: Vec<u128>,
    buffers: impl Into<Arc<[Buffer]>>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let views = ScalarBuffer::from(views);
    let buffers = buffers.into();
    if *data_type == DataType::BinaryView {
        return Ok(Arc::new(BinaryViewArray::try_new(views, buffers, nulls)?));
    }
    // SAFETY: both callers make views as `make_view` does, of slices of these buffers, at the offsets
    // of the slices, so they lie within bounds. The bytes are UTF-8: text enters a table in Arrow
    // string arrays only, and a page whose checksum is not that of its bytes is not loaded.
    Ok(Arc::new(unsafe {
        StringViewArray::new_unchecked(views, buffers, nulls)
    }))
}
