//! The keys of blocks that are added to a table, gathered while these are written.

use arrow::array::RecordBatch;
use parking_lot::Mutex;
use std::ops::Range;
use store::Transaction;

use crate::error::Result;
use crate::format::keys::hash;
use crate::format::run::{Bounds, Run};
use crate::index::keys::Keys;
use crate::index::ranges::{LONGEST, Stretch};
use crate::index::runs::Entry;
use crate::index::waiting::{self, Closing, Divided, Waiting};
use crate::schema::Key;

/// Entries that are in memory before they become a run, if nobody says how many.
const MOST: usize = 1 << 20;
/// The fewest rows of a stretch of ascending keys that gets a range, unless it is a whole block: a range is in memory, as
/// the whole catalog is.
const STRETCH: usize = 512;

/// Where stored blocks are cut, as nobody knows the batches that they came from.
const CUT: usize = 4_096;

/// The keys of new blocks, for the index of one key. Many threads add blocks.
#[derive(Debug)]
pub(crate) struct Gather {
    pub key: Key,
    gathered: Mutex<Gathered>,
}

/// What was gathered.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Rows whose keys ascend.
    pub ascending: Vec<Ascending>,
    /// The other rows that have keys, each with the bounds of these.
    pub hashed: Vec<Hashed>,
    /// Whether two entries of one run have the same hash.
    pub equal: bool,
    /// How many entries more than [`MOST`] may be in memory.
    more: usize,
    /// Entries of `hashed` that are in no run yet.
    waiting: Waiting,
    /// Those that are becoming one, by several threads.
    closing: Option<Closing>,
    /// Runs that were written; their records are in no catalog yet.
    pub runs: Vec<Run>,
}

/// Rows whose keys ascend, their least and their greatest key.
#[derive(Debug)]
pub(crate) struct Ascending {
    pub stretch: Stretch,
    pub least: Vec<u8>,
    pub greatest: Vec<u8>,
}

/// Rows of a block whose keys are hashed: those from the first to the last that are in no range.
#[derive(Debug)]
pub(crate) struct Hashed {
    pub block: u32,
    pub rows: Range<u32>,
    pub bounds: Bounds,
}

/// The keys of a block, sorted out.
#[derive(Debug, Default)]
struct Sorted {
    ascending: Vec<Ascending>,
    /// Of the rows that are hashed.
    entries: Vec<Entry>,
    hashed: Option<Hashed>,
}

impl Gather {
    pub(crate) fn new(key: Key) -> Gather {
        Gather {
            key,
            gathered: Mutex::default(),
        }
    }

    /// Takes in the rows of a new block, which came together from batches: `cuts` are the rows that were the first of one,
    /// in order.
    ///
    /// # Errors
    /// Those of writing pages.
    pub(crate) fn block(
        &self,
        tx: &Transaction,
        block: u32,
        rows: &RecordBatch,
        cuts: &[usize],
    ) -> Result<()> {
        let columns = self.key.columns.iter().map(|c| rows.column(*c).clone());
        let keys = Keys::of(&columns.collect::<Vec<_>>())?;
        let sorted = Sorted::of(block, &keys, cuts);
        let divided = Divided::of(&sorted.entries);
        let full = self.gathered.lock().add(sorted, divided);
        if let Some(full) = full {
            let (run, equal) = full.finish(tx)?;
            let mut gathered = self.gathered.lock();
            gathered.equal |= equal;
            gathered.runs.extend(run);
        }
        Ok(())
    }

    /// Keeps up to `more` further entries in memory before they become a run.
    pub(crate) fn keep(&self, more: usize) {
        self.gathered.lock().more = more;
    }

    /// Sorts and writes some of the entries, once all blocks have come, and says whether there were any. Many threads may do so
    /// at once; what is left when nothing is found is being written by others.
    ///
    /// # Errors
    /// Those of writing pages.
    pub(crate) fn write_some(&self, tx: &Transaction) -> Result<bool> {
        let piece = {
            let mut gathered = self.gathered.lock();
            if gathered.closing.is_none() && gathered.waiting.are_many() {
                gathered.closing = Some(gathered.waiting.close());
            }
            gathered.closing.as_mut().and_then(Closing::next)
        };
        let Some(piece) = piece else {
            return Ok(false);
        };
        let written = waiting::write(tx, piece)?;
        if let Some(closing) = &mut self.gathered.lock().closing {
            closing.put(written);
        }
        Ok(true)
    }

    pub(crate) fn into_inner(self) -> (Key, Gathered) {
        (self.key, self.gathered.into_inner())
    }
}

impl Gathered {
    /// Takes in the keys of a block.
    ///
    /// # Errors
    /// Those of writing pages.
    pub(crate) fn take(&mut self, tx: &Transaction, block: u32, keys: &Keys) -> Result<()> {
        let cuts: Vec<usize> = (0..keys.len()).step_by(CUT).collect();
        let sorted = Sorted::of(block, keys, &cuts);
        let divided = Divided::of(&sorted.entries);
        let full = self.add(sorted, divided);
        self.write(tx, full)
    }

    /// Takes in the keys of rows that are to have no range; `keys` begin with that of row `first`.
    ///
    /// # Errors
    /// Those of writing pages.
    pub(crate) fn take_hashed(
        &mut self,
        tx: &Transaction,
        (block, first): (u32, u16),
        keys: &Keys,
    ) -> Result<()> {
        let mut sorted = Sorted::default();
        for (row, key) in keys.iter() {
            sorted.hash(block, u32::from(first) + row as u32, key);
        }
        let divided = Divided::of(&sorted.entries);
        let full = self.add(sorted, divided);
        self.write(tx, full)
    }

    /// Keeps what a block has; gives all entries back once there are many.
    fn add(&mut self, sorted: Sorted, divided: Divided) -> Option<Closing> {
        self.ascending.extend(sorted.ascending);
        if let Some(hashed) = sorted.hashed {
            self.waiting.add(divided, &hashed.bounds);
            self.hashed.push(hashed);
        }
        (self.waiting.len() >= MOST + self.more).then(|| self.waiting.close())
    }

    fn write(&mut self, tx: &Transaction, full: Option<Closing>) -> Result<()> {
        if let Some(full) = full {
            let (run, equal) = full.finish(tx)?;
            self.equal |= equal;
            self.runs.extend(run);
        }
        Ok(())
    }

    /// Makes runs of what is left.
    ///
    /// # Errors
    /// Those of writing pages.
    pub(crate) fn finish(&mut self, tx: &Transaction) -> Result<()> {
        let closing = self.closing.take();
        self.write(tx, closing)?;
        let rest = self.waiting.close();
        self.write(tx, Some(rest))
    }
}

impl Sorted {
    /// Cuts a block where a key is not greater than the one before, or where a row has none; and at `cuts`, because batches
    /// of several workers may ascend by chance, with the keys of other blocks between them. Neighbours that have nothing
    /// between them become one when they are settled.
    fn of(block: u32, keys: &Keys, cuts: &[usize]) -> Sorted {
        let mut sorted = Sorted::default();
        let rows = keys.len();
        let mut first = 0;
        while first < rows {
            let mut end = first + 1;
            if let Some(mut before) = keys.get(first) {
                while let Some(key) = (end < rows).then(|| keys.get(end)).flatten()
                    && before < key
                {
                    before = key;
                    end += 1;
                }
            }
            let within = cuts.partition_point(|cut| *cut <= first);
            for cut in &cuts[within..] {
                if cut + STRETCH > end {
                    break;
                }
                if cut - first >= STRETCH {
                    sorted.stretch(block, first..*cut, keys);
                    first = *cut;
                }
            }
            sorted.stretch(block, first..end, keys);
            first = end;
        }
        sorted
    }

    fn stretch(&mut self, block: u32, rows: Range<usize>, keys: &Keys) {
        if rows.len() < STRETCH.min(keys.len()) || !self.range(block, rows.clone(), keys) {
            for row in rows {
                if let Some(key) = keys.get(row) {
                    self.hash(block, row as u32, key);
                }
            }
        }
    }

    /// Gives rows, whose keys ascend, a range; says false where they can have none.
    fn range(&mut self, block: u32, rows: Range<usize>, keys: &Keys) -> bool {
        let ends = keys.get(rows.start).zip(keys.get(rows.end - 1));
        let Some((least, greatest)) = ends else {
            return false;
        };
        if least.len().max(greatest.len()) > LONGEST {
            return false;
        }
        self.ascending.push(Ascending {
            stretch: Stretch {
                block,
                rows: rows.start as u16..=(rows.end - 1) as u16,
            },
            least: least.to_vec(),
            greatest: greatest.to_vec(),
        });
        true
    }

    fn hash(&mut self, block: u32, row: u32, key: &[u8]) {
        self.entries.push(Entry {
            hash: hash(key),
            block,
            row: row as u16,
        });
        let hashed = self.hashed.get_or_insert_with(|| Hashed {
            block,
            rows: row..row,
            bounds: Bounds::default(),
        });
        hashed.rows.end = row + 1;
        hashed.bounds.take(key);
    }
}
