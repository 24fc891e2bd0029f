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
/// The fewest rows of a stretch of ascending keys that gets a range, unless it is a whole block or beside another one: a range is
/// in memory, as the whole catalog is.
const STRETCH: usize = 512;

/// How many times as far as the mean the next key is where the keys jump. (Of random ones, one in 10^13 is.)
const JUMP: u64 = 32;

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

/// Rows of a block one after the other whose keys are hashed. (A row between two of them may have none.)
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
    /// Whether the last of `hashed` goes on: no row after it has a range.
    is_open: bool,
    hashed: Vec<Hashed>,
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
        let mut bounds = Bounds::default();
        sorted
            .hashed
            .iter()
            .for_each(|own| bounds.join(&own.bounds));
        self.waiting.add(divided, &bounds);
        self.hashed.extend(sorted.hashed);
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

/// Rows, of `rows` whose keys ascend, that are much further from the row before than others are: a batch may have the end of one
/// piece of a file and the beginning of another, and the keys between them lie elsewhere. Short keys ascend by bytes as numbers do,
/// of longer ones the first bytes that differ are looked at.
fn jumps(keys: &Keys, rows: Range<usize>) -> Vec<usize> {
    let ends = keys.get(rows.start).zip(keys.get(rows.end - 1));
    let Some((least, greatest)) = ends.filter(|_| rows.len() >= 2 * STRETCH) else {
        return vec![];
    };
    let same = least.iter().zip(greatest).take_while(|(a, b)| a == b);
    let same = same.count();
    let number = |key: &[u8]| {
        let mut bytes = [0; 8];
        let own = key.get(same..).unwrap_or_default();
        let length = own.len().min(bytes.len());
        bytes[..length].copy_from_slice(&own[..length]);
        u64::from_be_bytes(bytes)
    };
    let mut before = number(least);
    let far = (number(greatest) - before) / rows.len() as u64;
    let far = far.saturating_mul(JUMP).max(1);
    let mut found = vec![];
    for row in rows {
        let own = keys.get(row).map_or(before, number);
        if own.saturating_sub(before) > far {
            found.push(row);
        }
        before = own;
    }
    found
}

impl Sorted {
    /// Cuts a block where a key is not greater than the one before, or where a row has none; and at `cuts`, as
    /// [`batches`](Sorted::batches) says.
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
            sorted.batches(block, first..end, keys, cuts);
            first = end;
        }
        sorted
    }

    /// Cuts rows whose keys ascend at `cuts`, because batches of several workers may ascend by chance, with the keys of other
    /// blocks between them; and where keys [jump](jumps). Short batches are put together, but not with a long one: beside such a one, a few rows get a range, too,
    /// so that these are twice as many at most. Neighbours that have nothing between them become one when they are settled.
    fn batches(&mut self, block: u32, rows: Range<usize>, keys: &Keys, cuts: &[usize]) {
        let within = cuts.partition_point(|cut| *cut <= rows.start);
        let cuts = cuts[within..].iter().copied();
        let mut ends: Vec<usize> = cuts.take_while(|cut| *cut < rows.end).collect();
        ends.extend(jumps(keys, rows.clone()));
        ends.push(rows.end);
        ends.sort_unstable();
        let (mut open, mut start, mut is_beside) = (rows.start, rows.start, false);
        for end in ends {
            if end - start >= STRETCH {
                if open < start {
                    self.stretch(block, open..start, keys, true);
                }
                self.stretch(block, start..end, keys, true);
                (open, is_beside) = (end, true);
            } else if end - open >= STRETCH {
                self.stretch(block, open..end, keys, true);
                (open, is_beside) = (end, true);
            }
            start = end;
        }
        if open < rows.end {
            let is_whole = rows.len() == keys.len();
            self.stretch(block, open..rows.end, keys, is_beside || is_whole);
        }
    }

    /// Takes in rows whose keys ascend, which get a range if they may and can.
    fn stretch(&mut self, block: u32, rows: Range<usize>, keys: &Keys, may: bool) {
        if may && self.range(block, rows.clone(), keys) {
            self.is_open = false;
            return;
        }
        for row in rows {
            if let Some(key) = keys.get(row) {
                self.hash(block, row as u32, key);
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
        if !self.is_open {
            self.hashed.push(Hashed {
                block,
                rows: row..row,
                bounds: Bounds::default(),
            });
            self.is_open = true;
        }
        if let Some(hashed) = self.hashed.last_mut() {
            hashed.rows.end = row + 1;
            hashed.bounds.take(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array};

    use super::*;

    /// The rows that get ranges, and those that are hashed.
    fn sorted(keys: Vec<i64>, cuts: &[usize]) -> (Vec<Range<u32>>, Vec<Range<u32>>) {
        let keys: ArrayRef = Arc::new(Int64Array::from(keys));
        let sorted = Sorted::of(0, &Keys::of(&[keys]).unwrap(), cuts);
        let rows = |own: &Ascending| {
            let rows = &own.stretch.rows;
            (*rows.start()).into()..u32::from(*rows.end()) + 1
        };
        let ranges = sorted.ascending.iter().map(rows);
        let hashed: Vec<_> = sorted.hashed.iter().map(|own| own.rows.clone()).collect();
        let entries: usize = hashed.iter().map(ExactSizeIterator::len).sum();
        assert_eq!(sorted.entries.len(), entries);
        (ranges.collect(), hashed)
    }

    #[test]
    fn the_ends_of_pieces_are_not_put_together() {
        // The last rows of one piece, a batch of another, the first rows of a third.
        let piece = |from: i64, rows: i64| from..from + rows;
        let all = piece(0, 300).chain(piece(10_000, 8_000));
        let all: Vec<i64> = all.chain(piece(50_000, 200)).collect();
        let whole = vec![0..300, 300..8_300, 8_300..8_500];
        assert_eq!(sorted(all.clone(), &[]), (whole.clone(), vec![]));
        assert_eq!(sorted(all, &[300, 8_300]), (whole, vec![]));
        // Keys that are next to each other, in batches.
        let all: Vec<i64> = piece(0, 10_300).collect();
        let whole = vec![0..300, 300..8_300, 8_300..10_300];
        assert_eq!(sorted(all.clone(), &[300, 8_300]), (whole, vec![]));
        let short: Vec<usize> = (1..103).map(|batch| 100 * batch).collect();
        let (ranges, hashed) = sorted(all, &short);
        assert_eq!((ranges.len(), hashed.len()), (18, 0));
        assert!(ranges[..17].iter().all(|own| own.len() == 600));
    }

    #[test]
    fn what_ascends_by_chance_is_hashed() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut all: Vec<i64> = (0..5_000).collect();
        random.shuffle(&mut all);
        assert_eq!(
            sorted(all.clone(), &[]),
            (
                vec![],
                vec![Range {
                    start: 0,
                    end: 5_000
                }]
            )
        );
        // Between them a stretch; without it, they are two.
        all.splice(2_000..2_000, 10_000..11_000);
        let (ranges, hashed) = sorted(all, &[]);
        assert_eq!(ranges.len(), 1);
        let [before, behind] = &hashed[..] else {
            panic!("{hashed:?}");
        };
        assert_eq!((before.end, behind.start), (ranges[0].start, ranges[0].end));
    }

    #[test]
    fn keys_at_random_distances_do_not_jump() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20 {
            let mut all: Vec<i64> = (0..8_192).map(|_| random.i64(..)).collect();
            all.sort_unstable();
            all.dedup();
            let rows = all.len() as u32;
            assert_eq!(
                sorted(all, &[]),
                (
                    vec![Range {
                        start: 0,
                        end: rows
                    }],
                    vec![]
                )
            );
        }
    }
}
