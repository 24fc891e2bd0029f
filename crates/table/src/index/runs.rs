//! Runs: hashes of keys with their rows, in the order of the hashes, in pages.
//!
//! A page holds first all its hashes, then the block of each, then the row of each in its block, little-endian. The
//! record of a run has the least hash of each page, so that a search reads one page.

use std::ops::RangeInclusive;
use std::sync::Arc;

use buffer::Pool;
use store::{Kind, Snapshot, Transaction};

use crate::error::Result;
use crate::format::key;
use crate::format::page::pin;
use crate::format::record::damaged;
use crate::format::run::{Bounds, PageRecord, Run, record};

/// Bytes of an entry.
const ENTRY: usize = 14;
/// Pages that are written together.
const TOGETHER: usize = 16;

/// A row of a block, and the hash of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub hash: u64,
    pub block: u32,
    pub row: u16,
}

/// Appends the entries of a run whose hashes lie in `hashes` to `out`.
///
/// # Errors
/// Those of reading pages; [`crate::Error::Damaged`].
pub(crate) async fn read(
    run: &Run,
    pool: &Pool,
    table: &str,
    hashes: RangeInclusive<u64>,
    out: &mut Vec<Entry>,
) -> Result<()> {
    for at in first_page(run, *hashes.start())..run.len() {
        let (first, id, count) = run.page(at);
        if first > *hashes.end() {
            break;
        }
        let page = pin(pool, id).await?;
        let count = count as usize;
        let parts = parts(&page, count);
        let Some((all, blocks, rows)) = parts else {
            return Err(damaged(table, &format!("page {id} of an index")));
        };
        let hash = |at: usize| u64::from_le_bytes(all[at]);
        let from = all.partition_point(|hash| u64::from_le_bytes(*hash) < *hashes.start());
        for at in (from..count).take_while(|at| hash(*at) <= *hashes.end()) {
            out.push(Entry {
                hash: hash(at),
                block: u32::from_le_bytes(blocks[at]),
                row: u16::from_le_bytes(rows[at]),
            });
        }
    }
    Ok(())
}

/// The first page of a run that may have this hash or a greater one.
fn first_page(run: &Run, hash: u64) -> usize {
    let (mut low, mut high) = (0, run.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if run.page(middle).0 < hash {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    // The page before may end with such hashes.
    low.saturating_sub(1)
}

/// Appends the entries of a run that have one of the hashes `wanted`, which ascend, to `out`. Pages that can have none are not
/// read.
///
/// # Errors
/// As [`read`].
pub(crate) async fn read_like(
    run: &Run,
    pool: &Pool,
    table: &str,
    mut wanted: &[u64],
    out: &mut Vec<Entry>,
) -> Result<()> {
    let Some(least) = wanted.first() else {
        return Ok(());
    };
    for at in first_page(run, *least)..run.len() {
        let (first, id, count) = run.page(at);
        wanted = &wanted[wanted.partition_point(|hash| *hash < first)..];
        let next = (at + 1 < run.len()).then(|| run.page(at + 1).0);
        let own = next.map_or(wanted.len(), |next| {
            wanted.partition_point(|hash| *hash <= next)
        });
        if wanted.is_empty() {
            break;
        }
        if own == 0 {
            continue;
        }
        let page = pin(pool, id).await?;
        let count = count as usize;
        let Some((all, blocks, rows)) = parts(&page, count) else {
            return Err(damaged(table, &format!("page {id} of an index")));
        };
        let mut from = 0;
        for same in wanted[..own].chunk_by(|a, b| a == b) {
            let hash = same[0];
            from += all[from..].partition_point(|own| u64::from_le_bytes(*own) < hash);
            while from < count && u64::from_le_bytes(all[from]) == hash {
                out.push(Entry {
                    hash,
                    block: u32::from_le_bytes(blocks[from]),
                    row: u16::from_le_bytes(rows[from]),
                });
                from += 1;
            }
        }
    }
    Ok(())
}

type Parts<'p> = (&'p [[u8; 8]], &'p [[u8; 4]], &'p [[u8; 2]]);

/// The three arrays of a page.
fn parts(page: &[u8], count: usize) -> Option<Parts<'_>> {
    let (hashes, rest) = page.split_at_checked(8 * count)?;
    let (blocks, rest) = rest.split_at_checked(4 * count)?;
    let rows = rest.get(..2 * count)?;
    Some((
        hashes.as_chunks().0,
        blocks.as_chunks().0,
        rows.as_chunks().0,
    ))
}

/// Writes the pages of a run.
pub(crate) struct RunWriter<'t> {
    tx: &'t Transaction,
    /// Entries of a page.
    capacity: usize,
    waiting: Vec<Entry>,
    pages: Vec<PageRecord>,
    entries: u64,
}

impl<'t> RunWriter<'t> {
    pub(crate) fn new(tx: &'t Transaction) -> RunWriter<'t> {
        RunWriter {
            tx,
            capacity: tx.base().pool().page_size() / ENTRY,
            waiting: Vec::new(),
            pages: Vec::new(),
            entries: 0,
        }
    }

    /// Appends entries, which are not less than those before.
    ///
    /// # Errors
    /// Those of writing pages.
    pub(crate) fn push(&mut self, entries: &[Entry]) -> Result<()> {
        self.waiting.extend_from_slice(entries);
        let whole = self.capacity * TOGETHER;
        let mut done = 0;
        while self.waiting.len() - done >= whole {
            let some = self.waiting[done..done + whole].to_vec();
            self.write(&some)?;
            done += whole;
        }
        self.waiting.drain(..done);
        Ok(())
    }

    fn write(&mut self, entries: &[Entry]) -> Result<()> {
        let page = |entries: &[Entry]| {
            let mut bytes = Vec::with_capacity(entries.len() * ENTRY);
            for entry in entries {
                bytes.extend_from_slice(&entry.hash.to_le_bytes());
            }
            for entry in entries {
                bytes.extend_from_slice(&entry.block.to_le_bytes());
            }
            for entry in entries {
                bytes.extend_from_slice(&entry.row.to_le_bytes());
            }
            bytes
        };
        let chunks = || entries.chunks(self.capacity);
        let pages: Vec<Vec<u8>> = chunks().map(page).collect();
        let slices: Vec<&[u8]> = pages.iter().map(Vec::as_slice).collect();
        let ids = self.tx.write_pages(&slices, 0, Kind::Blob)?;
        for (id, chunk) in ids.into_iter().zip(entries.chunks(self.capacity)) {
            self.pages.push((chunk[0].hash, id, chunk.len() as u32));
        }
        self.entries += entries.len() as u64;
        Ok(())
    }

    /// The run of all entries; `None` if there were none.
    ///
    /// # Errors
    /// Those of writing pages.
    pub(crate) fn finish(self, bounds: &Bounds) -> Result<Option<Run>> {
        let (entries, pages) = self.finish_pages()?;
        Ok(record(entries, bounds, &pages))
    }

    /// How many entries there were, and their pages.
    ///
    /// # Errors
    /// Those of writing pages.
    pub(crate) fn finish_pages(mut self) -> Result<(u64, Vec<PageRecord>)> {
        let rest = std::mem::take(&mut self.waiting);
        self.write(&rest)?;
        Ok((self.entries, self.pages))
    }
}

/// The runs of the index of key `number`, by their numbers.
///
/// # Errors
/// [`crate::Error::Damaged`].
pub(crate) fn all(
    snapshot: &Snapshot,
    (table, space): (&str, u32),
    number: u32,
) -> Result<Vec<(u32, Run)>> {
    let prefix = key::index(number, key::KEY_RUN);
    let entries = snapshot.prefix(space, &prefix);
    let run =
        |(entry, bytes): (Arc<[u8]>, Arc<[u8]>)| Some((key::number(&entry)?, Run::of(bytes)?));
    entries
        .map(|record| run(record).ok_or_else(|| damaged(table, "a run of its index")))
        .collect()
}

/// The key of a run's record.
pub(crate) fn entry(number: u32, run: u32) -> Vec<u8> {
    [&key::index(number, key::KEY_RUN)[..], &run.to_be_bytes()].concat()
}
