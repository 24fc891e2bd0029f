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
use crate::schema::{Definition, normalise};
use crate::write::chunker::Chunker;
use crate::write::loader::Loader;

/// Rows from which an insert goes to blocks at once, and at which the tail is sealed.
const SEAL_ROWS: usize = 65_536;
/// An insert of at least this many rows does not pass through the tail.
pub(super) const DIRECT_ROWS: usize = 16_384;
/// Neighbouring chunks below [`SMALL_ROWS`] that may pile up before they become one.
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
    if rows + batch.num_rows() >= SEAL_ROWS {
        let mut all = Vec::with_capacity(chunks.len() + 1);
        for chunk in &chunks {
            all.push(chunk.decode(definition)?.rows);
            remove(&mut tx, place, chunk.number);
        }
        all.push(batch.clone());
        return Ok(append_blocks(tx, name, &all).await?.0);
    }
    let number = next_chunk(&tx, space);
    put(&mut tx, place, number, &tail::Chunk::new(batch.clone()))?;
    let runs = chunks.chunk_by(|a, b| a.is_small() == b.is_small());
    for run in runs.filter(|run| run[0].is_small() && run.len() >= SMALL_CHUNKS) {
        merge(&mut tx, place, run)?;
    }
    changed(&mut tx, name, space)?;
    Ok(tx)
}

/// Makes neighbours one chunk, which has the number of the last.
fn merge(tx: &mut Transaction, place: Place<'_>, chunks: &[Undecoded]) -> Result<()> {
    let Some(last) = chunks.last() else {
        return Ok(());
    };
    let decode = |own: &Undecoded| Ok((own.number, own.decode(place.definition)?));
    let decoded = chunks.iter().map(decode).collect::<Result<Vec<_>>>()?;
    chunks.iter().for_each(|own| remove(tx, place, own.number));
    let merged = tail::Chunk::merged(&decoded, place.definition)?;
    put(tx, place, last.number, &merged)
}

fn put(tx: &mut Transaction, place: Place<'_>, number: u32, chunk: &tail::Chunk) -> Result<()> {
    let entry = key::numbered(key::TAIL, number);
    tx.put(place.space, &entry, &tail::encode(chunk)?);
    maintain::put_chunk(tx, place, number, &chunk.rows)
}

fn remove(tx: &mut Transaction, place: Place<'_>, number: u32) {
    tx.delete(place.space, &key::numbered(key::TAIL, number));
    maintain::remove_chunk(tx, place, number);
}

/// The number of the next chunk of a tail: greater than those that there are, and none that there has been, so that no row gets
/// the id of one that was deleted. It is that of the changes of the table's rows, each of which adds one chunk at most; these
/// are counted from 0 again after 2^29, as row ids leave 30 bits to it.
pub(super) fn next_chunk(tx: &Transaction, space: u32) -> u32 {
    let changes = key::counter(tx.get(space, key::ROWS).as_deref());
    let changes = (changes & ((1 << 29) - 1)) as u32;
    let last = tx.prefix(space, key::TAIL).last();
    let last = last.and_then(|(entry, _)| key::number(&entry));
    last.map_or(0, |last| last + 1).max(changes)
}

/// A chunk of the tail, not decoded.
struct Undecoded {
    number: u32,
    bytes: Arc<[u8]>,
    rows: usize,
}

impl Undecoded {
    /// Whether it may be merged with its neighbours.
    fn is_small(&self) -> bool {
        self.rows < SMALL_ROWS
    }

    fn decode(&self, definition: &Definition) -> Result<tail::Chunk> {
        let chunk = tail::decode(&self.bytes, definition);
        chunk.ok_or_else(|| damaged(&definition.name, "a chunk of its tail"))
    }
}

fn tail_chunks(tx: &Transaction, place: Place<'_>) -> Result<Vec<Undecoded>> {
    let chunk = |(entry, bytes): (Arc<[u8]>, Arc<[u8]>)| {
        let decoded = || Some(tail::decode(&bytes, place.definition)?.len());
        Some(Undecoded {
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
