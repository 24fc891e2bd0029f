//! Keys of stored rows. A block's pages are read one at a time and held until another is needed, so that rows near each
//! other cost one pin.

use std::ops::RangeInclusive;
use std::sync::Arc;

use buffer::{PageId, Pin, Pool};

use crate::error::{Error, Result};
use crate::format::block::{Block, Encoding, Matrix, Page, Zone};
use crate::format::dictionary::DictionaryRecord;
use crate::format::keys::{Form, push_bytes, push_float};
use crate::format::page::{cast, pin};
use crate::format::record::damaged;
use crate::index::stock::Stock;

/// Reads the keys of the rows of one block.
pub(crate) struct RowKeys<'p> {
    pool: &'p Pool,
    table: &'p str,
    block: Arc<Block>,
    parts: Vec<Part<'p>>,
}

/// One column of the key.
struct Part<'p> {
    column: usize,
    form: Form,
    dictionary: Option<Arc<DictionaryRecord>>,
    validity: Option<Pin<'p>>,
    /// The page that was read last, by its index.
    page: Option<(usize, Pin<'p>)>,
    /// The page of labels that was read last.
    labels: Option<(usize, Pin<'p>)>,
}

impl<'p> RowKeys<'p> {
    /// For block `number`, if there is one; `columns` are those of the key.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub(crate) fn new(
        stock: &mut Stock<'p>,
        columns: &[usize],
        number: u32,
    ) -> Result<Option<RowKeys<'p>>> {
        let Some(block) = stock.block(number)? else {
            return Ok(None);
        };
        let mut parts = Vec::with_capacity(columns.len());
        for column in columns {
            let form = Form::of(&stock.definition.columns[*column].data_type);
            let coded = matches!(block.columns[*column].encoding, Encoding::Code { .. });
            parts.push(Part {
                column: *column,
                form,
                dictionary: if coded {
                    stock.dictionary(*column)?
                } else {
                    None
                },
                validity: None,
                page: None,
                labels: None,
            });
        }
        Ok(Some(RowKeys {
            pool: stock.pool(),
            table: &stock.definition.name,
            block,
            parts,
        }))
    }

    /// The number of rows of the block.
    pub(crate) fn rows(&self) -> u32 {
        self.block.rows
    }

    /// Puts the key of a row into `out`, and says whether it has one: no value of it is NULL.
    ///
    /// # Errors
    /// Those of reading pages; [`Error::Damaged`].
    pub(crate) async fn key(&mut self, row: u32, out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        let (pool, table) = (self.pool, self.table);
        let block = Arc::clone(&self.block);
        for part in &mut self.parts {
            let matrix = &block.columns[part.column];
            if !part.push(pool, table, &block, matrix, row, out).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The row with this key, of `rows`, whose keys ascend and of which none is NULL. If there is none: the first with a
    /// greater key, or the one behind the last. If it is known that it lies not before a row `from`, it is soon found
    /// where it is near.
    ///
    /// # Errors
    /// As [`RowKeys::key`].
    pub(crate) async fn search(
        &mut self,
        rows: RangeInclusive<u16>,
        from: Option<u32>,
        key: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Result<std::result::Result<u32, u32>> {
        let (first, mut high) = (u32::from(*rows.start()), u32::from(*rows.end()) + 1);
        if high > self.rows() {
            return Err(damaged(self.table, "a range of its index"));
        }
        let mut low = from.unwrap_or(first).max(first);
        // Steps grow until one goes too far; then what is left is halved.
        let (mut stepping, mut step) = (from.is_some(), 1);
        while low < high {
            let middle = if stepping {
                (low + step - 1).min(high - 1)
            } else {
                low + (high - low) / 2
            };
            if !self.key(middle, scratch).await? {
                return Err(damaged(self.table, "a range of its index"));
            }
            match scratch.as_slice().cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(Ok(middle)),
                std::cmp::Ordering::Greater => (high, stepping) = (middle, false),
            }
            step *= 2;
        }
        Ok(Err(low))
    }
}

impl<'p> Part<'p> {
    /// Appends the value of a row; false if it is NULL.
    async fn push(
        &mut self,
        pool: &'p Pool,
        table: &str,
        block: &Block,
        matrix: &Matrix,
        row: u32,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        if matrix.nulls == block.rows {
            return Ok(false);
        }
        if let Some(id) = matrix.validity {
            let bits = match &mut self.validity {
                Some(bits) => bits,
                none => none.insert(pin(pool, id).await?),
            };
            let byte = bits.get(row as usize / 8).ok_or_else(|| short(table, id))?;
            if byte >> (row % 8) & 1 == 0 {
                return Ok(false);
            }
        }
        if let Encoding::Constant(value) = matrix.encoding {
            self.form.push_int(value, out);
            return Ok(true);
        }
        let at = matrix.pages.partition_point(|page| page.first <= row) - 1;
        let page = &matrix.pages[at];
        if page.long {
            push_bytes(&long(pool, page).await?, out);
            return Ok(true);
        }
        if self.page.as_ref().is_none_or(|(held, _)| *held != at) {
            self.page = Some((at, pin(pool, page.id).await?));
        }
        let Some((_, bytes)) = &self.page else {
            return Err(short(table, page.id));
        };
        let rows = matrix.page_rows(at, block.rows).len();
        let within = (row - page.first) as usize;
        let code = match matrix.encoding {
            Encoding::Code { width } => stored(bytes, width, within),
            _ => {
                let pushed = push(self.form, matrix, page, bytes, (rows, within), out);
                return pushed.map(|()| true).ok_or_else(|| short(table, page.id));
            }
        };
        let code = code.ok_or_else(|| short(table, page.id))? as u32;
        self.label(pool, table, code, out).await?;
        Ok(true)
    }

    /// Appends the label of a code.
    async fn label(
        &mut self,
        pool: &'p Pool,
        table: &str,
        code: u32,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let unknown = || damaged(table, "a code without a label");
        let record = self.dictionary.as_ref().ok_or_else(unknown)?;
        if code >= record.labels {
            return Err(unknown());
        }
        let pages = &record.pages;
        let at = pages.partition_point(|page| page.first <= code);
        let at = at.checked_sub(1).ok_or_else(unknown)?;
        let page = &pages[at];
        if page.long {
            push_bytes(&long(pool, page).await?, out);
            return Ok(());
        }
        if self.labels.as_ref().is_none_or(|(held, _)| *held != at) {
            self.labels = Some((at, pin(pool, page.id).await?));
        }
        let end = pages.get(at + 1).map_or(record.labels, |next| next.first);
        let rows = end.saturating_sub(page.first) as usize;
        let text = self.labels.as_ref();
        let text = text.and_then(|(_, bytes)| text_at(bytes, rows, (code - page.first) as usize));
        push_bytes(text.ok_or_else(unknown)?, out);
        Ok(())
    }
}

/// Appends a value that is not a code; `None` if the page is too short for it.
fn push(
    form: Form,
    matrix: &Matrix,
    page: &Page,
    bytes: &[u8],
    (rows, within): (usize, usize),
    out: &mut Vec<u8>,
) -> Option<()> {
    match matrix.encoding {
        Encoding::Int { width: 16 } => {
            let value = bytes.get(16 * within..)?.first_chunk::<16>()?;
            form.push_int(i128::from_le_bytes(*value), out);
        }
        Encoding::Int { width: 8 } => {
            let value = bytes.get(8 * within..)?.first_chunk::<8>()?;
            form.push_int(i64::from_le_bytes(*value).into(), out);
        }
        Encoding::Int { width } => {
            let Some(Zone::Int { min, .. }) = page.zone else {
                return None;
            };
            form.push_int(min + i128::from(stored(bytes, width, within)?), out);
        }
        Encoding::Float { width: 4 } => {
            let value = bytes.get(4 * within..)?.first_chunk::<4>()?;
            push_float(f32::from_le_bytes(*value).into(), out);
        }
        Encoding::Float { .. } => {
            let value = bytes.get(8 * within..)?.first_chunk::<8>()?;
            push_float(f64::from_le_bytes(*value), out);
        }
        Encoding::Text => push_bytes(text_at(bytes, rows, within)?, out),
        Encoding::Constant(_) | Encoding::Code { .. } => return None,
    }
    Some(())
}

/// The unsigned number of 1, 2 or 4 bytes at a position.
fn stored(bytes: &[u8], width: u8, at: usize) -> Option<u64> {
    let rest = bytes.get(at * usize::from(width)..)?;
    Some(match width {
        1 => u64::from(*rest.first()?),
        2 => u16::from_le_bytes(*rest.first_chunk()?).into(),
        _ => u32::from_le_bytes(*rest.first_chunk()?).into(),
    })
}

/// One text of a page of `rows`.
fn text_at(page: &[u8], rows: usize, at: usize) -> Option<&[u8]> {
    let (offsets, heap) = page.split_at_checked(2 * (rows + 1))?;
    let offsets = cast::<u16>(offsets)?;
    heap.get(usize::from(*offsets.get(at)?)..usize::from(*offsets.get(at + 1)?))
}

/// A text that spans pages.
async fn long(pool: &Pool, page: &Page) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for id in page.ids() {
        text.extend_from_slice(&pin(pool, id).await?);
    }
    Ok(text)
}

fn short(table: &str, page: PageId) -> Error {
    damaged(table, &format!("page {page} of a key"))
}
