//! Co-partitioning by foreign key: a block goes to the node of the rows that it refers to (M2).
//!
//! Blocks get placement buckets in turn, so that every node has its share. A table whose rows stand in the order of a
//! large parent's keys (`lineitem` and `orders`) does better: a block of it gets the bucket of the parent's block that
//! has most of its keys, so that rows and what they are joined with are on one node. This asks for
//!
//! * a foreign key of one column of whole numbers, the first such in the definition;
//! * a parent of at least [`LEAST_BLOCKS`] blocks when the block is written, each with keys greater than those of the
//!   block before. Smaller parents would leave nodes without blocks;
//! * at least a third of the block's keys in one block of the parent, and keys that reach over at least a
//!   [`LEAST_REACH`]th of it: else very many blocks could go to one node.
//!
//! All others keep their turn. Nothing moves a block later: one that is loaded before its parent keeps its turn, too.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Int64Type};
use store::Transaction;

use crate::catalog::space;
use crate::error::Result;
use crate::format::block::{Block, Zone};
use crate::format::key;
use crate::schema::{Definition, ForeignKey};

/// The fewest blocks of a parent by whose keys blocks are placed.
const LEAST_BLOCKS: usize = 16;
/// A block is placed by a parent's block only if its keys span at least one part in this many of that block's keys.
const LEAST_REACH: i128 = 256;
/// One row in this many is sampled.
const STEP: usize = 16;

/// The placement buckets of a parent's blocks, by key.
#[derive(Debug)]
pub(crate) struct CoPartitioning {
    /// The referring column.
    column: usize,
    /// Least key, greatest key and bucket of each block. Invariant: ascending, and no two overlap.
    blocks: Vec<(i128, i128, u8)>,
}

impl CoPartitioning {
    /// For the blocks of `definition`'s table; none where they keep their turn.
    ///
    /// # Errors
    /// Those of reading the catalog.
    pub fn of(tx: &Transaction, definition: &Definition) -> Result<Option<CoPartitioning>> {
        for foreign in &definition.foreign_keys {
            if let Some(found) = CoPartitioning::by(tx, definition, foreign)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn by(
        tx: &Transaction,
        child: &Definition,
        foreign: &ForeignKey,
    ) -> Result<Option<CoPartitioning>> {
        let ([column], [name]) = (&foreign.columns[..], &foreign.parent_columns[..]) else {
            return Ok(None);
        };
        if foreign.parent == child.name {
            return Ok(None);
        }
        let parent = space::definition(tx, &foreign.parent)?;
        let position = parent.position(name)?;
        let (from, to) = (&child.columns[*column], &parent.columns[position]);
        if !is_number(&from.data_type) || !comparable(&from.data_type, &to.data_type) {
            return Ok(None);
        }
        let space = space::space(tx, &parent.name)?;
        let mut blocks = Vec::new();
        for (_, bytes) in tx.prefix(space, key::BLOCK) {
            let block = Block::decode(&bytes, &parent.name)?;
            let Some(Zone::Int { min, max }) = block.columns[position].zone else {
                return Ok(None);
            };
            blocks.push((min, max, block.bucket));
        }
        let ascends = blocks.windows(2).all(|pair| pair[0].1 < pair[1].0);
        let column = *column;
        Ok((ascends && blocks.len() >= LEAST_BLOCKS).then_some(CoPartitioning { column, blocks }))
    }

    /// The bucket of a block of these rows; none if it keeps its turn.
    pub fn bucket(&self, rows: &RecordBatch) -> Option<u8> {
        let keys = numbers(rows.column(self.column))?;
        let mut some: Vec<usize> = keys.iter().filter_map(|key| self.block(*key)).collect();
        some.sort_unstable();
        let runs = some.chunk_by(|a, b| a == b);
        let most = runs.max_by_key(|run| run.len())?;
        let (min, max, bucket) = self.blocks[most[0]];
        let reach = keys.iter().max()? - keys.iter().min()?;
        let enough = 3 * most.len() >= keys.len() && LEAST_REACH * (reach + 1) > max - min;
        enough.then_some(bucket)
    }

    /// The parent's block that has `key`, if any.
    fn block(&self, key: i128) -> Option<usize> {
        let place = self.blocks.partition_point(|(_, max, _)| *max < key);
        let (min, _, _) = self.blocks.get(place)?;
        (*min <= key).then_some(place)
    }
}

/// Whether equal stored numbers of two types mean equal values.
fn comparable(a: &DataType, b: &DataType) -> bool {
    use DataType::Decimal128;
    match (a, b) {
        (Decimal128(_, a), Decimal128(_, b)) => a == b,
        _ => a.is_integer() && b.is_integer(),
    }
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_integer() || matches!(data_type, DataType::Decimal128(..))
}

/// Every [`STEP`]th value of a column for which [`is_number`], NULLs apart, as stored; none for any other.
fn numbers(column: &ArrayRef) -> Option<Vec<i128>> {
    let rows = (0..column.len()).step_by(STEP);
    let rows = rows.filter(|row| column.is_valid(*row));
    Some(match column.data_type() {
        DataType::Decimal128(..) => {
            let values = column.as_primitive::<Decimal128Type>();
            rows.map(|row| values.value(row)).collect()
        }
        _ => {
            // What no `i64` holds becomes NULL.
            let values = cast(column, &DataType::Int64).ok()?;
            let values = values.as_primitive_opt::<Int64Type>()?;
            let known = rows.filter(|row| values.is_valid(*row));
            known.map(|row| i128::from(values.value(row))).collect()
        }
    })
}
