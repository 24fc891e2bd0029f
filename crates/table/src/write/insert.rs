//! Appending rows.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use store::Transaction;

use crate::catalog::space::{changed, definition, space};
use crate::error::Result;
use crate::format::record::damaged;
use crate::format::{key, tail};
use crate::index::maintain;
use crate::index::settle::Place;
use crate::schema::normalise;
use crate::write::chunker::Chunker;
use crate::write::loader::Loader;

/// Rows from which an insert goes to blocks at once, and at which the tail is sealed.
const SEAL_ROWS: usize = 65_536;
/// An insert of at least this many rows does not pass through the tail.
pub(super) const DIRECT_ROWS: usize = 16_384;
/// Chunks below [`SMALL_ROWS`] that may pile up before they become one.
const SMALL_CHUNKS: usize = 64;
/// A chunk of at least this many rows is not merged again.
const SMALL_ROWS: usize = 1_024;

/// Appends rows, whose columns must be in the order of the table, and returns their number. From
/// 16,384 rows on they are written to blocks; fewer go to the tail, which is in the log.
///
/// # Errors
/// [`Error::NoTable`](crate::Error::NoTable); [`Error::Duplicate`](crate::Error::Duplicate) for a key that another row
/// has; those of [`normalise`]; those of the store. After an error the
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
        let place = Place {
            space: space(&tx, name)?,
            definition: &definition,
        };
        maintain::are_new(&tx, place, &batch).await?;
        tx = append_tail(tx, place, &batch).await?;
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
    loader.finish().await
}

async fn append_tail(
    mut tx: Transaction,
    place: Place<'_>,
    batch: &RecordBatch,
) -> Result<Transaction> {
    let Place { space, definition } = place;
    let name = &definition.name;
    let chunks = tail_chunks(&tx, place)?;
    let rows: usize = chunks.iter().map(|chunk| chunk.rows).sum();
    let decode = |chunk: &Chunk| {
        let batch = tail::decode(&chunk.bytes, definition);
        batch.ok_or_else(|| damaged(name, "a chunk of its tail"))
    };
    let mut remove = |chunk: &Chunk| {
        tx.delete(space, &key::numbered(key::TAIL, chunk.number));
        maintain::remove_chunk(&mut tx, place, chunk.number);
    };
    if rows + batch.num_rows() >= SEAL_ROWS {
        let mut all = chunks.iter().map(decode).collect::<Result<Vec<_>>>()?;
        all.push(batch.clone());
        chunks.iter().for_each(remove);
        return Ok(append_blocks(tx, name, &all).await?.0);
    }
    let small: Vec<_> = chunks.iter().filter(|c| c.rows < SMALL_ROWS).collect();
    let next = chunks.last().map_or(0, |chunk| chunk.number + 1);
    let mut merged = batch.clone();
    if small.len() >= SMALL_CHUNKS {
        let parts = small.iter().map(|chunk| decode(chunk));
        let mut parts = parts.collect::<Result<Vec<_>>>()?;
        parts.push(merged);
        merged = concat_batches(&definition.schema(), &parts)?;
        small.into_iter().for_each(&mut remove);
    }
    tx.put(
        space,
        &key::numbered(key::TAIL, next),
        &tail::encode(&merged)?,
    );
    maintain::put_chunk(&mut tx, place, next, &merged)?;
    changed(&mut tx, name, space)?;
    Ok(tx)
}

/// A chunk of the tail, not decoded.
struct Chunk {
    number: u32,
    bytes: Arc<[u8]>,
    rows: usize,
}

fn tail_chunks(tx: &Transaction, place: Place<'_>) -> Result<Vec<Chunk>> {
    let chunk = |(entry, bytes): (Arc<[u8]>, Arc<[u8]>)| {
        let decoded = || Some(tail::decode(&bytes, place.definition)?.num_rows());
        Some(Chunk {
            number: key::number(&entry)?,
            rows: tail::rows(&bytes).or_else(decoded)?,
            bytes,
        })
    };
    let damaged = || damaged(&place.definition.name, "a chunk of its tail");
    tx.prefix(place.space, key::TAIL)
        .map(|record| chunk(record).ok_or_else(damaged))
        .collect()
}
