//! Appending rows.

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use store::Transaction;

use crate::catalog::space::{changed, definition, space};
use crate::error::Result;
use crate::format::record::damaged;
use crate::format::{key, tail};
use crate::schema::{Definition, normalise};
use crate::write::chunker::Chunker;
use crate::write::loader::Loader;

/// Rows from which an insert goes to blocks at once, and at which the tail is sealed.
const SEAL_ROWS: usize = 65_536;
/// An insert of at least this many rows does not pass through the tail.
const DIRECT_ROWS: usize = 16_384;
/// Chunks below [`SMALL_ROWS`] that may pile up before they become one.
const SMALL_CHUNKS: usize = 64;
/// A chunk of at least this many rows is not merged again.
const SMALL_ROWS: usize = 1_024;

/// Appends rows, whose columns must be in the order of the table, and returns their number. From
/// 16,384 rows on they are written to blocks; fewer go to the tail, which is in the log.
///
/// # Errors
/// [`Error::NoTable`](crate::Error::NoTable); those of [`normalise`]; those of the store. After an error the
/// transaction must be dropped.
pub async fn insert(
    tx: Transaction,
    name: &str,
    batches: &[RecordBatch],
) -> Result<(Transaction, u64)> {
    let mut tx = tx;
    let definition = definition(&tx, name)?;
    let batches = batches
        .iter()
        .map(|b| normalise(b, &definition))
        .collect::<Result<Vec<_>>>()?;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    if rows >= DIRECT_ROWS {
        return append_blocks(tx, name, &batches).await;
    }
    if rows > 0 {
        let batch = concat_batches(&definition.schema(), &batches)?;
        tx = append_tail(tx, name, &definition, &batch).await?;
    }
    Ok((tx, rows as u64))
}

/// Puts whole batches into blocks of up to 65,536 rows.
async fn append_blocks(
    tx: Transaction,
    name: &str,
    batches: &[RecordBatch],
) -> Result<(Transaction, u64)> {
    let loader = Loader::new(tx, name).await?;
    let mut chunker = Chunker::default();
    let mut ordinal = 0;
    for batch in batches {
        for block in chunker.push(batch.clone()) {
            loader.block(ordinal, &block)?;
            ordinal += 1;
        }
    }
    if let Some(block) = chunker.rest() {
        loader.block(ordinal, &block)?;
    }
    loader.finish()
}

async fn append_tail(
    mut tx: Transaction,
    name: &str,
    definition: &Definition,
    batch: &RecordBatch,
) -> Result<Transaction> {
    let space = space(&tx, name)?;
    let chunks = tail_chunks(&tx, space, name, definition)?;
    let rows: usize = chunks.iter().map(|(_, c)| c.num_rows()).sum();
    if rows + batch.num_rows() >= SEAL_ROWS {
        let mut all: Vec<_> = chunks.iter().map(|(_, chunk)| chunk.clone()).collect();
        all.push(batch.clone());
        for (number, _) in &chunks {
            tx.delete(space, &key::numbered(key::TAIL, *number));
        }
        return Ok(append_blocks(tx, name, &all).await?.0);
    }
    let small: Vec<_> = chunks
        .iter()
        .filter(|(_, c)| c.num_rows() < SMALL_ROWS)
        .collect();
    let next = chunks.last().map_or(0, |(number, _)| number + 1);
    let mut merged = batch.clone();
    if small.len() >= SMALL_CHUNKS {
        let parts = small.iter().map(|(_, chunk)| chunk).chain([batch]);
        merged = concat_batches(&definition.schema(), parts)?;
        for (number, _) in &small {
            tx.delete(space, &key::numbered(key::TAIL, *number));
        }
    }
    tx.put(
        space,
        &key::numbered(key::TAIL, next),
        &tail::encode(&merged)?,
    );
    changed(&mut tx, name, space)?;
    Ok(tx)
}

fn tail_chunks(
    tx: &Transaction,
    space: u32,
    name: &str,
    definition: &Definition,
) -> Result<Vec<(u32, RecordBatch)>> {
    let decode = |(entry, bytes): (_, std::sync::Arc<[u8]>)| {
        let entry: std::sync::Arc<[u8]> = entry;
        Some((key::number(&entry)?, tail::decode(&bytes, definition)?))
    };
    tx.prefix(space, key::TAIL)
        .map(|record| decode(record).ok_or_else(|| damaged(name, "a chunk of its tail")))
        .collect()
}
