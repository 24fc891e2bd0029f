//! Texts that are stored as they are.

use std::ops::Range;

use arrow::array::{ArrayRef, make_view};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::DataType;

use crate::error::Result;
use crate::format::page::cast;
use crate::scan::chunk::{PinnedChunk, Tally};
use crate::scan::decode::views::{LEND_PART, finish};
use crate::scan::rows::{PageRows, Rows};

/// The texts of `rows`.
pub(super) fn texts(
    chunk: &PinnedChunk<'_>,
    rows: &Rows<'_>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
    tally: &mut Tally<'_>,
) -> Result<ArrayRef> {
    let mut out = Texts {
        views: Vec::with_capacity(rows.len()),
        buffers: vec![],
        heap: vec![],
    };
    for index in 0..chunk.matrix.pages.len() {
        let page = chunk.page_rows(index);
        let part = rows.within(&page);
        if part.is_empty() {
            continue;
        }
        out.page(chunk, index, &part, tally)?;
    }
    let Texts { views, buffers, .. } = out.close();
    finish(views, buffers, nulls, data_type)
}

/// Longest text, in bytes, that its view holds whole.
const INLINE: usize = 12;

/// Bytes that are read at once for a short text.
const AT_ONCE: usize = size_of::<u128>();

/// The first bits of a word that so many bytes have.
const FIRST_BITS: [u128; INLINE + 1] = {
    let mut bits = [0; INLINE + 1];
    let mut bytes = 0;
    while bytes <= INLINE {
        bits[bytes] = (1 << (8 * bytes)) - 1;
        bytes += 1;
    }
    bits
};

/// The view of the text at `span` of `bytes`, which lies at `place`, an offset in a buffer; `None` if it does not lie within the
/// bytes. As Arrow's `make_view`, but short texts, if there are bytes behind them, take one read and no call.
#[inline(always)]
fn view_of(bytes: &[u8], span: &Range<usize>, place: (u32, u32)) -> Option<u128> {
    let length = span.end.checked_sub(span.start)?;
    if length <= INLINE
        && let Some(some) = bytes.get(span.start..span.start + AT_ONCE)
        && let Some(some) = some.first_chunk()
    {
        let text = u128::from_le_bytes(*some) & FIRST_BITS[length];
        return Some(text << 32 | length as u128);
    }
    let text = bytes.get(span.clone())?;
    Some(make_view(text, place.0, place.1))
}

/// A text array being built.
struct Texts {
    views: Vec<u128>,
    /// Lent pages and full heaps. Views of copied texts point at `buffers.len()`, where `heap`
    /// will stand: a page is lent only while `heap` is empty.
    buffers: Vec<Buffer>,
    heap: Vec<u8>,
}

impl Texts {
    fn page(
        &mut self,
        chunk: &PinnedChunk<'_>,
        index: usize,
        part: &PageRows<'_>,
        tally: &mut Tally<'_>,
    ) -> Result<()> {
        let pin = chunk.page(index)?;
        let id = chunk.matrix.pages[index].id;
        if chunk.matrix.pages[index].long {
            let text = chunk.long_text(index)?;
            tally(pin.node(), text.len() as u64);
            let damaged = || chunk.damaged(id, "holds no whole text");
            return self.copy(text, &(0..text.len())).ok_or_else(damaged);
        }
        let rows = chunk.page_rows(index).len();
        let (offsets, heap) = pin.split_at(2 * (rows + 1));
        let offsets = cast::<u16>(offsets).ok_or_else(|| chunk.damaged(id, "is not aligned"))?;
        let span = |row: usize| offsets[row] as usize..offsets[row + 1] as usize;
        let bad = || chunk.damaged(id, "holds a text outside its bounds");
        let mut read = 0;
        match part {
            PageRows::Run(run) if run.len() * LEND_PART >= rows && self.lend(chunk, index) => {
                let (buffer, start) = (self.buffers.len() as u32 - 1, 2 * (rows + 1) as u32);
                for row in run.clone() {
                    let span = span(row);
                    let place = (buffer, start + span.start as u32);
                    let view = view_of(heap, &span, place).ok_or_else(bad)?;
                    self.views.push(view);
                    read += span.len() + 2;
                }
            }
            PageRows::Run(run) => {
                for row in run.clone() {
                    let span = span(row);
                    self.copy(heap, &span).ok_or_else(bad)?;
                    read += span.len() + 2;
                }
            }
            PageRows::Some(picks) => {
                let first = chunk.page_rows(index).start;
                for row in *picks {
                    let span = span(*row as usize - first);
                    self.copy(heap, &span).ok_or_else(bad)?;
                    read += span.len() + 2;
                }
            }
        }
        tally(pin.node(), read as u64);
        Ok(())
    }

    /// Borrows the page for as long as the array lives, if the pool still lends.
    fn lend(&mut self, chunk: &PinnedChunk<'_>, index: usize) -> bool {
        let Some(buffer) = chunk.lend(index) else {
            return false;
        };
        self.seal();
        self.buffers.push(buffer);
        true
    }

    /// Adds the text at `span` of `bytes`; `None` if it does not lie within them.
    #[inline(always)]
    fn copy(&mut self, bytes: &[u8], span: &Range<usize>) -> Option<()> {
        if span.len() <= INLINE {
            self.views.push(view_of(bytes, span, (0, 0))?);
        } else {
            self.keep(bytes.get(span.clone())?);
        }
        Some(())
    }

    /// Adds a text that its view does not hold whole.
    fn keep(&mut self, text: &[u8]) {
        if self.heap.len() + text.len() > u32::MAX as usize / 2 {
            self.seal();
        }
        let (buffer, offset) = (self.buffers.len() as u32, self.heap.len() as u32);
        self.views.push(make_view(text, buffer, offset));
        self.heap.extend_from_slice(text);
    }

    fn seal(&mut self) {
        if !self.heap.is_empty() {
            self.buffers
                .push(Buffer::from_vec(std::mem::take(&mut self.heap)));
        }
    }

    fn close(mut self) -> Texts {
        self.seal();
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn views_are_those_of_arrow(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            start in 0usize..45,
            length in 0usize..20,
        ) {
            let span = start..start + length;
            let expected = bytes.get(span.clone()).map(|text| make_view(text, 3, 7));
            prop_assert_eq!(view_of(&bytes, &span, (3, 7)), expected);
        }
    }

    #[test]
    fn a_text_that_ends_before_it_begins_is_none() {
        assert_eq!(view_of(&[0; 40], &Range { start: 7, end: 6 }, (0, 0)), None);
    }
}
