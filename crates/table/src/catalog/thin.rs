//! Blocks of which most rows are deleted. They are read as others are, so what is left of them is worth moving.

use crate::catalog::table::Table;
use crate::format::row_id::RowId;

impl Table {
    /// The places of the blocks of which at most the share `left` of the rows is left.
    pub fn thin_blocks(&self, left: f64) -> Vec<usize> {
        let body = &self.body;
        let is_thin = |place: &usize| {
            let block = &body.blocks[*place];
            let deleted = body.deleted.get(&block.key);
            let deleted = deleted.map_or(0, |deleted| deleted.value.len());
            let rows = f64::from(block.value.rows);
            deleted > 0 && rows - deleted as f64 <= left * rows
        };
        (0..body.blocks.len()).filter(is_thin).collect()
    }

    /// The row ids of what is left of the block at a place, which ascend.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn rows_left(&self, place: usize) -> Vec<u64> {
        let block = &self.body.blocks[place];
        let deleted = self.body.deleted.get(&block.key);
        let is_left = |row: &u32| deleted.is_none_or(|deleted| !deleted.value.contains(*row));
        let id = |row: u32| RowId::Block {
            key: block.key,
            row: row as u16,
        };
        let rows = (0..block.value.rows).filter(is_left);
        rows.map(|row| id(row).number()).collect()
    }
}
