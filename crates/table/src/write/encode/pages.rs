//! Values of one width into pages.

use arrow::buffer::NullBuffer;
use buffer::PageId;
use store::Kind;

use crate::error::Result;
use crate::format::block::{Page, Zone};

/// Takes a finished page and gives its id.
pub(crate) type Sink<'a> = dyn FnMut(&[u8], Kind) -> Result<PageId> + 'a;

/// Writes pages of as many values of `width` bytes as fit. `fill` appends the bytes of some values
/// to an empty page and gives their zone.
pub(super) fn value_pages<T>(
    values: &[T],
    width: usize,
    page_size: usize,
    sink: &mut Sink<'_>,
    mut fill: impl FnMut(&[T], &mut Vec<u8>) -> Option<Zone>,
) -> Result<Vec<Page>> {
    let rows = page_size / width;
    let mut pages = Vec::with_capacity(values.len() / rows + 1);
    let mut page = Vec::with_capacity(page_size);
    for (index, chunk) in values.chunks(rows).enumerate() {
        page.clear();
        let zone = fill(chunk, &mut page);
        let id = sink(&page, Kind::Values)?;
        pages.push(Page::new(id, (index * rows) as u32, zone));
    }
    Ok(pages)
}

/// Makes `into` the distances of `values` in `width` bytes each: 1, 2 or 4, which must hold them.
pub(super) fn distances<T: Copy>(
    values: &[T],
    width: usize,
    into: &mut Vec<u8>,
    distance: impl Fn(T) -> u32,
) {
    match width {
        1 => pack(values, into, |v| [distance(v) as u8]),
        2 => pack(values, into, |v| (distance(v) as u16).to_le_bytes()),
        _ => pack(values, into, |v| distance(v).to_le_bytes()),
    }
}

/// Makes `into` the `N` bytes of each value.
pub(super) fn pack<T: Copy, const N: usize>(
    values: &[T],
    into: &mut Vec<u8>,
    bytes: impl Fn(T) -> [u8; N],
) {
    into.resize(values.len() * N, 0);
    for (slot, value) in into.as_chunks_mut::<N>().0.iter_mut().zip(values) {
        *slot = bytes(*value);
    }
}

/// Puts the first value that is not NULL where a row is NULL, so that NULLs widen neither zone nor
/// width.
pub(super) fn fill_nulls<T: Copy>(values: &mut [T], nulls: Option<&NullBuffer>) {
    let Some(nulls) = nulls.filter(|n| n.null_count() > 0) else {
        return;
    };
    let fill = values[nulls.valid_indices().next().unwrap_or(0)];
    for (value, valid) in values.iter_mut().zip(nulls.iter()) {
        if !valid {
            *value = fill;
        }
    }
}
