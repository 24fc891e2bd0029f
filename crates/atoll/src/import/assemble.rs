//! Cuts batches, which arrive in any order, into the blocks of a table.

use std::collections::{BTreeMap, HashSet, VecDeque};

use arrow::array::{Array, ArrayData};
use arrow::record_batch::RecordBatch;

/// Rows of a full block (design L1).
pub(crate) const BLOCK_ROWS: u64 = 65_536;

/// The rows of one block of the table.
#[derive(Debug)]
pub(crate) struct Block {
    /// The block's place: its first row is `ordinal * BLOCK_ROWS`.
    pub ordinal: u64,
    /// The rows, in order.
    pub batches: Vec<RecordBatch>,
}

impl Block {
    /// Rows in the block.
    pub fn rows(&self) -> u64 {
        self.batches
            .iter()
            .map(|batch| batch.num_rows() as u64)
            .sum()
    }

    /// Bytes of the buffers that the rows lie in; one that several columns or batches share, such as a piece of a file,
    /// counts once.
    pub fn bytes(&self) -> u64 {
        let mut seen = HashSet::new();
        let columns = self.batches.iter().flat_map(RecordBatch::columns);
        columns
            .map(|column| unseen(&column.to_data(), &mut seen))
            .sum()
    }
}

/// Bytes of the buffers of `data` that are not among `seen` yet, by address.
fn unseen(data: &ArrayData, seen: &mut HashSet<usize>) -> u64 {
    let nulls = data.nulls().map(|nulls| nulls.buffer());
    let mut bytes = 0;
    for buffer in data.buffers().iter().chain(nulls) {
        if seen.insert(buffer.data_ptr().as_ptr().addr()) {
            bytes += buffer.capacity() as u64;
        }
    }
    let children = data.child_data().iter();
    bytes + children.map(|child| unseen(child, seen)).sum::<u64>()
}

/// A block of which some rows have not arrived yet.
#[derive(Debug, Default)]
struct Open {
    /// The rows so far: always the sum over `parts`, and below [`BLOCK_ROWS`].
    rows: u64,
    /// The first row's place and the rows, disjoint, in order of arrival.
    parts: Vec<(u64, RecordBatch)>,
}

impl Open {
    fn close(mut self, ordinal: u64) -> Block {
        self.parts.sort_by_key(|(start, _)| *start);
        Block {
            ordinal,
            batches: self.parts.into_iter().map(|(_, batch)| batch).collect(),
        }
    }
}

/// Blocks under construction. Only rows from the ends of pieces that are being read wait here: those in the middle of
/// a piece complete their block at once.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    open: BTreeMap<u64, Open>,
}

impl Assembler {
    /// Takes the rows `start..start + batch.num_rows()` of the table, and appends the blocks that they complete to
    /// `ready`. No row may be passed twice.
    pub fn add(&mut self, start: u64, batch: &RecordBatch, ready: &mut VecDeque<Block>) {
        let rows = batch.num_rows() as u64;
        let mut taken = 0;
        while taken < rows {
            let at = start + taken;
            let ordinal = at / BLOCK_ROWS;
            let take = (rows - taken).min((ordinal + 1) * BLOCK_ROWS - at);
            let open = self.open.entry(ordinal).or_default();
            open.parts
                .push((at, batch.slice(taken as usize, take as usize)));
            open.rows += take;
            taken += take;
            if open.rows == BLOCK_ROWS
                && let Some(full) = self.open.remove(&ordinal)
            {
                ready.push_back(full.close(ordinal));
            }
        }
    }

    /// Returns the last, partial block; none if the last block is full.
    ///
    /// If more than one block is left, rows are missing. They are returned as they are: the caller, who counts rows,
    /// will notice.
    pub fn finish(self) -> Vec<Block> {
        self.open
            .into_iter()
            .map(|(ordinal, open)| open.close(ordinal))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};

    use super::*;

    fn batch(from: u64, rows: u64) -> RecordBatch {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, false)]));
        let values = Int64Array::from_iter_values((from..from + rows).map(|v| v as i64));
        RecordBatch::try_new(schema, vec![Arc::new(values)]).expect("one column")
    }

    fn values(block: &Block) -> Vec<i64> {
        let columns = block
            .batches
            .iter()
            .map(|b| b.column(0).as_primitive::<Int64Type>());
        columns.flat_map(|c| c.values().to_vec()).collect()
    }

    #[test]
    fn shared_buffers_count_once() {
        let whole = batch(0, 8_000);
        let block = |batches| Block {
            ordinal: 0,
            batches,
        };
        let one = block(vec![whole.clone()]).bytes();
        assert!((64_000..70_000).contains(&one), "{one}");
        let parts = vec![whole.slice(0, 10), whole.slice(10, 7_990), whole.clone()];
        assert_eq!(block(parts).bytes(), one);
        assert_eq!(block(vec![whole, batch(0, 8_000)]).bytes(), 2 * one);
    }

    #[test]
    fn pieces_in_any_order_become_blocks_in_row_order() {
        let cuts = [0, 10, 65_530, 65_536, 140_000, 200_000, 262_144, 262_150];
        let mut pieces: Vec<_> = cuts.windows(2).map(|w| (w[0], w[1] - w[0])).collect();
        for turn in 0..pieces.len() {
            pieces.rotate_left(1);
            pieces.swap(0, turn);
            let (mut assembler, mut ready) = (Assembler::default(), VecDeque::new());
            for (start, rows) in &pieces {
                assembler.add(*start, &batch(*start, *rows), &mut ready);
            }
            let mut blocks: Vec<Block> = ready.into_iter().chain(assembler.finish()).collect();
            blocks.sort_by_key(|block| block.ordinal);
            let sizes: Vec<u64> = blocks.iter().map(Block::rows).collect();
            assert_eq!(sizes, [65_536, 65_536, 65_536, 65_536, 6]);
            let all: Vec<i64> = blocks.iter().flat_map(values).collect();
            assert!(all.iter().copied().eq(0..262_150), "rows out of order");
        }
    }

    #[test]
    fn a_batch_longer_than_a_block_is_cut() {
        let (mut assembler, mut ready) = (Assembler::default(), VecDeque::new());
        assembler.add(0, &batch(0, 3 * BLOCK_ROWS), &mut ready);
        assert_eq!(
            ready.iter().map(|b| b.ordinal).collect::<Vec<_>>(),
            [0, 1, 2]
        );
        assert!(assembler.finish().is_empty());
    }
}
