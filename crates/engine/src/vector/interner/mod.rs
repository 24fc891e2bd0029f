//! String interning: equal strings get the same number; numbers count up from 0 in order of first appearance. A
//! loose interner gives every string a number of its own.

mod merge;

use std::sync::Arc;

use algebra::hash::{hash_bytes, hash_u128};
use algebra::prefetch;
use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, make_view};
use arrow::buffer::{Buffer, ScalarBuffer};

use crate::vector::strings::Strings;

const SEED: u64 = 0x5EED_A701;

/// Stands for a string that was never added, and for NULL.
pub(crate) const NOBODY: u32 = u32::MAX;

/// An empty slot. No used slot has this value, because numbers stay below `u32::MAX`.
const EMPTY: u64 = u64::MAX;
/// Mask of the high half of a word.
const HIGH: u64 = !0 << 32;
/// Slots of a new hash table.
const FIRST_SLOTS: usize = 1024;
/// From this many slots on (512 KiB), memory of later rows is prefetched: slots, views and bytes, so many rows
/// ahead.
const LARGE: usize = 1 << 16;
const SLOTS_AHEAD: usize = 32;
pub(crate) const VIEWS_AHEAD: usize = 20;
pub(crate) const BYTES_AHEAD: usize = 10;
/// Longest string, in bytes, that its view holds whole.
pub(crate) const INLINE: u32 = 12;
/// Bytes of the first block, and of the largest.
const FIRST_BLOCK: usize = 16 << 10;
const LARGEST_BLOCK: usize = 4 << 20;
/// Views of a chunk of those that a loose interner adds.
const CHUNK: usize = 1 << 14;

/// Maps strings to numbers and numbers to strings.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    /// The hash table, with open addressing and linear probing. A slot holds a string number and the high half of
    /// its hash. Invariant: at most half of the slots are used; their number is 0 before the first string, then a
    /// power of two.
    slots: Vec<u64>,
    /// The hash of each string, so that growing the table does not read strings. Empty once it is loose.
    hashes: Vec<u64>,
    /// Each string as an Arrow view: its length, then the whole string, or its first four bytes, block and offset.
    views: Vec<u128>,
    /// The views of further strings, once it is loose. Invariant: all chunks but the last have [`CHUNK`] views, and none grows: one
    /// vector of all would be copied to fresh memory each time that it doubles.
    later: Vec<Vec<u128>>,
    /// Full blocks of string bytes.
    full: Vec<Buffer>,
    /// The block being filled. Invariant: it never grows beyond its first capacity.
    open: Vec<u8>,
    /// Bytes allocated for blocks.
    bytes: usize,
    /// The number of NULL, once it has one.
    null: Option<u32>,
    /// How many strings were added, those that were known included.
    added: usize,
    /// Whether equal strings may have several numbers: then nothing is looked for.
    loose: bool,
    /// The shared array that rows were last added from, and the number of each of its rows; [`NOBODY`] for rows not
    /// added yet.
    last: Option<(ArrayRef, Vec<u32>)>,
    batch: Batch,
}

/// Strings that are probed together. Reused.
#[derive(Debug, Default)]
struct Batch {
    views: Vec<u128>,
    hashes: Vec<u64>,
    /// The row of each distinct string.
    rows: Vec<usize>,
    /// For each row, the index of its string here: a short string that repeats is probed once.
    places: Vec<u32>,
    numbers: Vec<u32>,
}

impl Batch {
    /// Reads `rows` of `array`; NULL counts as the empty string.
    fn read(&mut self, array: &StringViewArray, rows: impl Iterator<Item = usize>) {
        self.views.clear();
        self.hashes.clear();
        self.rows.clear();
        self.places.clear();
        // The last short string and its index.
        let mut before = None;
        for row in rows {
            let view = if array.is_null(row) {
                0
            } else {
                array.views()[row]
            };
            let place = self.views.len() as u32;
            match before {
                Some((short, known)) if short == view => {
                    self.places.push(known);
                    continue;
                }
                _ => self.places.push(place),
            }
            self.views.push(view);
            self.rows.push(row);
            if view as u32 <= INLINE {
                before = Some((view, place));
            }
            self.hashes
                .push(hash_of(view, || array.value(row).as_bytes()));
        }
    }

    /// Writes the hash of each row to `out`.
    fn spread_hashes(&self, out: &mut Vec<u64>) {
        out.clear();
        let hash = |place: &u32| self.hashes[*place as usize];
        out.extend(self.places.iter().map(hash));
    }

    /// Writes the number of each row to `out`. Each string must have its number.
    fn spread(&self, out: &mut Vec<u32>) {
        out.clear();
        let number = |place: &u32| self.numbers[*place as usize];
        out.extend(self.places.iter().map(number));
    }
}

/// The hash of a string with this view. `bytes` is called only if the view does not hold the whole string.
#[inline(always)]
fn hash_of<'t>(view: u128, bytes: impl FnOnce() -> &'t [u8]) -> u64 {
    if view as u32 <= INLINE {
        hash_u128(view, SEED)
    } else {
        hash_bytes(bytes(), SEED)
    }
}

/// Whether an array is so large that several batches are likely to refer to its rows.
fn is_shared(base: &ArrayRef) -> bool {
    base.len() > 2 * algebra::VECTOR_ROWS
}

/// Where a string is, or where it would be inserted.
enum Found {
    Number(u32),
    Slot(usize),
}

impl Interner {
    /// How many numbers there are.
    pub fn len(&self) -> usize {
        let last = self.later.last().map_or(0, Vec::len);
        self.views.len() + self.later.len().saturating_sub(1) * CHUNK + last
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        let views = self.views.capacity() + self.later.len() * CHUNK;
        let words = self.slots.capacity() + self.hashes.capacity() + 2 * views;
        self.bytes + 8 * words
    }

    /// The numbers of the rows of `texts`; new strings are added. [`NOBODY`] for NULLs, which either the array or
    /// `valid` marks.
    pub fn add(&mut self, texts: &Strings, valid: Option<&[bool]>, out: &mut Vec<u32>) {
        self.added += texts.len();
        let (base, rows) = texts.parts();
        let row = |place: u32| rows.map_or(place, |rows| rows[place as usize]);
        if base.null_count() == 0 && valid.is_none() {
            return match rows {
                None => self.add_some(base.as_string_view(), 0..base.len(), out),
                Some(rows) => self.add_rows(base, rows, out),
            };
        }
        let there = |place: &u32| {
            valid.is_none_or(|valid| valid[*place as usize]) && !base.is_null(row(*place) as usize)
        };
        let places: Vec<u32> = (0..texts.len() as u32).filter(there).collect();
        let own: Vec<u32> = places.iter().map(|place| row(*place)).collect();
        let mut numbers = Vec::new();
        self.add_rows(base, &own, &mut numbers);
        out.clear();
        out.resize(texts.len(), NOBODY);
        for (place, number) in places.iter().zip(numbers) {
            out[*place as usize] = number;
        }
    }

    /// The numbers and hashes of rows of `base`, none of them NULL; new strings are added.
    pub fn add_hashed(
        &mut self,
        base: &ArrayRef,
        rows: &[u32],
        out: &mut Vec<u32>,
        hashes: &mut Vec<u64>,
    ) {
        self.added += rows.len();
        if self.loose {
            return self.append(base.as_string_view(), rows, out, hashes);
        }
        self.add_rows(base, rows, out);
        if is_shared(base) {
            hashes.clear();
            hashes.extend(out.iter().map(|number| self.hashes[*number as usize]));
        } else {
            self.batch.spread_hashes(hashes);
        }
    }

    /// Gives each of the rows of `array` the next number.
    fn append(
        &mut self,
        array: &StringViewArray,
        rows: &[u32],
        out: &mut Vec<u32>,
        hashes: &mut Vec<u64>,
    ) {
        let first = self.len();
        let end = first + rows.len();
        assert!(end < NOBODY as usize, "too many texts");
        out.clear();
        out.extend(first as u32..end as u32);
        hashes.clear();
        for row in rows {
            let row = *row as usize;
            let bytes = array.value(row).as_bytes();
            let view = array.views()[row];
            let is_short = view as u32 <= INLINE;
            hashes.push(hash_of(view, || bytes));
            let view = if is_short { view } else { self.keep(bytes) };
            self.push_later(view);
        }
    }

    /// Gives a view the next number, once it is loose.
    #[inline(always)]
    fn push_later(&mut self, view: u128) {
        match self.later.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(view),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(view);
                self.later.push(chunk);
            }
        }
    }

    /// The numbers of rows of `base`, none of them NULL; new strings are added. Rows of a large shared array are probed once, however
    /// many batches refer to them.
    fn add_rows(&mut self, base: &ArrayRef, rows: &[u32], out: &mut Vec<u32>) {
        if is_shared(base) {
            return self.add_shared(base, rows, out);
        }
        self.add_some(
            base.as_string_view(),
            rows.iter().map(|row| *row as usize),
            out,
        )
    }

    fn add_shared(&mut self, base: &ArrayRef, rows: &[u32], out: &mut Vec<u32>) {
        let mut numbers = match self.last.take() {
            Some((last, numbers)) if Arc::ptr_eq(&last, base) => numbers,
            _ => vec![NOBODY; base.len()],
        };
        let array = base.as_string_view();
        let new = |row: &usize| numbers[*row] == NOBODY;
        let fresh: Vec<usize> = rows.iter().map(|row| *row as usize).filter(new).collect();
        self.add_some(array, fresh.iter().copied(), out);
        for (row, number) in fresh.iter().zip(out.iter()) {
            numbers[*row] = *number;
        }
        out.clear();
        out.extend(rows.iter().map(|row| numbers[*row as usize]));
        self.last = Some((base.clone(), numbers));
    }

    /// The number of NULL, which is assigned on the first call.
    pub fn null(&mut self) -> u32 {
        *self.null.get_or_insert_with(|| {
            self.views.push(0);
            self.hashes.push(0);
            self.views.len() as u32 - 1
        })
    }

    /// Whether `number` is that of NULL.
    pub fn is_null(&self, number: u32) -> bool {
        self.null == Some(number)
    }

    /// The numbers of `rows` of `array`, none of them NULL, with their hashes; [`NOBODY`] for strings that were never added.
    pub fn find(
        &self,
        array: &StringViewArray,
        rows: &[u32],
        out: &mut Vec<u32>,
        hashes: &mut Vec<u64>,
    ) {
        let mut batch = Batch::default();
        batch.read(array, rows.iter().map(|row| *row as usize));
        for (place, (hash, row)) in batch.hashes.iter().zip(&batch.rows).enumerate() {
            self.ahead(&batch.hashes, place);
            let bytes = || array.value(*row).as_bytes();
            let found = self.probe(*hash, batch.views[place], bytes);
            batch.numbers.push(match found {
                Found::Number(number) => number,
                Found::Slot(_) => NOBODY,
            });
        }
        batch.spread(out);
        batch.spread_hashes(hashes);
    }

    fn add_some(
        &mut self,
        array: &StringViewArray,
        rows: impl Iterator<Item = usize>,
        out: &mut Vec<u32>,
    ) {
        let mut batch = std::mem::take(&mut self.batch);
        batch.read(array, rows);
        batch.numbers.clear();
        for (place, (hash, row)) in batch.hashes.iter().zip(&batch.rows).enumerate() {
            self.ahead(&batch.hashes, place);
            let view = batch.views[place];
            let bytes = || array.value(*row).as_bytes();
            batch.numbers.push(match self.probe(*hash, view, bytes) {
                Found::Number(number) => number,
                Found::Slot(slot) => {
                    let view = if view as u32 <= INLINE {
                        view
                    } else {
                        self.keep(bytes())
                    };
                    self.insert(slot, *hash, view)
                }
            });
        }
        batch.spread(out);
        self.batch = batch;
    }

    /// Finds a string's number or its free slot. `bytes` is called only if the view does not hold the whole string.
    #[inline(always)]
    fn probe<'t>(&self, hash: u64, view: u128, bytes: impl Fn() -> &'t [u8]) -> Found {
        if self.slots.is_empty() {
            return Found::Slot(0);
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == EMPTY {
                return Found::Slot(at);
            }
            if (slot ^ hash) >> 32 == 0 {
                let own = self.views[slot as u32 as usize];
                // Length and first bytes.
                let alike = own as u64 == view as u64;
                let same =
                    alike && (own == view || view as u32 > INLINE && self.text(own) == bytes());
                if same {
                    return Found::Number(slot as u32);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Prefetches what later rows of a batch will probe, if the table is larger than the near caches.
    #[inline(always)]
    pub fn ahead(&self, hashes: &[u64], place: usize) {
        if self.slots.len() < LARGE {
            return;
        }
        let slot = |hash: &u64| &self.slots[*hash as usize & (self.slots.len() - 1)];
        let view = |hash: &u64| self.views.get(*slot(hash) as u32 as usize);
        if let Some(later) = hashes.get(place + SLOTS_AHEAD) {
            prefetch(slot(later));
        }
        if let Some(view) = hashes.get(place + VIEWS_AHEAD).and_then(view) {
            prefetch(view);
        }
        if let Some(view) = hashes.get(place + BYTES_AHEAD).and_then(view)
            && let Some(first) = self.text(*view).first()
        {
            prefetch(first);
        }
    }

    /// The bytes of a string that its view does not hold whole; empty for others.
    #[inline(always)]
    fn text(&self, view: u128) -> &[u8] {
        let length = view as u32;
        if length <= INLINE {
            return &[];
        }
        let (block, place) = ((view >> 64) as u32 as usize, (view >> 96) as usize);
        let block = self.full.get(block).map_or(&self.open[..], |full| full);
        &block[place..place + length as usize]
    }

    /// Copies a long string to the blocks and returns its view.
    fn keep(&mut self, text: &[u8]) -> u128 {
        if self.open.capacity() - self.open.len() < text.len() {
            let room = (2 * self.open.capacity()).clamp(FIRST_BLOCK, LARGEST_BLOCK);
            let room = Vec::with_capacity(room.max(text.len()));
            self.close(room);
        }
        let place = self.open.len() as u32;
        self.open.extend_from_slice(text);
        make_view(text, self.full.len() as u32, place)
    }

    /// Closes the open block and starts `next`.
    fn close(&mut self, next: Vec<u8>) {
        self.bytes += next.capacity();
        let full = std::mem::replace(&mut self.open, next);
        // An empty block gets a number too.
        self.full.push(Buffer::from_vec(full));
    }

    /// Gives a new string the next number.
    fn insert(&mut self, slot: usize, hash: u64, view: u128) -> u32 {
        assert!(self.views.len() < NOBODY as usize, "too many texts");
        let number = self.views.len() as u32;
        self.views.push(view);
        self.hashes.push(hash);
        match self.slots.get_mut(slot) {
            Some(slot) => *slot = hash & HIGH | u64::from(number),
            None => self.place(FIRST_SLOTS),
        }
        if self.views.len() * 2 > self.slots.len() {
            self.place(self.slots.len() * 2);
        }
        number
    }

    /// Rebuilds the table with `slots` slots.
    #[cold]
    fn place(&mut self, slots: usize) {
        self.slots.clear();
        self.slots.resize(slots, EMPTY);
        let mask = slots - 1;
        for (number, hash) in self.hashes.iter().enumerate() {
            if self.null == Some(number as u32) {
                continue;
            }
            if let Some(later) = self.hashes.get(number + SLOTS_AHEAD) {
                prefetch(&self.slots[*later as usize & mask]);
            }
            let mut at = *hash as usize & mask;
            while self.slots[at] != EMPTY {
                at = (at + 1) & mask;
            }
            self.slots[at] = hash & HIGH | number as u64;
        }
    }

    /// The view of the string with this number, for [`of_views`](Self::of_views); the empty string for unknown numbers.
    #[inline(always)]
    pub fn view(&self, number: u32) -> u128 {
        self.known(number).copied().unwrap_or(0)
    }

    /// The view of the string with this number; `None` for unknown numbers.
    #[inline(always)]
    fn known(&self, number: u32) -> Option<&u128> {
        let number = number as usize;
        match number.checked_sub(self.views.len()) {
            None => self.views.get(number),
            Some(later) => self.later.get(later / CHUNK)?.get(later % CHUNK),
        }
    }

    /// The strings of these numbers; the empty string for unknown numbers.
    pub fn array(&self, numbers: impl Iterator<Item = u32>) -> ArrayRef {
        let views = numbers.map(|number| self.view(number)).collect();
        // SAFETY: all are views of this interner.
        unsafe { self.of_views(views) }
    }

    /// The strings of these views.
    ///
    /// # Safety
    /// Each must be a [`view`](Self::view) of this interner, or that of a string of UTF-8 which it holds whole.
    pub unsafe fn of_views(&self, views: Vec<u128>) -> ArrayRef {
        let long = views.iter().any(|view| *view as u32 > INLINE);
        let mut blocks = vec![];
        if long {
            blocks.clone_from(&self.full);
            blocks.push(Buffer::from_slice_ref(&self.open));
        }
        // SAFETY: every view is 0, or was made by `make_view` of a string at that place of that block, or is the view of
        // a string that the view holds whole, as the caller promises; interned strings are UTF-8 by their type.
        Arc::new(unsafe { StringViewArray::new_unchecked(ScalarBuffer::from(views), blocks, None) })
    }
}

#[cfg(test)]
mod tests;
