//! Rows by their keys.

use std::sync::Arc;

use arrow::array::ArrayRef;
use store::Snapshot;

use crate::catalog::table::Table;
use crate::error::{Error, Result};
use crate::format::key;
use crate::format::keys::hash;
use crate::format::row_id::RowId;
use crate::format::run::Run;
use crate::index::keys::Keys;
use crate::index::ranges::Range;
use crate::index::rows::RowKeys;
use crate::index::runs::Entry;
use crate::index::stock::Stock;
use crate::index::{chunks, ranges, runs};
use crate::schema::Key;

/// The fewest rows for whose keys the table may be read as a whole.
const MANY: usize = 1_024;

/// The index of one key, as a snapshot has it.
pub(crate) struct Index<'a> {
    pub stock: Stock<'a>,
    pub key: &'a Key,
    runs: Vec<(u32, Run)>,
    /// The records of the tail's chunks, by their numbers.
    chunks: Vec<(u32, Arc<[u8]>)>,
    /// The block that was searched last.
    open: Option<(u32, RowKeys<'a>)>,
    /// The range that was searched last.
    last: Option<Last>,
    scratch: Vec<u8>,
}

/// A range that was searched.
struct Last {
    range: Range,
    /// The key that was looked for, and the row before which nothing lies that is not less.
    key: Vec<u8>,
    from: Option<u32>,
}

impl<'a> Index<'a> {
    /// # Errors
    /// [`Error::Damaged`].
    pub(crate) fn new(stock: Stock<'a>, key: &'a Key) -> Result<Index<'a>> {
        let (snapshot, space) = (stock.snapshot, stock.space);
        let runs = runs::all(snapshot, (&stock.definition.name, space), key.number)?;
        let entries = snapshot.prefix(space, &key::index(key.number, key::KEY_CHUNK));
        let chunks = entries.filter_map(|(entry, bytes)| Some((key::number(&entry)?, bytes)));
        Ok(Index {
            chunks: chunks.collect(),
            stock,
            key,
            runs,
            open: None,
            last: None,
            scratch: Vec::new(),
        })
    }

    /// The records of the tail's chunks, by their numbers.
    pub(crate) fn chunks(&self) -> &[(u32, Arc<[u8]>)] {
        &self.chunks
    }

    /// The row that has this key, if one has.
    ///
    /// # Errors
    /// Those of reading pages; [`Error::Damaged`].
    pub(crate) async fn find(&mut self, wanted: &[u8]) -> Result<Option<RowId>> {
        if let Some(row) = self.in_ranges(wanted).await? {
            return Ok(Some(row));
        }
        let hash = hash(wanted);
        for at in 0..self.chunks.len() {
            let (chunk, bytes) = self.chunks[at].clone();
            for row in chunks::rows(&bytes, hash) {
                let row = RowId::Tail { key: chunk, row };
                if self.holds(row, wanted).await? {
                    return Ok(Some(row));
                }
            }
        }
        let mut found: Vec<Entry> = Vec::new();
        for at in (0..self.runs.len()).rev() {
            found.clear();
            let (pool, table) = (self.stock.pool(), &self.stock.definition.name);
            let run = &self.runs[at].1;
            runs::read(run, pool, table, hash..=hash, &mut found).await?;
            for entry in &found {
                let row = RowId::Block {
                    key: entry.block,
                    row: entry.row,
                };
                if self.holds(row, wanted).await? {
                    return Ok(Some(row));
                }
            }
        }
        Ok(None)
    }

    /// The row that has this key, of those with ranges. Keys that ascend are found soonest.
    ///
    /// # Errors
    /// As [`Index::find`].
    pub(crate) async fn in_ranges(&mut self, wanted: &[u8]) -> Result<Option<RowId>> {
        let Some(mut last) = self.range_of(wanted)? else {
            return Ok(None);
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        let block = last.range.stretch.block;
        let found = match self.rows_of(block)? {
            Some(rows) => {
                let stretch = last.range.stretch.rows.clone();
                rows.search(stretch, last.from, wanted, &mut scratch)
                    .await?
            }
            None => Err(0),
        };
        self.scratch = scratch;
        let (Ok(at) | Err(at)) = found;
        last.from = Some(at);
        last.key.clear();
        last.key.extend_from_slice(wanted);
        self.last = Some(last);
        let Ok(row) = found else { return Ok(None) };
        let row = RowId::Block {
            key: block,
            row: row as u16,
        };
        Ok(self.stock.is_live(row)?.then_some(row))
    }

    /// The range in which a key lies, taken from `last` if it is that of the key before.
    fn range_of(&mut self, wanted: &[u8]) -> Result<Option<Last>> {
        if let Some(mut last) = self.last.take_if(|last| last.range.has(wanted)) {
            if *wanted < *last.key {
                last.from = None;
            }
            return Ok(Some(last));
        }
        let table = (&self.stock.definition.name[..], self.stock.space);
        let range = ranges::find(self.stock.snapshot, table, self.key.number, wanted)?;
        Ok(range.map(|range| Last {
            range,
            from: None,
            key: Vec::new(),
        }))
    }

    /// Whether this row is there and has this key.
    async fn holds(&mut self, row: RowId, wanted: &[u8]) -> Result<bool> {
        Ok(self.key_of(row).await?.is_some_and(|key| key == wanted))
    }

    /// The key of a row, if the row is there and has one.
    ///
    /// # Errors
    /// As [`Index::find`].
    pub(crate) async fn key_of(&mut self, row: RowId) -> Result<Option<Vec<u8>>> {
        if !self.stock.is_live(row)? {
            return Ok(None);
        }
        match row {
            RowId::Tail { key, row } => {
                let Some(chunk) = self.stock.chunk(key)? else {
                    return Ok(None);
                };
                let columns = self.key.columns.iter();
                let columns = columns.map(|c| chunk.rows.column(*c).slice(row.into(), 1));
                let keys = Keys::of(&columns.collect::<Vec<_>>())?;
                Ok(keys.get(0).map(<[u8]>::to_vec))
            }
            RowId::Block { key, row } => {
                let mut bytes = Vec::new();
                let Some(rows) = self.rows_of(key)? else {
                    return Ok(None);
                };
                Ok(rows.key(row.into(), &mut bytes).await?.then_some(bytes))
            }
        }
    }

    fn rows_of(&mut self, block: u32) -> Result<Option<&mut RowKeys<'a>>> {
        if self.open.as_ref().is_none_or(|(held, _)| *held != block) {
            let rows = RowKeys::new(&mut self.stock, &self.key.columns, block)?;
            self.open = rows.map(|rows| (block, rows));
        }
        Ok(self.open.as_mut().map(|(_, rows)| rows))
    }
}

/// Whether the index of key `number` is that of the rows as they are: an earlier version of this program changes rows
/// and knows of no index.
pub(crate) fn is_current(snapshot: &Snapshot, space: u32, number: u32) -> bool {
    let tag = snapshot.get(space, &key::index(number, key::KEY_TAG));
    let rows = snapshot.get(space, key::ROWS);
    tag.is_some() && key::counter(tag.as_deref()) == key::counter(rows.as_deref())
}

impl Table {
    /// Whether the index of a key, one of [`Definition::keys`](crate::Definition::keys), can be used. It cannot where an
    /// earlier version of this program has changed rows.
    pub fn has_index(&self, key: &Key) -> bool {
        is_current(&self.snapshot, self.body.space, key.number)
    }

    /// For each row of `columns` the row of the table that has these values in the columns of `key`, one of
    /// [`Definition::keys`](crate::Definition::keys): the value of [`ROW_COLUMN`](crate::ROW_COLUMN). None where no row
    /// has them, as where one of them is NULL. For many rows the columns of the key are read through, where that takes less.
    ///
    /// `columns` have the types of the key's columns, and stand in its order.
    ///
    /// # Errors
    /// [`Error::Key`] if the index cannot be used; those of reading pages; [`Error::Damaged`].
    pub async fn find(
        self: &Arc<Self>,
        key: &Key,
        columns: &[ArrayRef],
    ) -> Result<Vec<Option<u64>>> {
        let definition = &self.body.definition;
        if !self.has_index(key) {
            return Err(behind(&definition.name, &key.name));
        }
        let rows = columns.first().map_or(0, |column| column.len());
        if rows >= MANY && self.is_read_whole(rows) {
            return self.find_whole(key, columns).await;
        }
        let stock = Stock::new(
            &self.snapshot,
            self.body.space,
            definition,
            Some(&self.body),
        );
        let mut index = Index::new(stock, key)?;
        let keys = Keys::of(columns)?;
        let mut wanted: Vec<(&[u8], usize)> = keys.iter().map(|(row, key)| (key, row)).collect();
        // So that neighbours are looked for one after the other, in the same block and page.
        wanted.sort_unstable();
        let mut found = vec![None; keys.len()];
        for (key, row) in wanted {
            let place = index.find(key).await?;
            found[row] = place.map(|place| self.body.row_id(place));
        }
        Ok(found)
    }
}

/// The error of an index that is of other rows than there are.
pub(crate) fn behind(table: &str, key: &str) -> Error {
    Error::Key {
        table: table.to_owned(),
        what: format!(
            "the index of \"{key}\" is not that of its rows, which an earlier version of this program has changed; drop the constraint and add it again"
        ),
    }
}
