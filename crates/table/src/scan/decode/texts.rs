//! Texts that are stored as they are.

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
            self.copy(text);
            return Ok(());
        }
        let rows = chunk.page_rows(index).len();
        let (offsets, heap) = pin.split_at(2 * (rows + 1));
        let offsets = cast::<u16>(offsets).ok_or_else(|| chunk.damaged(id, "is not aligned"))?;
        let text = |row: usize| heap.get(offsets[row] as usize..offsets[row + 1] as usize);
        let bad = || chunk.damaged(id, "holds a text outside its bounds");
        let mut read = 0;
        match part {
            PageRows::Run(run) if run.len() * LEND_PART >= rows && self.lend(chunk, index) => {
                let (buffer, start) = (self.buffers.len() as u32 - 1, 2 * (rows + 1) as u32);
                for row in run.clone() {
                    let text = text(row).ok_or_else(bad)?;
                    let offset = start + u32::from(offsets[row]);
                    self.views.push(make_view(text, buffer, offset));
                    read += text.len() + 2;
                }
            }
            PageRows::Run(run) => {
                for row in run.clone() {
                    let text = text(row).ok_or_else(bad)?;
                    self.copy(text);
                    read += text.len() + 2;
                }
            }
            PageRows::Some(picks) => {
                let first = chunk.page_rows(index).start;
                for row in *picks {
                    let text = text(*row as usize - first).ok_or_else(bad)?;
                    self.copy(text);
                    read += text.len() + 2;
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

    fn copy(&mut self, text: &[u8]) {
        if self.heap.len() + text.len() > u32::MAX as usize / 2 {
            self.seal();
        }
        let (buffer, offset) = (self.buffers.len() as u32, self.heap.len() as u32);
        self.views.push(make_view(text, buffer, offset));
        if text.len() > 12 {
            self.heap.extend_from_slice(text);
        }
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
