//! Batches of any length become blocks of rows.

use arrow::array::RecordBatch;

use crate::format::block::BLOCK_ROWS;

/// Cuts a stream of batches into pieces of 65,536 rows.
#[derive(Debug, Default)]
pub struct Chunker {
    open: Vec<RecordBatch>,
    rows: usize,
}

impl Chunker {
    /// Takes a batch; gives the blocks that became full.
    pub fn push(&mut self, batch: RecordBatch) -> Vec<Vec<RecordBatch>> {
        let mut full = Vec::new();
        let mut batch = batch;
        while self.rows + batch.num_rows() >= BLOCK_ROWS {
            let take = BLOCK_ROWS - self.rows;
            self.open.push(batch.slice(0, take));
            batch = batch.slice(take, batch.num_rows() - take);
            full.push(std::mem::take(&mut self.open));
            self.rows = 0;
        }
        if batch.num_rows() > 0 {
            self.rows += batch.num_rows();
            self.open.push(batch);
        }
        full
    }

    /// What is left, if anything.
    pub fn rest(&mut self) -> Option<Vec<RecordBatch>> {
        self.rows = 0;
        let open = std::mem::take(&mut self.open);
        (!open.is_empty()).then_some(open)
    }
}
