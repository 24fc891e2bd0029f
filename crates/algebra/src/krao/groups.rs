//! Numbering the keys that occur: a hash table from keys to dense group numbers.

use crate::hash::mix;
use crate::prefetch;

/// The most words that a key may have.
pub const MAX_WORDS: usize = 32;

/// Slots of a new table.
const FIRST_SLOTS: usize = 1024;

/// A key that takes more probes than this is evidence of bad hashes: with good ones, in a table at most half
/// full, that happens less than once in 2^100.
const MANY: usize = 256;

/// An empty slot: group numbers stay below.
const EMPTY: u64 = u64::MAX;

/// From this many slots on (128 KiB) the slots and keys of later rows are prefetched: the table shares the L1 and L2 caches with the
/// columns that are scanned.
const LARGE: usize = 1 << 14;

/// How many rows ahead a slot is fetched, and a key.
const SLOTS_AHEAD: usize = 24;
const KEYS_AHEAD: usize = 12;

/// Dense numbers, from 0 in order of first appearance, for keys of a fixed number of words.
///
/// Open addressing with linear probing. Invariants:
/// 1. At most half of the slots are used; their number is a power of two, and 1 before the first
///    group came.
/// 2. A slot holds a group number and the high half of the hash that placed it.
/// 3. `keys` holds `words` words per group, `hashes` one: what the caller gave.
/// 4. While `own` is false, slots are placed by the caller's hashes. Once a key took `MANY`
///    probes, they are placed by hashes of the keys instead: equal hashes of different keys then
///    cost one more hash per row, and no search becomes a scan.
/// 5. While `loose` is true there is one slot, which is empty, and a key may have several numbers.
#[derive(Clone, Debug)]
pub struct Groups {
    words: usize,
    slots: Vec<u64>,
    keys: Vec<u64>,
    hashes: Vec<u64>,
    own: bool,
    loose: bool,
}

/// Groups whose hashes begin alike.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Their numbers, ascending.
    pub groups: Vec<u32>,
    /// The hash of each.
    pub hashes: Vec<u64>,
    /// Their keys, as columns.
    pub keys: Vec<Vec<u64>>,
}

impl Groups {
    /// No groups yet, for keys of `words` words of 64 bits.
    ///
    /// # Panics
    /// Unless `words` is in `1..=MAX_WORDS`.
    pub fn new(words: usize) -> Groups {
        assert!(
            (1..=MAX_WORDS).contains(&words),
            "keys have 1 to {MAX_WORDS} words"
        );
        Groups {
            words,
            slots: vec![EMPTY],
            keys: Vec::new(),
            hashes: Vec::new(),
            own: false,
            loose: false,
        }
    }

    /// As `new`, with room for `groups` groups before it grows.
    pub fn with_capacity(words: usize, groups: usize) -> Groups {
        let mut made = Groups::new(words);
        made.keys.reserve(groups * words);
        made.hashes.reserve(groups);
        if groups > 0 {
            made.place((groups * 2).next_power_of_two().max(FIRST_SLOTS));
        }
        made
    }

    /// The number of groups.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether nothing was inserted.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Words per key.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Word `word` of the key of `group`.
    ///
    /// # Panics
    /// When there is no such group or word.
    pub fn key(&self, group: u32, word: usize) -> u64 {
        assert!(word < self.words, "keys have {} words", self.words);
        self.keys[group as usize * self.words + word]
    }

    /// All keys, group by group.
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// The hash of each group, as the caller gave it.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Word `word` of the keys of `groups`.
    ///
    /// # Panics
    /// When there is no such group or word.
    pub fn column(&self, word: usize, groups: &[u32], out: &mut Vec<u64>) {
        out.clear();
        out.extend(groups.iter().map(|g| self.key(*g, word)));
    }

    /// The groups of each of `2^bits` partitions, ascending. A group is in the partition that the high `bits` of its hash
    /// name: tables that several threads filled are merged partition by partition.
    ///
    /// # Panics
    /// When `bits` is above 16.
    pub fn partitions(&self, bits: u32) -> Vec<Partition> {
        assert!(bits <= 16, "at most 2^16 partitions");
        let of = |hash: &u64| hash.checked_shr(64 - bits).unwrap_or(0) as usize;
        let mut counts = vec![0; 1 << bits];
        self.hashes.iter().for_each(|hash| counts[of(hash)] += 1);
        let empty = counts.into_iter().map(|count| Partition {
            groups: Vec::with_capacity(count),
            hashes: Vec::with_capacity(count),
            keys: std::iter::repeat_with(|| Vec::with_capacity(count))
                .take(self.words)
                .collect(),
        });
        let mut parts: Vec<Partition> = empty.collect();
        for (group, hash) in self.hashes.iter().enumerate() {
            let part = &mut parts[of(hash)];
            part.groups.push(group as u32);
            part.hashes.push(*hash);
        }
        for word in 0..self.words {
            let keys = self.keys[word.min(self.keys.len())..]
                .iter()
                .step_by(self.words);
            for (hash, key) in self.hashes.iter().zip(keys) {
                parts[of(hash)].keys[word].push(*key);
            }
        }
        parts
    }

    /// From now on [`Groups::insert`] gives each row a number of its own, whether its key has one or not, and nothing is
    /// found: for keys most of which are new, which are looked for once all are there, in tables of one partition each.
    /// Gives the memory back that searches take.
    pub fn loosen(&mut self) {
        self.slots = vec![EMPTY];
        self.own = false;
        self.loose = true;
    }

    /// Whether keys may have several numbers, as [`Groups::loosen`] was called.
    pub fn is_loose(&self) -> bool {
        self.loose
    }

    /// Bytes of memory that it has allocated.
    pub fn memory(&self) -> usize {
        8 * (self.slots.capacity() + self.keys.capacity() + self.hashes.capacity())
    }

    /// Forgets all groups, and keeps the memory.
    pub fn clear(&mut self) {
        self.slots.fill(EMPTY);
        self.keys.clear();
        self.hashes.clear();
        self.own = false;
        self.loose = false;
    }

    /// The number of each row's group; new keys get new numbers, and so do all if it is [loose](Groups::loosen). `keys` are columns.
    ///
    /// # Panics
    /// When the number of columns or their lengths differ from what was promised, or at 2^32 - 1
    /// groups.
    pub fn insert(&mut self, hashes: &[u64], keys: &[&[u64]], out: &mut Vec<u32>) {
        self.check(hashes, keys);
        out.clear();
        if self.loose {
            return self.append(hashes, keys, out);
        }
        out.reserve(hashes.len());
        match *keys {
            [a] => self.insert_all(hashes, Fixed([a]), out),
            [a, b] => self.insert_all(hashes, Fixed([a, b]), out),
            [a, b, c] => self.insert_all(hashes, Fixed([a, b, c]), out),
            [a, b, c, d] => self.insert_all(hashes, Fixed([a, b, c, d]), out),
            _ => self.insert_all(hashes, Columns(keys), out),
        }
    }

    /// The number of each row's group, `u32::MAX` for keys that were never inserted.
    ///
    /// # Panics
    /// When the number of columns or their lengths differ from what was promised.
    pub fn find(&self, hashes: &[u64], keys: &[&[u64]], out: &mut Vec<u32>) {
        self.check(hashes, keys);
        Groups::find_in(|_| self, hashes, keys, out);
    }

    /// As [`Groups::find`], each key in the table that `table` gives for its hash.
    #[inline(always)]
    pub(crate) fn find_in<'a>(
        table: impl Fn(u64) -> &'a Groups,
        hashes: &[u64],
        keys: &[&[u64]],
        out: &mut Vec<u32>,
    ) {
        out.clear();
        out.reserve(hashes.len());
        match *keys {
            [a] => Groups::find_all(table, hashes, Fixed([a]), out),
            [a, b] => Groups::find_all(table, hashes, Fixed([a, b]), out),
            [a, b, c] => Groups::find_all(table, hashes, Fixed([a, b, c]), out),
            [a, b, c, d] => Groups::find_all(table, hashes, Fixed([a, b, c, d]), out),
            _ => Groups::find_all(table, hashes, Columns(keys), out),
        }
    }

    pub(crate) fn check(&self, hashes: &[u64], keys: &[&[u64]]) {
        assert_eq!(keys.len(), self.words, "one column per word");
        assert!(
            keys.iter().all(|k| k.len() == hashes.len()),
            "columns of different lengths"
        );
    }

    /// Gives each row the next number.
    fn append(&mut self, hashes: &[u64], keys: &[&[u64]], out: &mut Vec<u32>) {
        let first = self.hashes.len();
        let end = first + hashes.len();
        assert!(end < u32::MAX as usize, "too many groups");
        out.extend(first as u32..end as u32);
        self.hashes.extend_from_slice(hashes);
        match *keys {
            [a] => self.keys.extend_from_slice(a),
            [a, b] => self
                .keys
                .extend(a.iter().zip(b).flat_map(|(a, b)| [*a, *b])),
            [a, b, c] => {
                let rows = a.iter().zip(b).zip(c);
                self.keys.extend(rows.flat_map(|((a, b), c)| [*a, *b, *c]));
            }
            _ => {
                let rows = 0..hashes.len();
                let words = rows.flat_map(|row| keys.iter().map(move |key| key[row]));
                self.keys.extend(words);
            }
        }
    }

    #[inline(always)]
    fn insert_all<K: Keys>(&mut self, hashes: &[u64], keys: K, out: &mut Vec<u32>) {
        for (row, hash) in hashes.iter().enumerate() {
            if let Some(later) = hashes.get(row + SLOTS_AHEAD) {
                self.ahead_slot(*later);
            }
            if let Some(later) = hashes.get(row + KEYS_AHEAD) {
                self.ahead_key(*later);
            }
            let group = match self.probe(*hash, keys, row) {
                Probe::Group(group) => group,
                Probe::Empty(slot) => self.add(slot, *hash, keys, row),
                Probe::Many => self.distrust(*hash, keys, row),
            };
            out.push(group);
        }
    }

    #[inline(always)]
    fn find_all<'a, K: Keys>(
        table: impl Fn(u64) -> &'a Groups,
        hashes: &[u64],
        keys: K,
        out: &mut Vec<u32>,
    ) {
        for (row, hash) in hashes.iter().enumerate() {
            if let Some(later) = hashes.get(row + SLOTS_AHEAD) {
                table(*later).ahead_slot(*later);
            }
            if let Some(later) = hashes.get(row + KEYS_AHEAD) {
                table(*later).ahead_key(*later);
            }
            let table = table(*hash);
            out.push(match table.probe(*hash, keys, row) {
                Probe::Group(group) => group,
                Probe::Empty(_) => u32::MAX,
                Probe::Many => table.scan(*hash, keys, row),
            });
        }
    }

    /// Where the row's key stands, or would stand.
    #[inline(always)]
    fn probe<K: Keys>(&self, hash: u64, keys: K, row: usize) -> Probe {
        let (hash, limit) = if self.own {
            (keys.hash(row), usize::MAX)
        } else {
            (hash, MANY)
        };
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        for _ in 0..limit {
            let slot = self.slots[at];
            if slot == EMPTY {
                return Probe::Empty(at);
            }
            if (slot ^ hash) >> 32 == 0 && keys.equal(row, &self.keys, slot as u32 as usize) {
                return Probe::Group(slot as u32);
            }
            at = (at + 1) & mask;
        }
        Probe::Many
    }

    /// As [`Groups::probe`], however long it takes: for a search that may not change the table.
    #[cold]
    fn scan<K: Keys>(&self, hash: u64, keys: K, row: usize) -> u32 {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != EMPTY {
            let slot = self.slots[at];
            if (slot ^ hash) >> 32 == 0 && keys.equal(row, &self.keys, slot as u32 as usize) {
                return slot as u32;
            }
            at = (at + 1) & mask;
        }
        u32::MAX
    }

    /// Fetches the slot of a later row, where the table is larger than the near caches.
    #[inline(always)]
    fn ahead_slot(&self, hash: u64) {
        if self.slots.len() >= LARGE {
            prefetch(&self.slots[hash as usize & (self.slots.len() - 1)]);
        }
    }

    /// Fetches the key that a later row is compared with.
    #[inline(always)]
    fn ahead_key(&self, hash: u64) {
        if self.slots.len() >= LARGE {
            let group = self.slots[hash as usize & (self.slots.len() - 1)] as u32;
            if let Some(key) = self.keys.get(group as usize * self.words) {
                prefetch(key);
            }
        }
    }

    /// Gives the row's key the next number.
    #[inline(never)]
    fn add<K: Keys>(&mut self, slot: usize, hash: u64, keys: K, row: usize) -> u32 {
        let group = self.hashes.len();
        assert!(group < u32::MAX as usize, "too many groups");
        for word in 0..keys.words() {
            self.keys.push(keys.word(row, word));
        }
        self.hashes.push(hash);
        let placed = if self.own { keys.hash(row) } else { hash };
        self.slots[slot] = placed & HIGH | group as u64;
        if self.hashes.len() * 2 > self.slots.len() {
            self.place((self.slots.len() * 2).max(FIRST_SLOTS));
        }
        group as u32
    }

    /// Places all groups by hashes of their own, and then the row.
    #[cold]
    fn distrust<K: Keys>(&mut self, hash: u64, keys: K, row: usize) -> u32 {
        self.own = true;
        self.place(self.slots.len());
        match self.probe(hash, keys, row) {
            Probe::Group(group) => group,
            Probe::Empty(slot) => self.add(slot, hash, keys, row),
            Probe::Many => unreachable!("own hashes are probed to the end"),
        }
    }

    /// Places all groups in `slots` slots.
    #[cold]
    fn place(&mut self, slots: usize) {
        self.slots.clear();
        self.slots.resize(slots, EMPTY);
        let mask = slots - 1;
        for group in 0..self.hashes.len() {
            if let Some(later) = self.hashes.get(group + SLOTS_AHEAD) {
                self.ahead_slot(*later);
            }
            let hash = if self.own {
                own_hash(&self.keys[group * self.words..][..self.words])
            } else {
                self.hashes[group]
            };
            let mut at = hash as usize & mask;
            while self.slots[at] != EMPTY {
                at = (at + 1) & mask;
            }
            self.slots[at] = hash & HIGH | group as u64;
        }
    }
}

/// The high half of a word.
const HIGH: u64 = !0 << 32;

/// What a search ended with.
enum Probe {
    /// The group of the key.
    Group(u32),
    /// The empty slot where the key belongs.
    Empty(usize),
    /// Neither, after [`MANY`] slots.
    Many,
}

/// Hash of a key for invariant 4; unlike callers' hashes it has no seed that they know.
fn own_hash(words: &[u64]) -> u64 {
    words.iter().fold(0x5851_f42d_4c95_7f2d, |hash, w| {
        mix(hash ^ w).rotate_left(23)
    })
}

/// The columns of keys, with their number known to the compiler or not.
trait Keys: Copy {
    /// Words per key.
    fn words(self) -> usize;
    /// One word of a row's key.
    fn word(self, row: usize, word: usize) -> u64;

    /// Whether the row's key is that of `group` in `keys`.
    #[inline(always)]
    fn equal(self, row: usize, keys: &[u64], group: usize) -> bool {
        let known = &keys[group * self.words()..][..self.words()];
        (0..self.words()).fold(true, |equal, word| {
            equal & (self.word(row, word) == known[word])
        })
    }

    /// As [`own_hash`] of the row's key.
    #[cold]
    fn hash(self, row: usize) -> u64 {
        let mut key = [0; MAX_WORDS];
        let key = &mut key[..self.words()];
        for (index, word) in key.iter_mut().enumerate() {
            *word = self.word(row, index);
        }
        own_hash(key)
    }
}

/// Keys of `W` words.
#[derive(Clone, Copy)]
struct Fixed<'a, const W: usize>([&'a [u64]; W]);

impl<const W: usize> Keys for Fixed<'_, W> {
    #[inline(always)]
    fn words(self) -> usize {
        W
    }
    #[inline(always)]
    fn word(self, row: usize, word: usize) -> u64 {
        self.0[word][row]
    }
}

/// Keys of any number of words.
#[derive(Clone, Copy)]
struct Columns<'a>(&'a [&'a [u64]]);

impl Keys for Columns<'_> {
    #[inline(always)]
    fn words(self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    fn word(self, row: usize, word: usize) -> u64 {
        self.0[word][row]
    }
}
