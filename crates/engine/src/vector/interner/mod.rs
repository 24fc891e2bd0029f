//! Numbers for texts: equal texts have one number, and numbers ascend from 0 in the order of first appearance.

use std::sync::Arc;

use algebra::hash::{hash_bytes, hash_u128};
use algebra::prefetch;
use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, make_view};
use arrow::buffer::{Buffer, ScalarBuffer};

use crate::vector::strings::Strings;

const SEED: u64 = 0x5EED_A701;

/// The number of a text that is not there, and of what is no text.
pub(crate) const NOBODY: u32 = u32::MAX;

/// An empty slot: numbers stay below.
const EMPTY: u64 = u64::MAX;
/// The high half of a word.
const HIGH: u64 = !0 << 32;
/// Slots of a new table.
const FIRST_SLOTS: usize = 1024;
/// From how many slots on (512 KiB) later rows are fetched ahead, and how many rows: a slot, a view, bytes.
const LARGE: usize = 1 << 16;
const SLOTS_AHEAD: usize = 32;
const VIEWS_AHEAD: usize = 20;
const BYTES_AHEAD: usize = 10;
/// Views of texts up to this long hold all of them.
const INLINE: u32 = 12;
/// Bytes of the first block, and of the largest.
const FIRST_BLOCK: usize = 16 << 10;
const LARGEST_BLOCK: usize = 4 << 20;

/// Texts by number, and numbers by text.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    /// Open addressing with linear probing: a number, and the high half of the hash that placed it. Invariant: at most
    /// half are used, and how many there are is a power of two, or none before the first text.
    slots: Vec<u64>,
    /// The hash of each text: a table that grows looks at no text.
    hashes: Vec<u64>,
    /// Each text as Arrow has it: how long it is, and all of it or its first four bytes, its block and place there.
    views: Vec<u128>,
    /// Blocks of bytes that are full.
    full: Vec<Buffer>,
    /// The block after them. Invariant: it never has more bytes than it first had room for.
    open: Vec<u8>,
    /// Bytes of the blocks.
    bytes: usize,
    /// The number of what is no text, once it has one.
    null: Option<u32>,
    /// The array that rows were added of last, and the number of each row that was; [`NOBODY`] for the others.
    last: Option<(ArrayRef, Vec<u32>)>,
    batch: Batch,
}

/// Texts that are looked up together. Reused.
#[derive(Debug, Default)]
struct Batch {
    views: Vec<u128>,
    hashes: Vec<u64>,
    /// The row of each text.
    rows: Vec<usize>,
    /// Which of these texts each row has: short ones that come again need not be looked up again.
    places: Vec<u32>,
    numbers: Vec<u32>,
}

impl Batch {
    /// The texts of `rows` of `array`; what is NULL there stands for the empty text.
    fn read(&mut self, array: &StringViewArray, rows: impl Iterator<Item = usize>) {
        self.views.clear();
        self.hashes.clear();
        self.rows.clear();
        self.places.clear();
        // The short text that came last, and its place.
        let mut before = None;
        for row in rows {
            let view = match array.is_null(row) {
                true => 0,
                false => array.views()[row],
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
            self.hashes.push(match view as u32 <= INLINE {
                true => {
                    before = Some((view, place));
                    hash_u128(view, SEED)
                }
                false => hash_bytes(array.value(row).as_bytes(), SEED),
            });
        }
    }

    /// Of each row, once each text has its number.
    fn spread(&self, out: &mut Vec<u32>) {
        out.clear();
        let number = |place: &u32| self.numbers[*place as usize];
        out.extend(self.places.iter().map(number));
    }
}

/// Where a text is, or would be.
enum Found {
    Number(u32),
    Slot(usize),
}

impl Interner {
    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// Bytes it takes.
    pub fn memory(&self) -> usize {
        let words = self.slots.capacity() + self.hashes.capacity() + 2 * self.views.capacity();
        self.bytes + 8 * words
    }

    /// The numbers of the rows of `texts`, new ones for new texts; [`NOBODY`] for NULLs, which `valid` tells as well.
    pub fn add(&mut self, texts: &Strings, valid: Option<&[bool]>, out: &mut Vec<u32>) {
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

    /// Those of an array that comes again are looked up once.
    fn add_rows(&mut self, base: &ArrayRef, rows: &[u32], out: &mut Vec<u32>) {
        match base.len() <= 2 * algebra::VECTOR_ROWS {
            true => self.add_some(
                base.as_string_view(),
                rows.iter().map(|row| *row as usize),
                out,
            ),
            false => self.add_shared(base, rows, out),
        }
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

    /// The number of what is no text: one of its own.
    pub fn null(&mut self) -> u32 {
        *self.null.get_or_insert_with(|| {
            self.views.push(0);
            self.hashes.push(0);
            self.views.len() as u32 - 1
        })
    }

    /// Whether that is `number`.
    pub fn is_null(&self, number: u32) -> bool {
        self.null == Some(number)
    }

    /// The numbers of the rows of `array`; [`NOBODY`] for NULLs and for texts that were never added.
    pub fn find(&self, array: &StringViewArray, out: &mut Vec<u32>) {
        let mut batch = Batch::default();
        batch.read(array, 0..array.len());
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
        strike(array, out);
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
                    let view = match view as u32 <= INLINE {
                        true => view,
                        false => self.keep(bytes()),
                    };
                    self.insert(slot, *hash, view)
                }
            });
        }
        batch.spread(out);
        self.batch = batch;
    }

    /// Where a text is or belongs. `bytes` are asked for if its view does not hold them.
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

    /// Fetches what later rows of a batch will look at, where the table is larger than the near caches.
    #[inline(always)]
    fn ahead(&self, hashes: &[u64], place: usize) {
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

    /// The bytes of a text that is longer than its view; of others none.
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

    /// Copies a long text to the blocks; its view there.
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

    /// The open block is full; another one follows.
    fn close(&mut self, next: Vec<u8>) {
        self.bytes += next.capacity();
        let full = std::mem::replace(&mut self.open, next);
        // A block without bytes has its number too.
        self.full.push(Buffer::from_vec(full));
    }

    /// Gives a text that is not there the next number.
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

    /// Places all texts in `slots` slots.
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

    /// The texts of these numbers; the empty one for numbers that nobody has.
    pub fn array(&self, numbers: impl Iterator<Item = u32>) -> ArrayRef {
        let view = |number| self.views.get(number as usize).copied().unwrap_or(0);
        let views: Vec<u128> = numbers.map(view).collect();
        let long = views.iter().any(|view| *view as u32 > INLINE);
        let mut blocks = vec![];
        if long {
            blocks.clone_from(&self.full);
            blocks.push(Buffer::from_slice_ref(&self.open));
        }
        // SAFETY: every view is 0 or was made by `make_view` of a text that stands in that block at that place, or is
        // that of an array of texts with all of it inside; a text is UTF-8 by its type.
        Arc::new(unsafe { StringViewArray::new_unchecked(ScalarBuffer::from(views), blocks, None) })
    }

    /// The numbers that the texts of `other` have here, in its order. Its blocks are shared, not copied.
    pub fn adopt(&mut self, other: &Interner) -> Vec<u32> {
        let mut first = 0;
        if !other.full.is_empty() || !other.open.is_empty() {
            self.close(vec![]);
            first = self.full.len() as u32;
            self.full.extend(other.full.iter().cloned());
            self.full.push(Buffer::from_slice_ref(&other.open));
            self.bytes += other.bytes;
        }
        let mut numbers = Vec::with_capacity(other.len());
        for (number, (view, hash)) in other.views.iter().zip(&other.hashes).enumerate() {
            if other.is_null(number as u32) {
                numbers.push(self.null());
                continue;
            }
            self.ahead(&other.hashes, number);
            numbers.push(match self.probe(*hash, *view, || other.text(*view)) {
                Found::Number(number) => number,
                Found::Slot(slot) => {
                    let own = match *view as u32 <= INLINE {
                        true => *view,
                        false => *view + (u128::from(first) << 64),
                    };
                    self.insert(slot, *hash, own)
                }
            });
        }
        numbers
    }
}

/// NULLs are nobody's.
fn strike(array: &StringViewArray, numbers: &mut [u32]) {
    if array.null_count() == 0 {
        return;
    }
    let nulls = numbers.iter_mut().enumerate();
    let nulls = nulls.filter(|(row, _)| array.is_null(*row));
    nulls.for_each(|(_, number)| *number = NOBODY);
}

#[cfg(test)]
mod tests;
