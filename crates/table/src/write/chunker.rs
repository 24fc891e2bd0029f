//! Batches of any length become blocks of rows.

use arrow::array::RecordBatch;

use crate::format::block::BLOCK_ROWS;

/// Cuts a stream of batches into blocks of [`BLOCK_ROWS`] rows, each a list of slices.
#[derive(Debug, Default)]
pub struct Chunker {
    open: Vec<RecordBatch>,
    rows: usize,
}

impl Chunker {
    /// Adds a batch, and returns the blocks that it filled.
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

    /// The rows since the last full block, if any. The next batch begins a new block.
    pub fn rest(&mut self) -> Option<Vec<RecordBatch>> {
        self.rows = 0;
        let open = std::mem::take(&mut self.open);
        (!open.is_empty()).then_some(open)
    }
}
