//! Entries that wait to become a run. They are divided by the first bits of their hashes, so that several threads can sort and
//! write them.

use store::Transaction;

use crate::error::{Error, Result};
use crate::format::run::{Bounds, PageRecord, Run, record};
use crate::index::runs::{Entry, RunWriter};

/// Parts that entries are divided into, by as many bits of their hashes.
const PARTS: usize = 1 << PART_BITS;
const PART_BITS: u32 = 8;
/// About as many entries as one thread writes at a time; from so many on, several threads are worth it.
const PIECE: usize = 1 << 16;
/// The most pieces.
const PIECES: usize = 64;

/// Entries of a block, part by part, in no order within each.
#[derive(Debug, Default)]
pub(crate) struct Divided {
    parts: Vec<Vec<Entry>>,
    count: usize,
}

impl Divided {
    pub(crate) fn of(entries: &[Entry]) -> Divided {
        let part = |entry: &Entry| (entry.hash >> (u64::BITS - PART_BITS)) as usize;
        if entries.is_empty() {
            return Divided::default();
        }
        let mut counts = [0; PARTS];
        entries.iter().for_each(|entry| counts[part(entry)] += 1);
        let mut parts: Vec<Vec<Entry>> = counts.into_iter().map(Vec::with_capacity).collect();
        for entry in entries {
            parts[part(entry)].push(*entry);
        }
        Divided {
            parts,
            count: entries.len(),
        }
    }
}

/// Entries of blocks.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Those of each part, block by block.
    parts: Vec<Vec<Vec<Entry>>>,
    count: usize,
    bounds: Bounds,
}

impl Waiting {
    /// Takes entries in, and the bounds of their keys.
    pub(crate) fn add(&mut self, divided: Divided, bounds: &Bounds) {
        self.count += divided.count;
        self.bounds.join(bounds);
        self.parts.resize_with(PARTS, Vec::new);
        for (all, own) in self.parts.iter_mut().zip(divided.parts) {
            if !own.is_empty() {
                all.push(own);
            }
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Whether they are so many that several threads should write them.
    pub(crate) fn are_many(&self) -> bool {
        self.count >= PIECE
    }

    /// All of them, to be written, and none is left.
    pub(crate) fn close(&mut self) -> Closing {
        let Waiting {
            mut parts,
            count,
            bounds,
        } = std::mem::take(self);
        let together = PARTS.div_ceil((count / PIECE).clamp(1, PIECES));
        let mut pieces = Vec::new();
        while !parts.is_empty() {
            pieces.push(parts.drain(..together.min(parts.len())).collect());
        }
        Closing {
            done: pieces.iter().map(|_| None).collect(),
            pieces: pieces.into_iter().enumerate().collect(),
            bounds,
        }
    }
}

/// Some parts, and their place among the pieces.
type Piece = (usize, Vec<Vec<Vec<Entry>>>);

/// Entries that become a run, piece by piece.
#[derive(Debug)]
pub(crate) struct Closing {
    /// Those that nobody has taken.
    pieces: Vec<Piece>,
    /// Those that were written, by their places.
    done: Vec<Option<Written>>,
    bounds: Bounds,
}

/// A piece that was written.
#[derive(Debug)]
pub(crate) struct Written {
    at: usize,
    pages: Vec<PageRecord>,
    entries: u64,
    /// Whether two of its entries have the same hash.
    equal: bool,
}

impl Closing {
    /// A piece that nobody has written, for whoever does so now.
    pub(crate) fn next(&mut self) -> Option<Piece> {
        self.pieces.pop()
    }

    /// Takes note of a piece that was written.
    pub(crate) fn put(&mut self, written: Written) {
        let at = written.at;
        self.done[at] = Some(written);
    }

    /// Writes what nobody has taken, and makes the run of all pieces, if there is an entry. Says whether two of its entries have
    /// the same hash.
    ///
    /// # Errors
    /// Those of writing pages; [`Error::Mismatch`] if another thread has not written what it took.
    pub(crate) fn finish(mut self, tx: &Transaction) -> Result<(Option<Run>, bool)> {
        while let Some(piece) = self.next() {
            self.put(write(tx, piece)?);
        }
        let (mut entries, mut pages, mut equal) = (0, Vec::new(), false);
        for written in self.done {
            let written = written.ok_or_else(|| Error::Mismatch {
                table: "the index of a key".to_owned(),
                what: "a part of it was not written".to_owned(),
            })?;
            entries += written.entries;
            pages.extend(written.pages);
            equal |= written.equal;
        }
        Ok((record(entries, &self.bounds, &pages), equal))
    }
}

/// Sorts and writes a piece.
///
/// # Errors
/// Those of writing pages.
pub(crate) fn write(tx: &Transaction, (at, parts): Piece) -> Result<Written> {
    let mut writer = RunWriter::new(tx);
    let mut equal = false;
    let mut entries: Vec<Entry> = Vec::new();
    for part in parts {
        entries.clear();
        part.iter().for_each(|some| entries.extend_from_slice(some));
        drop(part);
        // As the entries are in order, in one comparison.
        entries.sort_unstable_by_key(|entry| {
            let row = u128::from(entry.block) << 16 | u128::from(entry.row);
            u128::from(entry.hash) << 64 | row
        });
        equal |= entries.windows(2).any(|pair| pair[0].hash == pair[1].hash);
        writer.push(&entries)?;
    }
    let (entries, pages) = writer.finish_pages()?;
    Ok(Written {
        at,
        pages,
        entries,
        equal,
    })
}
