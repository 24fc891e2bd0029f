//! A hash join table: from keys of some words to the rows that have them.

use super::found::{self, NONE, through};
use super::parted::PartedVec;
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
    pub(super) starts: Option<Vec<u32>>,
    pub(super) rows: Vec<u32>,
}

/// A [`Hashed`] to which several threads join its partitions, each of them others.
#[derive(Debug)]
pub struct HashedParts {
    /// The numbers of keys and of rows in the partitions before each.
    before: Vec<(u32, u32)>,
    /// Where the rows of each key begin, and in a part of its own where the last ends; `None` if each key has one row.
    starts: Option<PartedVec<u32>>,
    rows: PartedVec<u32>,
}

impl HashedParts {
    /// Room for the table of these partitions, which are all, in the order of the high bits of their hashes.
    ///
    /// # Panics
    /// When they have 2^32 - 1 rows or more.
    pub fn of(parts: &[Filled]) -> HashedParts {
        let all: usize = parts.iter().map(|part| part.rows.len()).sum();
        assert!(all < NONE as usize, "too many rows");
        let (mut keys, mut rows) = (0, 0);
        let mut before = Vec::with_capacity(parts.len());
        for part in parts {
            before.push((keys, rows));
            keys += part.keys.len() as u32;
            rows += part.rows.len() as u32;
        }
        let starts = (keys < rows).then(|| {
            let lengths = parts.iter().map(|part| part.keys.len());
            let starts = PartedVec::new(lengths.chain([1]));
            starts.write(parts.len(), |end| end.fill(rows));
            starts
        });
        HashedParts {
            before,
            starts,
            rows: PartedVec::new(parts.iter().map(|part| part.rows.len())),
        }
    }

    /// Joins a partition. Gives its keys, which [`HashedParts::finish`] asks for.
    ///
    /// # Panics
    /// When there is no such partition, it has been joined, or it is another than there was room made for.
    pub fn join(&self, part: usize, filled: Filled) -> Groups {
        let Filled { keys, starts, rows } = filled;
        self.rows.write(part, |all| all.copy_from_slice(&rows));
        if let Some(all) = &self.starts {
            let (_, begin) = self.before[part];
            all.write(part, |all| {
                assert_eq!(all.len(), keys.len(), "another partition");
                for (group, to) in (0u32..).zip(all) {
                    *to = begin + starts.as_ref().map_or(group, |own| own[group as usize]);
                }
            });
        }
        keys
    }

    /// The table of all partitions, with the keys of each.
    ///
    /// # Panics
    /// When a partition has not been joined, or as [`Hashed::new`].
    pub fn finish(self, keys: Vec<Groups>) -> Hashed {
        assert_eq!(keys.len(), self.before.len(), "the keys of each partition");
        let firsts = self.before.into_iter().map(|(keys, _)| keys).collect();
        let starts = self.starts.map(PartedVec::into_vec);
        Hashed::joined(keys, firsts, starts, self.rows.into_vec())
    }
}

/// A join table, shared by the threads that probe it.
///
/// Of `2^n` partitions, a key belongs to the one that the `n` high bits of its hash name. The groups of a partition are numbered
/// behind those of the partitions before it, so that all lists of rows are one. Many rows take less time
/// [partition by partition](super::HashPartitions).
#[derive(Clone, Debug)]
pub struct Hashed {
    /// The keys of each partition.
    keys: Vec<Groups>,
    /// The number of the first group of each partition.
    firsts: Vec<u32>,
    bits: u32,
    /// Where the rows of each group begin, and behind the last; `None` if each has one row.
    starts: Option<Vec<u32>>,
    rows: Vec<u32>,
    /// Whether the number of each key is that of its only row.
    plain: bool,
}

impl Hashed {
    /// Makes the table from all its partitions, in the order of the high bits of their hashes.
    ///
    /// # Panics
    /// Unless the number of parts is a power of two, and all keys have as many words.
    pub fn new(mut parts: Vec<Filled>) -> Hashed {
        if parts.len() == 1
            && let Some(Filled { keys, starts, rows }) = parts.pop()
        {
            return Hashed::joined(vec![keys], vec![0], starts, rows);
        }
        let joined = HashedParts::of(&parts);
        let parts = parts.into_iter().enumerate();
        let keys = parts.map(|(part, filled)| joined.join(part, filled));
        let keys = keys.collect();
        joined.finish(keys)
    }

    /// The table of these keys of all partitions and their rows.
    pub(super) fn joined(
        keys: Vec<Groups>,
        firsts: Vec<u32>,
        starts: Option<Vec<u32>>,
        rows: Vec<u32>,
    ) -> Hashed {
        assert!(
            keys.len().is_power_of_two(),
            "partitions must be a power of two"
        );
        let words = keys[0].words();
        assert!(
            keys.iter().all(|part| part.words() == words),
            "keys of different words"
        );
        let mut numbered = rows.iter().enumerate();
        Hashed {
            bits: keys.len().ilog2(),
            plain: starts.is_none() && numbered.all(|(key, row)| key == *row as usize),
            keys,
            firsts,
            starts,
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
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether no key has several rows: then [`Hashed::find_first`] finds all.
    pub fn is_unique(&self) -> bool {
        self.starts.is_none()
    }

    /// Where the rows of each group begin, and behind the last, and the rows, group by group: [`Probe::groups`] gives the numbers of
    /// groups. `None` if no key has several rows.
    pub fn grouped(&self) -> Option<(&[u32], &[u32])> {
        Some((self.starts.as_deref()?, &self.rows))
    }

    /// Bytes of memory that it has allocated.
    pub fn memory(&self) -> usize {
        let keys = self.keys.iter().map(Groups::memory).sum::<usize>();
        let starts = self.starts.as_ref().map_or(0, Vec::capacity);
        keys + 4 * (self.firsts.capacity() + starts + self.rows.capacity())
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
        if let Some(starts) = &self.starts {
            through(out, starts);
        }
        through(out, &self.rows);
    }

    /// Looks the keys up. `probe` then stands before the first match: [`Hashed::matches`] gives them.
    ///
    /// # Panics
    /// When the number of columns or their lengths differ.
    pub fn probe(&self, hashes: &[u64], keys: &[&[u64]], probe: &mut Probe) {
        self.groups(hashes, keys, &mut probe.groups);
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
        probe.matches(probe_out, build_out, limit, &HashedRows(self))
    }

    /// Which partition a key with this hash belongs to.
    #[inline(always)]
    fn part(&self, hash: u64) -> usize {
        hash.checked_shr(64 - self.bits).unwrap_or(0) as usize
    }

    /// The group of each key, [`NONE`] where there is none.
    fn groups(&self, hashes: &[u64], keys: &[&[u64]], out: &mut Vec<u32>) {
        self.keys[0].check(hashes, keys);
        if let [only] = &*self.keys {
            return Groups::find_in(|_| only, hashes, keys, out);
        }
        Groups::find_in(|hash| &self.keys[self.part(hash)], hashes, keys, out);
        for (hash, group) in hashes.iter().zip(out) {
            if *group != NONE {
                *group += self.firsts[self.part(*hash)];
            }
        }
    }
}

/// Where a probe of a [`Hashed`] or a [`super::Ranked`] stands; reused from vector to vector.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    /// The group of each row's key within its table, [`NONE`] where there is none.
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

    /// Stands before the first match of keys of which the groups are known.
    pub fn found(&mut self, groups: &[u32]) {
        self.groups.clear();
        self.groups.extend_from_slice(groups);
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
            let rest = &lists.list(self.groups[row as usize])[self.taken..];
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
            lists.ask_for_place(self.groups[*row as usize]);
        }
        if let Some(row) = self.hits.get(self.row + ROWS_AHEAD) {
            lists.ask_for_rows(self.groups[*row as usize]);
        }
    }
}

/// The rows of each group of a table.
pub(super) trait RowLists {
    /// The number of rows of all groups.
    fn row_count(&self) -> usize;

    /// Prefetches what says where the rows of `group` are.
    fn ask_for_place(&self, group: u32);

    /// Prefetches the first rows of `group`.
    fn ask_for_rows(&self, group: u32);

    /// The rows of `group`.
    fn list(&self, group: u32) -> &[u32];
}

/// The rows of a [`Hashed`].
struct HashedRows<'t>(&'t Hashed);

impl RowLists for HashedRows<'_> {
    #[inline(always)]
    fn row_count(&self) -> usize {
        self.0.rows.len()
    }

    #[inline(always)]
    fn ask_for_place(&self, group: u32) {
        let starts = self.0.starts.as_ref();
        if let Some(start) = starts.and_then(|starts| starts.get(group as usize)) {
            prefetch(start);
        }
    }

    #[inline(always)]
    fn ask_for_rows(&self, group: u32) {
        let start = match &self.0.starts {
            None => Some(&group),
            Some(starts) => starts.get(group as usize),
        };
        if let Some(first) = start.and_then(|start| self.0.rows.get(*start as usize)) {
            prefetch(first);
        }
    }

    #[inline(always)]
    fn list(&self, group: u32) -> &[u32] {
        let (group, rows) = (group as usize, &self.0.rows);
        match &self.0.starts {
            None => &rows[group..=group],
            Some(starts) => &rows[starts[group] as usize..starts[group + 1] as usize],
        }
    }
}
