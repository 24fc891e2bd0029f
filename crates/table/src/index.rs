//! What is kept of row indexes, and reading them; [`crate::foreign`] makes them.

use memory::Traffic;
use serde::{Deserialize, Serialize};
use store::Transaction;

use crate::block::Matrix;
use crate::catalog::Table;
use crate::decode::{Rows, nulls, numbers};
use crate::error::{Error, Result};
use crate::key;
use crate::lookup::{hold, hold_matrix};
use crate::schema::Definition;
use crate::write;

/// The first number that no row id of a block reaches.
const END_OF_ROWS: i128 = 1 << 48;

/// What an index was made of, and how it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tag {
    /// Space of the parent.
    pub parent: u32,
    /// Version of the parent's rows.
    pub rows: u64,
    pub layout: Layout,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Layout {
    /// For keys from `min` to `max` the row id is key + `offset`; other keys have no parent.
    Affine { offset: i128, min: i128, max: i128 },
    /// A matrix per block.
    Blocks,
}

impl Tag {
    /// Whether every row id it leads to is one that a block can have.
    pub(crate) fn is_sound(&self) -> bool {
        let Layout::Affine { offset, min, max } = self.layout else {
            return true;
        };
        let id = |key: i128| key.checked_add(offset);
        min <= max && id(min).is_some_and(|i| i >= 0) && id(max).is_some_and(|i| i < END_OF_ROWS)
    }

    fn is_of(&self, parent: &Table) -> bool {
        (self.parent, self.rows) == (parent.body.space, parent.body.rows_version)
    }
}

/// The row index of a foreign key in one snapshot.
#[derive(Debug)]
pub struct RowIndex {
    table: Table,
    key: usize,
    layout: Layout,
}

impl Table {
    /// The row index of foreign key number `key`, if there is one and it was made of the very rows
    /// that `parent` has.
    pub fn row_index(&self, parent: &Table, key: usize) -> Option<RowIndex> {
        let tag = self.body.indexes.get(key)?.tag?;
        tag.is_of(parent).then(|| RowIndex {
            table: Table {
                body: self.body.clone(),
                snapshot: self.snapshot.clone(),
            },
            key,
            layout: tag.layout,
        })
    }
}

impl RowIndex {
    /// Whether block number `block` has an index; without one it was added after the last call of
    /// [`crate::index_foreign_keys`]. Rows in the tail never have one.
    pub fn covers(&self, block: usize) -> bool {
        match self.layout {
            Layout::Affine { .. } => block < self.table.blocks(),
            Layout::Blocks => self.matrix(block).is_some(),
        }
    }

    fn matrix(&self, block: usize) -> Option<&Matrix> {
        let (body, number) = (&self.table.body, self.table.body.blocks.get(block)?.key);
        let found = &body.indexes[self.key].blocks;
        let index = found.binary_search_by_key(&number, |m| m.key).ok()?;
        Some(&found[index].value)
    }

    /// For every row of block number `block`, the row id ([`crate::ROW_COLUMN`]) of the parent's
    /// row with its key; NULL where the key is NULL or the parent has no such row. For rows that
    /// are deleted the value means nothing. `None` if the block has no index.
    ///
    /// # Errors
    /// Those of reading pages; [`Error::Damaged`].
    pub async fn rows(&self, block: usize) -> Result<Option<Vec<Option<u64>>>> {
        let traffic = Traffic::new(self.table.snapshot.pool().nodes());
        self.read(block, &traffic, || 0).await
    }

    /// As [`rows`](RowIndex::rows); the bytes that are read are added to `traffic`, the reader
    /// being the node that `here` tells.
    ///
    /// # Errors
    /// Those of [`rows`](RowIndex::rows).
    pub async fn read(
        &self,
        block: usize,
        traffic: &Traffic,
        here: fn() -> usize,
    ) -> Result<Option<Vec<Option<u64>>>> {
        if !self.covers(block) {
            return Ok(None);
        }
        let rows = self.table.block(block).rows;
        let mut tally = |node, bytes| traffic.add(here(), node, bytes);
        let (lane, offset, range) = match self.layout {
            Layout::Affine { offset, min, max } => {
                let columns = &self.table.definition().foreign_keys[self.key].columns;
                let lane = hold(&self.table, block, &columns[..1]).await?.pop();
                (lane, offset, min..=max)
            }
            Layout::Blocks => {
                let matrix = self.matrix(block);
                let lane = match matrix {
                    Some(matrix) => Some(hold_matrix(&self.table, matrix, rows).await?),
                    None => None,
                };
                (lane, 0, 0..=END_OF_ROWS - 1)
            }
        };
        let Some(lane) = lane else {
            return Ok(None);
        };
        if lane.all_null() {
            return Ok(Some(vec![None; rows as usize]));
        }
        let run = Rows::Run(0..rows as usize);
        let valid = nulls(&lane, &run);
        let values = numbers::<i128>(&lane, &run, &mut tally)?;
        let id = |(row, key): (usize, i128)| {
            let named = range.contains(&key) && valid.as_ref().is_none_or(|v| v.is_valid(row));
            named.then(|| (key + offset) as u64)
        };
        Ok(Some(values.into_iter().enumerate().map(id).collect()))
    }
}

/// Removes the row index of foreign key number `key` and frees its pages; false if there is none.
///
/// # Errors
/// [`Error::NoTable`]; [`Error::Key`] if the table has no such foreign key.
pub fn drop_index(tx: &mut Transaction, name: &str, key: usize) -> Result<bool> {
    let count = write::definition(tx, name)?.foreign_keys.len();
    if key >= count {
        let what = format!("there is no foreign key number {key}; it has {count}");
        return Err(Error::Key {
            table: name.to_owned(),
            what,
        });
    }
    let space = write::space(tx, name)?;
    let there = clear(tx, name, space, Some(key))?;
    if there {
        write::raise_stamp(tx, space);
    }
    Ok(there)
}

/// Removes one index, or all; gives whether there was one.
pub(crate) fn clear(
    tx: &mut Transaction,
    name: &str,
    space: u32,
    key: Option<usize>,
) -> Result<bool> {
    let prefix = |kind: &[u8]| match key {
        Some(key) => key::numbered(kind, key as u32),
        None => kind.to_vec(),
    };
    let tags: Vec<_> = tx.prefix(space, &prefix(key::TAG)).collect();
    for (entry, _) in &tags {
        tx.delete(space, entry);
    }
    for (entry, bytes) in tx.prefix(space, &prefix(key::INDEX)).collect::<Vec<_>>() {
        free(tx, &write::decode(&bytes, name)?);
        tx.delete(space, &entry);
    }
    Ok(!tags.is_empty())
}

/// Removes what the indexes hold of a block that goes; its number may be given to another.
pub(crate) fn clear_block(
    tx: &mut Transaction,
    space: u32,
    definition: &Definition,
    block: u32,
) -> Result<()> {
    for foreign in 0..definition.foreign_keys.len() {
        let entry = key::index(foreign, block);
        if let Some(bytes) = tx.get(space, &entry) {
            free(tx, &write::decode(&bytes, &definition.name)?);
            tx.delete(space, &entry);
        }
    }
    Ok(())
}

fn free(tx: &mut Transaction, matrix: &Matrix) {
    for id in matrix.page_ids() {
        tx.free_page(id);
    }
}
