//! A hash join table: from keys of some words to the rows that have them.

use super::found::{self, NONE};
use crate::filter::positions;
use crate::krao::Groups;
use crate::prefetch;

/// From this many rows on (512 KiB), memory of matches is prefetched: where a group's rows are, and the rows, for so many
/// probing rows ahead.
const LARGE: usize = 1 << 17;
const PLACES_AHEAD: usize = 32;
const ROWS_AHEAD: usize = 16;

/// One partition of a join table while one thread fills it.
#[derive(Clone, Debug)]
pub struct Part {
    keys: Groups,
    /// The group of each row that was added.
    groups: Vec<u32>,
    /// Each row that was added.
    rows: Vec<u32>,
    scratch: Vec<u32>,
}

impl Part {
    /// An empty partition for keys of `words` words of 64 bits.
    ///
    /// # Panics
    /// Unless `words` is in `1..=MAX_WORDS`.
    pub fn new(words: usize) -> Part {
        Part::with_capacity(words, 0)
    }

    /// As `new`, with room for `rows` rows before it grows.
    pub fn with_capacity(words: usize, rows: usize) -> Part {
        Part {
            keys: Groups::with_capacity(words, rows),
            groups: Vec::with_capacity(rows),
            rows: Vec::with_capacity(rows),
            scratch: Vec::new(),
        }
    }

    /// Adds rows; `keys` are columns, without nulls.
    ///
    /// # Panics
    /// When the number of columns or their lengths differ.
    pub fn add(&mut self, hashes: &[u64], keys: &[&[u64]], rows: &[u32]) {
        assert_eq!(hashes.len(), rows.len(), "one row per key");
        self.keys.insert(hashes, keys, &mut self.scratch);
        self.groups.extend_from_slice(&self.scratch);
        self.rows.extend_from_slice(rows);
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of memory that it has allocated.
    pub fn memory(&self) -> usize {
        self.keys.memory()
            + 4 * (self.groups.capacity() + self.rows.capacity() + self.scratch.capacity())
    }

    /// Brings the rows into the order of their groups, rows of a group in the order in which they
    /// were added. May run on the thread that filled the part.
    pub fn finish(self) -> Filled {
        let Part {
            keys, groups, rows, ..
        } = self;
        if keys.len() == rows.len() {
            // Each key once: groups were numbered as rows came.
            return Filled {
                keys,
                starts: None,
                rows,
            };
        }
        let mut starts = vec![0u32; keys.len() + 1];
        for group in &groups {
            starts[*group as usize + 1] += 1;
        }
        for group in 0..keys.len() {
            starts[group + 1] += starts[group];
        }
        let mut next = starts.clone();
        let mut ordered = vec![0; rows.len()];
        for (group, row) in groups.iter().zip(&rows) {
            let at = &mut next[*group as usize];
            ordered[*at as usize] = *row;
            *at += 1;
        }
        Filled {
            keys,
            starts: Some(starts),
            rows: ordered,
        }
    }
}

/// A finished partition.
#[derive(Clone, Debug)]
pub struct Filled {
    keys: Groups,
    /// Where the rows of each group begin, and behind the last; `None` if each has one row.
    starts: Option<Vec<u32>>,
    rows: Vec<u32>,
}

impl Filled {
    /// The places of the rows of a group.
    #[inline(always)]
    fn places(&self, group: u32) -> (u32, u32) {
        match &self.starts {
            None => (group, group + 1),
            Some(starts) => (starts[group as usize], starts[group as usize + 1]),
        }
    }
}

/// A join table, shared by the threads that probe it.
///
/// Of `2^n` partitions, a key belongs to the one that the `n` high bits of its hash name.
#[derive(Clone, Debug)]
pub struct Hashed {
    parts: Vec<Filled>,
    bits: u32,
    rows: usize,
    /// Whether the number of each key is that of its only row.
    plain: bool,
}

impl Hashed {
    /// Makes the table from all its partitions, in the order of the high bits of their hashes.
    ///
    /// # Panics
    /// Unless the number of parts is a power of two, and all keys have as many words.
    pub fn new(parts: Vec<Filled>) -> Hashed {
        assert!(
            parts.len().is_power_of_two(),
            "partitions must be a power of two"
        );
        let words = parts[0].keys.words();
        assert!(
            parts.iter().all(|p| p.keys.words() == words),
            "keys of different words"
        );
        let rows = parts.iter().map(|p| p.rows.len()).sum();
        let is_plain = |part: &Filled| {
            let mut rows = part.rows.iter().enumerate();
            part.starts.is_none() && rows.all(|(key, row)| key == *row as usize)
        };
        Hashed {
            bits: parts.len().ilog2(),
            plain: parts.len() == 1 && is_plain(&parts[0]),
            parts,
            rows,
        }
    }

    /// Makes a table of one partition from columns of keys without nulls. Rows are numbered from 0.
    ///
    /// # Panics
    /// When lengths of columns differ, or there are 2^32 - 1 rows or more.
    pub fn build(hashes: &[u64], keys: &[&[u64]]) -> Hashed {
        assert!(hashes.len() < NONE as usize, "too many rows");
        let mut part = Part::with_capacity(keys.len(), hashes.len());
        let rows: Vec<u32> = (0..hashes.len() as u32).collect();
        part.add(hashes, keys, &rows);
        Hashed::new(vec![part.finish()])
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Whether no key has several rows: then [`Hashed::find_first`] finds all.
    pub fn is_unique(&self) -> bool {
        self.parts.iter().all(|p| p.starts.is_none())
    }

    /// Where the rows of each group begin, and behind the last, and the rows, group by group: [`Probe::groups`] gives the numbers of
    /// groups. `None` if no key has several rows, or there are several partitions.
    pub fn grouped(&self) -> Option<(&[u32], &[u32])> {
        let [part] = &*self.parts else {
            return None;
        };
        Some((part.starts.as_deref()?, &part.rows))
    }

    /// Bytes of memory that it has allocated.
    pub fn memory(&self) -> usize {
        let part = |p: &Filled| {
            let starts = p.starts.as_ref().map_or(0, Vec::capacity);
            p.keys.memory() + 4 * (starts + p.rows.capacity())
        };
        self.parts.iter().map(part).sum()
    }

    /// The first row of each key, [`NONE`] where there is none.
    ///
    /// # Panics
    /// When the number of columns or their lengths differ.
    pub fn find_first(&self, hashes: &[u64], keys: &[&[u64]], out: &mut Vec<u32>) {
        self.groups(hashes, keys, out);
        if self.plain {
            return;
        }
        for (hash, found) in hashes.iter().zip(out) {
            if *found != NONE {
                let part = self.part(*hash);
                *found = part.rows[part.places(*found).0 as usize];
            }
        }
    }

    /// Looks the keys up. `probe` then stands before the first match: [`Hashed::matches`] gives them.
    ///
    /// # Panics
    /// When the number of columns or their lengths differ.
    pub fn probe(&self, hashes: &[u64], keys: &[&[u64]], probe: &mut Probe) {
        self.groups(hashes, keys, &mut probe.groups);
        probe.hashes.clear();
        probe.hashes.extend_from_slice(hashes);
        probe.row = 0;
        probe.taken = 0;
    }

    /// The next matches, at most `limit`, as pairs of a probed row and a build row. A probed row
    /// is a position among the keys that [`Hashed::probe`] was given; probed rows ascend. Returns
    /// whether there may be more.
    pub fn matches(
        &self,
        probe: &mut Probe,
        probe_out: &mut Vec<u32>,
        build_out: &mut Vec<u32>,
        limit: usize,
    ) -> bool {
        let Probe { hashes, .. } = probe;
        let hashes = std::mem::take(hashes);
        let lists = HashedRows {
            table: self,
            hashes: &hashes,
        };
        let more = probe.matches(probe_out, build_out, limit, &lists);
        probe.hashes = hashes;
        more
    }

    #[inline(always)]
    fn part(&self, hash: u64) -> &Filled {
        match self.bits {
            0 => &self.parts[0],
            bits => &self.parts[(hash >> (64 - bits)) as usize],
        }
    }

    /// The group of each key within its partition.
    fn groups(&self, hashes: &[u64], keys: &[&[u64]], out: &mut Vec<u32>) {
        self.parts[0].keys.check(hashes, keys);
        if let [part] = &*self.parts {
            return Groups::find_in(|_| &part.keys, hashes, keys, out);
        }
        Groups::find_in(|hash| &self.part(hash).keys, hashes, keys, out);
    }
}

/// Where a probe of a [`Hashed`] or a [`super::Ranked`] stands; reused from vector to vector.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    hashes: Vec<u64>,
    /// The group of each row's key within its table (or its partition), [`NONE`] where there is none.
    pub(super) groups: Vec<u32>,
    /// The rows that found something, ascending; made when the first matches are asked for.
    hits: Vec<u32>,
    found: Vec<bool>,
    /// Which of `hits` is the row whose matches come next.
    pub(super) row: usize,
    /// How many of them were given.
    pub(super) taken: usize,
}

impl Probe {
    /// A probe that stands nowhere yet.
    pub fn new() -> Probe {
        Probe::default()
    }

    /// For each key a number of its own table, [`NONE`] if it was not found.
    pub fn groups(&self) -> &[u32] {
        &self.groups
    }

    /// Stands before the first match of keys of which the groups are known, of a table with one partition.
    pub fn found(&mut self, groups: &[u32]) {
        self.groups.clear();
        self.groups.extend_from_slice(groups);
        // Of one partition no hash is looked at.
        self.hashes.clear();
        self.hashes.resize(groups.len(), 0);
        self.row = 0;
        self.taken = 0;
    }

    /// Makes keys that are not valid find nothing.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn exclude(&mut self, valid: &[bool]) {
        found::exclude(&mut self.groups, valid);
    }

    /// The next matches, where `lists` has the rows of the groups that were found.
    #[inline(always)]
    pub(super) fn matches(
        &mut self,
        probe_out: &mut Vec<u32>,
        build_out: &mut Vec<u32>,
        limit: usize,
        lists: &impl RowLists,
    ) -> bool {
        probe_out.clear();
        build_out.clear();
        if self.row == 0 && self.taken == 0 {
            found::found(&self.groups, &mut self.found);
            positions(&self.found, &mut self.hits);
        }
        let is_large = lists.row_count() >= LARGE;
        while self.row < self.hits.len() && build_out.len() < limit {
            if is_large {
                self.ask(lists);
            }
            let row = self.hits[self.row];
            let rest = &lists.list(row as usize, self.groups[row as usize])[self.taken..];
            let taken = rest.len().min(limit - build_out.len());
            // Most have few: a loop is less than two calls.
            for partner in &rest[..taken] {
                build_out.push(*partner);
                probe_out.push(row);
            }
            if taken < rest.len() {
                self.taken += taken;
                return true;
            }
            self.row += 1;
            self.taken = 0;
        }
        self.row < self.hits.len()
    }

    /// Asks for the memory of later matches.
    #[inline(always)]
    fn ask(&self, lists: &impl RowLists) {
        if let Some(row) = self.hits.get(self.row + PLACES_AHEAD) {
            lists.ask_for_place(*row as usize, self.groups[*row as usize]);
        }
        if let Some(row) = self.hits.get(self.row + ROWS_AHEAD) {
            lists.ask_for_rows(*row as usize, self.groups[*row as usize]);
        }
    }
}

/// The rows of each group of a table. A group is asked for together with the probing row that found it.
pub(super) trait RowLists {
    /// The number of rows of all groups.
    fn row_count(&self) -> usize;

    /// Prefetches what says where the rows of `group` are.
    fn ask_for_place(&self, row: usize, group: u32);

    /// Prefetches the first rows of `group`.
    fn ask_for_rows(&self, row: usize, group: u32);

    /// The rows of `group`.
    fn list(&self, row: usize, group: u32) -> &[u32];
}

/// The rows of a [`Hashed`], and the hashes of the keys that probe it.
struct HashedRows<'t> {
    table: &'t Hashed,
    hashes: &'t [u64],
}

impl RowLists for HashedRows<'_> {
    #[inline(always)]
    fn row_count(&self) -> usize {
        self.table.rows
    }

    #[inline(always)]
    fn ask_for_place(&self, row: usize, group: u32) {
        let starts = self.table.part(self.hashes[row]).starts.as_ref();
        if let Some(start) = starts.and_then(|starts| starts.get(group as usize)) {
            prefetch(start);
        }
    }

    #[inline(always)]
    fn ask_for_rows(&self, row: usize, group: u32) {
        let part = self.table.part(self.hashes[row]);
        if let Some(first) = part.rows.get(part.places(group).0 as usize) {
            prefetch(first);
        }
    }

    #[inline(always)]
    fn list(&self, row: usize, group: u32) -> &[u32] {
        let part = self.table.part(self.hashes[row]);
        let (begin, end) = part.places(group);
        &part.rows[begin as usize..end as usize]
    }
}
