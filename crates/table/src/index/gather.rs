//! The keys of blocks that are added to a table, gathered while these are written.

use arrow::array::RecordBatch;
use parking_lot::Mutex;
use store::Transaction;

use crate::error::Result;
use crate::format::keys::hash;
use crate::format::run::{Bounds, Run};
use crate::index::keys::Keys;
use crate::index::ranges::LONGEST;
use crate::index::runs::{Entry, RunWriter};
use crate::schema::Key;

/// Entries that are in memory before they become a run.
const MOST: usize = 1 << 20;

/// The keys of new blocks, for the index of one key. Many threads add blocks.
#[derive(Debug)]
pub(crate) struct Gather {
    pub key: Key,
    gathered: Mutex<Gathered>,
}

/// What was gathered.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Blocks whose keys ascend.
    pub ascending: Vec<Ascending>,
    /// The other blocks that have keys, each with the bounds of these.
    pub hashed: Vec<(u32, Bounds)>,
    /// Entries of the latter that are in no run yet, and the bounds of their keys.
    waiting: Vec<Entry>,
    bounds: Bounds,
    /// Runs that were written; their records are in no catalog yet.
    pub runs: Vec<Run>,
}

/// A block whose keys ascend: its number, its least and its greatest key.
#[derive(Debug)]
pub(crate) struct Ascending {
    pub block: u32,
    pub least: Vec<u8>,
    pub greatest: Vec<u8>,
}

impl Gather {
    pub(crate) fn new(key: Key) -> Gather {
        Gather {
            key,
            gathered: Mutex::default(),
        }
    }

    /// Takes in the rows of a new block.
    ///
    /// # Errors
    /// Those of writing pages.
    pub(crate) fn block(&self, tx: &Transaction, block: u32, rows: &RecordBatch) -> Result<()> {
        let columns = self.key.columns.iter().map(|c| rows.column(*c).clone());
        let keys = Keys::of(&columns.collect::<Vec<_>>())?;
        if let Some(ascending) = ascending(block, &keys) {
            self.gathered.lock().ascending.push(ascending);
            return Ok(());
        }
        let (entries, bounds) = hashed(block, &keys);
        if entries.is_empty() {
            return Ok(());
        }
        let full = self.gathered.lock().hash(block, entries, bounds);
        if let Some((entries, bounds)) = full {
            let run = run(tx, entries, &bounds)?;
            self.gathered.lock().runs.extend(run);
        }
        Ok(())
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
        match ascending(block, keys) {
            Some(ascending) => self.ascending.push(ascending),
            None => self.take_hashed(tx, block, keys)?,
        }
        Ok(())
    }

    /// Takes in the keys of a block that is to have no range.
    ///
    /// # Errors
    /// Those of writing pages.
    pub(crate) fn take_hashed(&mut self, tx: &Transaction, block: u32, keys: &Keys) -> Result<()> {
        let (entries, bounds) = hashed(block, keys);
        if !entries.is_empty()
            && let Some((entries, bounds)) = self.hash(block, entries, bounds)
        {
            self.runs.extend(run(tx, entries, &bounds)?);
        }
        Ok(())
    }

    /// Keeps entries; gives all back once there are many.
    fn hash(
        &mut self,
        block: u32,
        entries: Vec<Entry>,
        bounds: Bounds,
    ) -> Option<(Vec<Entry>, Bounds)> {
        self.waiting.extend(entries);
        self.bounds.join(&bounds);
        self.hashed.push((block, bounds));
        (self.waiting.len() >= MOST).then(|| self.all())
    }

    fn all(&mut self) -> (Vec<Entry>, Bounds) {
        (
            std::mem::take(&mut self.waiting),
            std::mem::take(&mut self.bounds),
        )
    }

    /// Makes a run of what is left.
    ///
    /// # Errors
    /// Those of writing pages.
    pub(crate) fn finish(&mut self, tx: &Transaction) -> Result<()> {
        let (entries, bounds) = self.all();
        self.runs.extend(run(tx, entries, &bounds)?);
        Ok(())
    }
}

fn run(tx: &Transaction, mut entries: Vec<Entry>, bounds: &Bounds) -> Result<Option<Run>> {
    entries.sort_unstable();
    let mut writer = RunWriter::new(tx);
    writer.push(&entries)?;
    writer.finish(bounds)
}

/// Least and greatest key, if the keys ascend and each row has one that a range may have.
fn ascending(block: u32, keys: &Keys) -> Option<Ascending> {
    let rows = keys.len();
    if keys.has_nulls() || rows == 0 {
        return None;
    }
    let (least, greatest) = (keys.get(0)?, keys.get(rows - 1)?);
    if least.len().max(greatest.len()) > LONGEST {
        return None;
    }
    let ascends = (1..rows).all(|row| keys.get(row - 1) < keys.get(row));
    ascends.then(|| Ascending {
        block,
        least: least.to_vec(),
        greatest: greatest.to_vec(),
    })
}

/// An entry for each row that has a key, and the bounds of the keys.
fn hashed(block: u32, keys: &Keys) -> (Vec<Entry>, Bounds) {
    let mut bounds = Bounds::default();
    let mut entries = Vec::with_capacity(keys.len());
    for (row, key) in keys.iter() {
        bounds.take(key);
        entries.push(Entry {
            hash: hash(key),
            block,
            row: row as u16,
        });
    }
    (entries, bounds)
}
