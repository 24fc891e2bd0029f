//! A pinned column chunk: one matrix of a block, with the pages that a scan holds of it.

use std::collections::HashMap;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use algebra::encoded::Stored;
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::DataType;
use buffer::{PageId, Pin, Pool};

use crate::error::{Error, Result};
use crate::format::block::{Encoding, Matrix, Zone};
use crate::format::page::{cast, pin};
use crate::format::record::damaged;
use crate::scan::mask::Mask;
use crate::scan::rows::Rows;

/// Called for each page that is read, with the page's node and the number of bytes read of it.
pub(crate) type Tally<'a> = dyn FnMut(usize, u64) + 'a;

/// One matrix and the pages pinned of it.
#[derive(Debug)]
pub(crate) struct PinnedChunk<'p> {
    pub matrix: &'p Matrix,
    pub rows: u32,
    table: &'p str,
    pool: &'p Arc<Pool>,
    /// Invariant: as long as `matrix.pages`; a page that was not asked for is absent.
    pages: Vec<Option<Pin<'p>>>,
    validity: Option<Pin<'p>>,
    /// Texts that span pages, by the index of their first: copied page by page when held, since
    /// one text may be longer than the pool.
    long: HashMap<usize, Vec<u8>>,
}

impl<'p> PinnedChunk<'p> {
    pub(crate) fn new(
        table: &'p str,
        pool: &'p Arc<Pool>,
        matrix: &'p Matrix,
        rows: u32,
    ) -> PinnedChunk<'p> {
        let pages = std::iter::repeat_with(|| None)
            .take(matrix.pages.len())
            .collect();
        PinnedChunk {
            matrix,
            rows,
            table,
            pool,
            pages,
            validity: None,
            long: HashMap::new(),
        }
    }

    /// The pages that `wanted` rows lie in and that are not held yet.
    pub(crate) fn missing(&self, wanted: &Mask) -> Vec<PageId> {
        let mut ids = Vec::new();
        for (index, page) in self.matrix.pages.iter().enumerate() {
            if self.pages[index].is_none() && wanted.any_in(self.page_rows(index)) {
                ids.push(page.id);
                ids.extend(&page.more);
            }
        }
        ids.extend(self.matrix.validity.filter(|_| self.validity.is_none()));
        ids
    }

    /// How many pages of values are held.
    pub(crate) fn held(&self) -> usize {
        self.pages.iter().flatten().count()
    }

    /// Pins the pages in which `wanted` rows lie.
    pub(crate) async fn hold(&mut self, wanted: &Mask) -> Result<()> {
        for index in 0..self.matrix.pages.len() {
            if self.pages[index].is_none() && wanted.any_in(self.page_rows(index)) {
                self.hold_page(index).await?;
            }
        }
        self.hold_validity().await
    }

    /// The pages that one row needs.
    pub(crate) fn pages_of(&self, row: u32) -> impl Iterator<Item = PageId> {
        let page = self.page_of(row).map(|index| &self.matrix.pages[index]);
        let values = page.into_iter().flat_map(|page| {
            let more = page.more.iter().copied();
            std::iter::once(page.id).chain(more)
        });
        values.chain(self.matrix.validity)
    }

    /// Pins the pages in which one row lies.
    pub(crate) async fn hold_row(&mut self, row: u32) -> Result<()> {
        if let Some(index) = self.page_of(row) {
            self.hold_page(index).await?;
        }
        self.hold_validity().await
    }

    /// The page in which a row lies; none where no page has values.
    fn page_of(&self, row: u32) -> Option<usize> {
        let pages = &self.matrix.pages;
        pages
            .partition_point(|page| page.first <= row)
            .checked_sub(1)
    }

    async fn hold_page(&mut self, index: usize) -> Result<()> {
        let (pool, matrix): (&'p Pool, &'p Matrix) = (self.pool, self.matrix);
        let page = &matrix.pages[index];
        let pin = pin(pool, page.id).await?;
        self.check_length(index, pin.len())?;
        if page.long {
            let mut text = pin.to_vec();
            for id in &page.more {
                text.extend_from_slice(&self::pin(pool, *id).await?);
            }
            self.long.insert(index, text);
        }
        self.pages[index] = Some(pin);
        Ok(())
    }

    async fn hold_validity(&mut self) -> Result<()> {
        let pool: &'p Pool = self.pool;
        if let (None, Some(id)) = (&self.validity, self.matrix.validity) {
            let pin = pin(pool, id).await?;
            if pin.len() < (self.rows as usize).div_ceil(8) {
                return Err(self.damaged(id, "is too short for its rows"));
            }
            self.validity = Some(pin);
        }
        Ok(())
    }

    fn check_length(&self, index: usize, length: usize) -> Result<()> {
        let rows = self.page_rows(index).len();
        let needed = match self.matrix.encoding {
            Encoding::Text if self.matrix.pages[index].long => 0,
            Encoding::Text => 2 * (rows + 1),
            _ => rows * self.matrix.width(),
        };
        if length < needed {
            return Err(self.damaged(self.matrix.pages[index].id, "is too short for its rows"));
        }
        Ok(())
    }

    pub(crate) fn damaged(&self, page: PageId, what: &str) -> Error {
        damaged(self.table, &format!("page {page} {what}"))
    }

    pub(crate) fn page_rows(&self, index: usize) -> Range<usize> {
        self.matrix.page_rows(index, self.rows)
    }

    /// The held page `index`; asking for one that was not held is an error, not a panic.
    pub(crate) fn page(&self, index: usize) -> Result<&Pin<'p>> {
        self.pages[index]
            .as_ref()
            .ok_or_else(|| self.damaged(self.matrix.pages[index].id, "was not pinned"))
    }

    /// The validity bitmap, if some rows but not all are NULL.
    pub(crate) fn validity(&self) -> Option<&[u8]> {
        self.validity.as_deref()
    }

    /// The text that starts at page `index` and spans several.
    pub(crate) fn long_text(&self, index: usize) -> Result<&[u8]> {
        let text = self.long.get(&index).map(Vec::as_slice);
        text.ok_or_else(|| self.damaged(self.matrix.pages[index].id, "was not pinned"))
    }

    /// The held page as an Arrow buffer that keeps its frame pinned; `None` once the pool has
    /// lent as many as it may.
    pub(crate) fn lend(&self, index: usize) -> Option<Buffer> {
        let pin = self.pool.try_pin(self.matrix.pages[index].id)?;
        let owned = pin.into_owned(self.pool).ok()?;
        let start = NonNull::new(owned.as_ptr().cast_mut())?;
        let length = owned.len();
        // SAFETY: `start` is not null, and `length` bytes from it on are the page's. The pool does
        // not change or move a page that is pinned, and the buffer owns the pin until it is dropped.
        Some(unsafe {
            Buffer::from_custom_allocation(start, length, Arc::new(AssertUnwindSafe(owned)))
        })
    }

    pub(crate) fn all_null(&self) -> bool {
        self.matrix.nulls == self.rows
    }

    /// The values of page `index` as they are stored.
    pub(crate) fn values<T: Stored>(&self, index: usize) -> Result<&[T]> {
        let rows = self.page_rows(index).len();
        let bytes = self.page(index)?;
        cast::<T>(bytes)
            .and_then(|values| values.get(..rows))
            .ok_or_else(|| self.damaged(self.matrix.pages[index].id, "is too short for its rows"))
    }

    /// The value from which page `index` stores distances (frame of reference).
    pub(crate) fn base(&self, index: usize) -> i128 {
        match (self.matrix.encoding, self.matrix.pages[index].zone) {
            (Encoding::Int { width }, Some(Zone::Int { min, .. })) if width < 8 => min,
            _ => 0,
        }
    }

    /// Which of `rows` are not NULL; absent if all are. Not for chunks of NULLs only.
    pub(crate) fn nulls(&self, rows: &Rows<'_>) -> Option<NullBuffer> {
        let bits = self.validity()?;
        let valid = |row: usize| bits[row / 8] >> (row % 8) & 1 == 1;
        let buffer = match rows {
            Rows::Run(run) => BooleanBuffer::collect_bool(run.len(), |i| valid(run.start + i)),
            Rows::Some(rows) => {
                BooleanBuffer::collect_bool(rows.len(), |i| valid(rows[i] as usize))
            }
        };
        Some(NullBuffer::new(buffer)).filter(|n| n.null_count() > 0)
    }

    /// The error of a chunk that does not fit its column's type.
    pub(crate) fn cannot_hold(&self, data_type: &DataType) -> Error {
        let page = self.matrix.pages.first().map_or(0, |p| p.id);
        self.damaged(page, &format!("cannot hold values of type {data_type}"))
    }
}
