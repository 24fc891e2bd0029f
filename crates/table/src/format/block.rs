//! Blocks: what the catalog keeps of up to 65,536 rows (L1).
//!
//! A block holds one [`Matrix`] per column. A matrix lies in pages that are bare arrays; where
//! they lie in the file, and their checksums, is the store's business.

use buffer::PageId;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::format::record::{self, damaged};

/// Most rows of one block.
pub const BLOCK_ROWS: usize = 65_536;

/// Rows of one block, column by column.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Rows, 1 ..= [`BLOCK_ROWS`].
    pub rows: u32,
    /// Placement bucket: its pages are at home on node `bucket` modulo the number of nodes.
    pub bucket: u8,
    /// One matrix per column of the table, in order.
    pub columns: Vec<Matrix>,
    /// What is kept of documents beside them, each path of a column once.
    pub shreds: Vec<Shred>,
}

/// The values that lie at one path of the documents of a column of `jsonb`, as a column of their own: a shredded column.
/// NULL where a document has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shred {
    /// The position of the documents' column.
    pub column: u32,
    /// The keys that lead to the values, through objects only.
    pub keys: Vec<String>,
    /// What the matrix holds of the values.
    pub form: ShredForm,
    /// One per row of the block.
    pub matrix: Matrix,
}

/// What is kept of the values at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShredForm {
    /// All are strings: their characters.
    Strings,
    /// All are whole numbers of 64 bits, written as these are: the numbers.
    Numbers,
    /// The values as they are written in the documents.
    Written,
}

/// One column of one block: a column chunk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// How the values are stored.
    pub encoding: Encoding,
    /// Pages in row order. Invariant: `pages[0].first == 0`, `first` strictly ascending; empty
    /// exactly for [`Encoding::Constant`].
    pub pages: Vec<Page>,
    /// Rows that are NULL. Invariant: `validity` is present exactly if `0 < nulls < rows`.
    pub nulls: u32,
    /// Page of a bitmap, least significant bit first, 1 = valid.
    pub validity: Option<PageId>,
    /// Least and greatest value of the block, NULLs apart; absent where it is not known.
    pub zone: Option<Zone>,
}

/// How the values of a matrix are stored. Width is in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Encoding {
    /// Every value that is not NULL equals this one (whole numbers only), or every row is NULL.
    Constant(i128),
    /// Frame of reference: unsigned distances of 1, 2 or 4 bytes from the page's least value; at 8
    /// (`i64`) and 16 (`i128`) bytes the values themselves.
    Int {
        /// Bytes per value: 1, 2, 4, 8, 16.
        width: u8,
    },
    /// Codes into the column's dictionary.
    Code {
        /// Bytes per value: 1, 2, 4.
        width: u8,
    },
    /// IEEE 754.
    Float {
        /// Bytes per value: 4 or 8.
        width: u8,
    },
    /// `u16` offsets (one more than values) from the end of the offsets, then the bytes.
    Text,
}

/// One page of a matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// The page.
    pub id: PageId,
    /// Position of its first row in the block.
    pub first: u32,
    /// Least and greatest value of the page. Invariant: always present for [`Encoding::Int`],
    /// whose distances count from `zone.min` where the width is below 8.
    pub zone: Option<Zone>,
    /// For a text too long for a page: its one value continues in these pages, and neither
    /// they nor `id` hold offsets.
    pub more: Vec<PageId>,
    /// Whether this page holds (the start of) one long text.
    pub long: bool,
}

/// Least and greatest value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Zone {
    /// Of whole numbers (also dates, times, decimals without their point, booleans).
    Int {
        /// Least.
        min: i128,
        /// Greatest.
        max: i128,
    },
    /// Of floats; absent where a NaN occurs.
    Float {
        /// Least.
        min: f64,
        /// Greatest.
        max: f64,
    },
}

impl Zone {
    /// The zone that covers both; `None` of a whole number and a float.
    pub fn join(self, other: Zone) -> Option<Zone> {
        Some(match (self, other) {
            (Zone::Int { min: a, max: b }, Zone::Int { min: c, max: d }) => Zone::Int {
                min: a.min(c),
                max: b.max(d),
            },
            (Zone::Float { min: a, max: b }, Zone::Float { min: c, max: d }) => Zone::Float {
                min: a.min(c),
                max: b.max(d),
            },
            _ => return None,
        })
    }
}

impl Block {
    /// The block of a record of table `name`.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged).
    pub(crate) fn decode(bytes: &[u8], name: &str) -> Result<Block> {
        Block::read(bytes).ok_or_else(|| damaged(name, "the record of a block"))
    }

    /// The block of a record; `None` if it is damaged. The shreds stand behind the columns, if there are any: versions up to 0.1
    /// read over them.
    pub(crate) fn read(bytes: &[u8]) -> Option<Block> {
        let ((rows, bucket, columns), rest) = postcard::take_from_bytes(bytes).ok()?;
        let shreds = match rest {
            [] => vec![],
            rest => postcard::from_bytes(rest).ok()?,
        };
        Some(Block {
            rows,
            bucket,
            columns,
            shreds,
        })
    }

    /// The record of the block, which is one of table `name`.
    ///
    /// # Errors
    /// Of no block that there is.
    pub(crate) fn encode(&self, name: &str) -> Result<Vec<u8>> {
        let mut bytes = record::encode(&(self.rows, self.bucket, &self.columns), name)?;
        if !self.shreds.is_empty() {
            bytes.extend(record::encode(&self.shreds, name)?);
        }
        Ok(bytes)
    }

    /// Whether the record is one that this program could have written for a table of so many columns.
    pub(crate) fn is_sound(&self, columns: usize, page_size: usize) -> bool {
        let is_column = |shred: &Shred| (shred.column as usize) < columns;
        let matrices = self.shreds.iter().map(|shred| &shred.matrix);
        let mut matrices = self.columns.iter().chain(matrices);
        self.rows > 0
            && self.columns.len() == columns
            && self.shreds.iter().all(is_column)
            && matrices.all(|matrix| matrix.is_sound(self.rows, page_size))
    }

    /// What is kept at this path of the documents of a column.
    pub fn shred<K: AsRef<str>>(&self, column: usize, keys: &[K]) -> Option<&Shred> {
        self.shreds_of(column).find(|shred| {
            let same = |(own, key): (&String, &K)| own == key.as_ref();
            shred.keys.len() == keys.len() && shred.keys.iter().zip(keys).all(same)
        })
    }

    /// What is kept of the documents of a column.
    pub fn shreds_of(&self, column: usize) -> impl Iterator<Item = &Shred> {
        let is_of = move |shred: &&Shred| shred.column as usize == column;
        self.shreds.iter().filter(is_of)
    }

    /// All pages.
    pub(crate) fn page_ids(&self) -> impl Iterator<Item = PageId> + '_ {
        let shreds = self.shreds.iter().map(|shred| &shred.matrix);
        self.columns.iter().chain(shreds).flat_map(Matrix::page_ids)
    }

    /// The pages of a column, those of its shreds included.
    pub(crate) fn pages_of(&self, column: usize) -> impl Iterator<Item = PageId> + '_ {
        let shreds = self.shreds_of(column).map(|shred| &shred.matrix);
        let own = self.columns.get(column).into_iter();
        own.chain(shreds).flat_map(Matrix::page_ids)
    }

    /// Removes a column with its shreds; those behind it have the number before.
    pub(crate) fn remove(&mut self, column: usize) {
        self.columns.remove(column);
        self.shreds.retain(|shred| shred.column as usize != column);
        for shred in &mut self.shreds {
            shred.column -= u32::from(shred.column as usize > column);
        }
    }
}

impl Page {
    /// A page of several values.
    pub(crate) fn new(id: PageId, first: u32, zone: Option<Zone>) -> Page {
        Page {
            id,
            first,
            zone,
            more: vec![],
            long: false,
        }
    }

    /// Its id, and those of the pages that continue its one text.
    pub(crate) fn ids(&self) -> impl Iterator<Item = PageId> + '_ {
        std::iter::once(self.id).chain(self.more.iter().copied())
    }
}

impl Matrix {
    /// A matrix without NULLs.
    pub(crate) fn new(encoding: Encoding, pages: Vec<Page>, zone: Option<Zone>) -> Matrix {
        Matrix {
            encoding,
            pages,
            nulls: 0,
            validity: None,
            zone,
        }
    }

    /// Rows from `page` up to the next one, given the block's rows.
    pub(crate) fn page_rows(&self, page: usize, rows: u32) -> std::ops::Range<usize> {
        let end = self.pages.get(page + 1).map_or(rows, |next| next.first);
        self.pages[page].first as usize..end as usize
    }

    /// Bytes per value that a kernel reads; texts count their offsets only (their bytes are
    /// counted as they are read).
    pub(crate) fn width(&self) -> usize {
        match self.encoding {
            Encoding::Constant(_) => 0,
            Encoding::Int { width } | Encoding::Code { width } | Encoding::Float { width } => {
                width as usize
            }
            Encoding::Text => 2,
        }
    }

    /// Replaces each page id by the one at its place in `ids`.
    pub(crate) fn renumber(&mut self, ids: &[PageId]) {
        let all = self
            .pages
            .iter_mut()
            .flat_map(|p| std::iter::once(&mut p.id).chain(&mut p.more));
        for id in all.chain(&mut self.validity) {
            *id = ids[*id as usize];
        }
    }

    /// All pages, the validity page included.
    pub fn page_ids(&self) -> impl Iterator<Item = PageId> + '_ {
        self.pages.iter().flat_map(Page::ids).chain(self.validity)
    }

    /// Whether the record is one that this program could have written for `rows` rows; false
    /// means damage that a checksum cannot see.
    pub(crate) fn is_sound(&self, rows: u32, page_size: usize) -> bool {
        let width_ok = match self.encoding {
            Encoding::Constant(_) | Encoding::Text => true,
            Encoding::Int { width } => matches!(width, 1 | 2 | 4 | 8 | 16),
            Encoding::Code { width } => matches!(width, 1 | 2 | 4),
            Encoding::Float { width } => matches!(width, 4 | 8),
        };
        let constant = matches!(self.encoding, Encoding::Constant(_));
        let ascending = self.pages.windows(2).all(|w| w[0].first < w[1].first);
        let starts = self.pages.first().is_none_or(|p| p.first == 0);
        let ends = self.pages.last().is_none_or(|p| p.first < rows);
        let full = self.width() == 0
            || matches!(self.encoding, Encoding::Text)
            || (0..self.pages.len())
                .all(|p| self.page_rows(p, rows).len() * self.width() <= page_size);
        let zones = !matches!(self.encoding, Encoding::Int { .. })
            || self
                .pages
                .iter()
                .all(|p| matches!(p.zone, Some(Zone::Int { .. })));
        let nulls =
            self.nulls <= rows && self.validity.is_some() == (self.nulls > 0 && self.nulls < rows);
        width_ok
            && constant == self.pages.is_empty()
            && ascending
            && starts
            && ends
            && full
            && zones
            && nulls
    }
}
