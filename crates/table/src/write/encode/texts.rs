//! Texts: codes into the column's dictionary where that pays, else offsets and bytes.

use arrow::array::BinaryViewArray;
use store::Kind;

use crate::dictionary::DictionaryBuilder;
use crate::error::{Error, Result};
use crate::format::block::{Encoding, Matrix, Page};
use crate::write::encode::pages::{Sink, distances, value_pages};

/// The most bytes of a text or binary value.
pub const LONGEST_TEXT: usize = 1 << 30;

/// The matrix of a column of texts; `dictionary` collects its labels, if it may have a dictionary.
pub(super) fn texts(
    column: &str,
    array: &BinaryViewArray,
    dictionary: Option<&DictionaryBuilder>,
    page_size: usize,
    sink: &mut Sink<'_>,
) -> Result<Matrix> {
    if let Some(codes) = dictionary.and_then(|dictionary| dictionary.encode(array)) {
        let (width, pages) = code_pages(&codes, page_size, sink)?;
        return Ok(Matrix::new(Encoding::Code { width }, pages, None));
    }
    let texts = array.iter().map(|v| v.unwrap_or_default());
    let pages = text_pages(column, texts, page_size, sink)?;
    Ok(Matrix::new(Encoding::Text, pages, None))
}

fn code_pages(codes: &[u32], page_size: usize, sink: &mut Sink<'_>) -> Result<(u8, Vec<Page>)> {
    let width = match codes.iter().copied().max().unwrap_or(0) {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    };
    let pages = value_pages(codes, width, page_size, sink, |chunk, into| {
        distances(chunk, width, into, |code| code);
        None
    })?;
    Ok((width as u8, pages))
}

/// Texts into pages: offsets, then bytes; as many rows as fit. A text that fits no page gets
/// pages of its own.
pub(crate) fn text_pages<'a>(
    column: &str,
    texts: impl Iterator<Item = &'a [u8]>,
    page_size: usize,
    sink: &mut Sink<'_>,
) -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    let mut open = TextPage::new(page_size);
    let mut row = 0u32;
    for text in texts {
        if text.len() > LONGEST_TEXT {
            let (column, bytes) = (column.to_owned(), text.len() as u64);
            return Err(Error::TooLong {
                column,
                bytes,
                limit: LONGEST_TEXT as u64,
            });
        }
        if !open.fits(text) {
            open.close(row, &mut pages, sink)?;
            if !open.fits(text) {
                pages.push(long_text(text, row, page_size, sink)?);
                row += 1;
                continue;
            }
        }
        open.push(text);
        row += 1;
    }
    open.close(row, &mut pages, sink)?;
    Ok(pages)
}

fn long_text(text: &[u8], row: u32, page_size: usize, sink: &mut Sink<'_>) -> Result<Page> {
    let mut ids = text
        .chunks(page_size)
        .map(|part| sink(part, Kind::Strings))
        .collect::<Result<Vec<_>>>()?
        .into_iter();
    let id = ids.next().unwrap_or_default();
    Ok(Page {
        id,
        first: row,
        zone: None,
        more: ids.collect(),
        long: true,
    })
}

/// A text page being filled.
struct TextPage {
    page_size: usize,
    offsets: Vec<u16>,
    heap: Vec<u8>,
    scratch: Vec<u8>,
}

impl TextPage {
    fn new(page_size: usize) -> TextPage {
        let (offsets, scratch) = (Vec::new(), Vec::with_capacity(page_size));
        TextPage {
            page_size,
            offsets,
            heap: Vec::with_capacity(page_size),
            scratch,
        }
    }

    fn fits(&self, text: &[u8]) -> bool {
        2 * (self.offsets.len() + 2) + self.heap.len() + text.len() <= self.page_size
    }

    fn push(&mut self, text: &[u8]) {
        self.offsets.push(self.heap.len() as u16);
        self.heap.extend_from_slice(text);
    }

    /// Writes the page, if it holds anything; `row` is the one after its last.
    fn close(&mut self, row: u32, pages: &mut Vec<Page>, sink: &mut Sink<'_>) -> Result<()> {
        if self.offsets.is_empty() {
            return Ok(());
        }
        let first = row - self.offsets.len() as u32;
        self.offsets.push(self.heap.len() as u16);
        self.scratch.clear();
        self.scratch
            .extend(self.offsets.iter().flat_map(|o| o.to_le_bytes()));
        self.scratch.extend_from_slice(&self.heap);
        let id = sink(&self.scratch, Kind::Strings)?;
        pages.push(Page::new(id, first, None));
        self.offsets.clear();
        self.heap.clear();
        Ok(())
    }
}
