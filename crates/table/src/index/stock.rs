//! What a snapshot has of a table, record by record, as searches need it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use buffer::Pool;
use roaring::RoaringBitmap;
use store::Snapshot;

use crate::catalog::table::Body;
use crate::error::Result;
use crate::format::block::Block;
use crate::format::dictionary::DictionaryRecord;
use crate::format::key;
use crate::format::record::{damaged, decode};
use crate::format::row_id::RowId;
use crate::format::tail::{self, Chunk};
use crate::schema::Definition;

/// A table of a snapshot. What is decoded of it is kept.
pub(crate) struct Stock<'a> {
    pub snapshot: &'a Snapshot,
    pub space: u32,
    pub definition: &'a Definition,
    /// The decoded table, where somebody has it.
    body: Option<&'a Body>,
    blocks: HashMap<u32, Option<Arc<Block>>>,
    deleted: HashMap<u32, Option<Arc<RoaringBitmap>>>,
    chunks: HashMap<u32, Option<Arc<Chunk>>>,
    dictionaries: HashMap<usize, Option<Arc<DictionaryRecord>>>,
}

impl<'a> Stock<'a> {
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        space: u32,
        definition: &'a Definition,
        body: Option<&'a Body>,
    ) -> Stock<'a> {
        Stock {
            snapshot,
            space,
            definition,
            body,
            blocks: HashMap::new(),
            deleted: HashMap::new(),
            chunks: HashMap::new(),
            dictionaries: HashMap::new(),
        }
    }

    pub(crate) fn pool(&self) -> &'a Pool {
        self.snapshot.pool()
    }

    /// The block of that number, if there is one.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`], as those of the others.
    pub(crate) fn block(&mut self, number: u32) -> Result<Option<Arc<Block>>> {
        if let Some(body) = self.body {
            let found = body.blocks.binary_search_by_key(&number, |b| b.key);
            return Ok(found.ok().map(|at| body.blocks[at].value.clone()));
        }
        let Entry::Vacant(vacant) = self.blocks.entry(number) else {
            return Ok(self.blocks[&number].clone());
        };
        let bytes = self
            .snapshot
            .get(self.space, &key::numbered(key::BLOCK, number));
        let block = match bytes {
            Some(bytes) => Some(Block::decode(&bytes, &self.definition.name)?),
            None => None,
        };
        let page_size = self.snapshot.pool().page_size();
        let columns = self.definition.columns.len();
        let unsound = block.as_ref().is_some_and(|block: &Block| {
            block.columns.len() != columns
                || !block
                    .columns
                    .iter()
                    .all(|m| m.is_sound(block.rows, page_size))
        });
        if unsound {
            return Err(damaged(&self.definition.name, "the record of a block"));
        }
        Ok(vacant.insert(block.map(Arc::new)).clone())
    }

    /// The chunk of the tail of that number, if there is one.
    pub(crate) fn chunk(&mut self, number: u32) -> Result<Option<Arc<Chunk>>> {
        if let Some(body) = self.body {
            return Ok(body.chunk(number).map(|chunk| chunk.value.clone()));
        }
        let Entry::Vacant(vacant) = self.chunks.entry(number) else {
            return Ok(self.chunks[&number].clone());
        };
        let bytes = self
            .snapshot
            .get(self.space, &key::numbered(key::TAIL, number));
        let chunk = match bytes {
            Some(bytes) => Some(
                tail::decode(&bytes, self.definition)
                    .ok_or_else(|| damaged(&self.definition.name, "a chunk of its tail"))?,
            ),
            None => None,
        };
        Ok(vacant.insert(chunk.map(Arc::new)).clone())
    }

    /// Whether there is such a row, and it is not deleted.
    pub(crate) fn is_live(&mut self, row: RowId) -> Result<bool> {
        match row {
            RowId::Tail { key, row } => {
                let chunk = self.chunk(key)?;
                Ok(chunk.is_some_and(|chunk| usize::from(row) < chunk.len()))
            }
            RowId::Block { key, row } => {
                let block = self.block(key)?;
                let there = block.is_some_and(|block| u32::from(row) < block.rows);
                Ok(there && !self.is_marked(key, row)?)
            }
        }
    }

    fn is_marked(&mut self, block: u32, row: u16) -> Result<bool> {
        if let Some(body) = self.body {
            let marks = body.deleted.get(&block);
            return Ok(marks.is_some_and(|marks| marks.value.contains(row.into())));
        }
        let marks = match self.deleted.entry(block) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let bytes = self
                    .snapshot
                    .get(self.space, &key::numbered(key::DELETED, block));
                let marks = match bytes {
                    Some(bytes) => {
                        Some(RoaringBitmap::deserialize_from(&bytes[..]).map_err(|_| {
                            damaged(&self.definition.name, "the record of deleted rows")
                        })?)
                    }
                    None => None,
                };
                vacant.insert(marks.map(Arc::new))
            }
        };
        Ok(marks
            .as_ref()
            .is_some_and(|marks| marks.contains(row.into())))
    }

    /// The record of a column's dictionary.
    pub(crate) fn dictionary(&mut self, column: usize) -> Result<Option<Arc<DictionaryRecord>>> {
        let Entry::Vacant(vacant) = self.dictionaries.entry(column) else {
            return Ok(self.dictionaries[&column].clone());
        };
        let record = match self.snapshot.get(self.space, &key::dictionary(column)) {
            Some(bytes) => Some(Arc::new(decode(&bytes, &self.definition.name)?)),
            None => None,
        };
        Ok(vacant.insert(record).clone())
    }
}
