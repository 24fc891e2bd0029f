//! Which parts of the data file are free, and which page ids.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

use buffer::PageId;

use crate::format::structures::{ALIGNMENT, FIRST_EXTENT};

/// Holes of at least this size are preferred: pages written one after the other then lie one
/// after the other, and their reads are coalesced.
const RUN: u64 = 1 << 20;
/// The file grows by an eighth, but by at least and at most this much.
const GROWTH: RangeInclusive<u64> = RUN..=64 << 20;

/// How many holes are looked at where the lowest is preferred.
const LOOKS: usize = 64;

/// The free parts of the data file.
///
/// Invariants:
/// 1. `holes` neither overlap nor adjoin, lie in `FIRST_EXTENT..end`, and are multiples of
///    `unit`, a power of two of at least `ALIGNMENT`. Lengths that are given are rounded up to it.
/// 2. `sizes` holds exactly the holes.
/// 3. `run` is free, lies below `end`, and overlaps no hole.
#[derive(Debug)]
pub(crate) struct Extents {
    holes: BTreeMap<u64, u64>,
    /// (length, offset) of every hole.
    sizes: BTreeSet<(u64, u64)>,
    /// Extents begin at multiples of this.
    unit: u64,
    /// What the next extents are cut from: start and end.
    run: (u64, u64),
    /// Where the file ends, as far as we use it.
    end: u64,
    /// Whether the lowest hole that is large enough is taken, to make the end free.
    lowest: bool,
}

impl Extents {
    /// No free part of no file.
    pub(crate) fn none() -> Extents {
        Extents {
            holes: BTreeMap::new(),
            sizes: BTreeSet::new(),
            unit: ALIGNMENT,
            run: (FIRST_EXTENT, FIRST_EXTENT),
            end: FIRST_EXTENT,
            lowest: false,
        }
    }

    /// The complement of `used`, pairs of offset and length in the order of the offsets, which are
    /// multiples of `unit`. Fails with the position of the first pair that overlaps the one before.
    pub(crate) fn complement(
        used: impl IntoIterator<Item = (u64, u64)>,
        unit: u64,
    ) -> Result<Extents, usize> {
        let mut extents = Extents {
            unit,
            ..Extents::none()
        };
        for (position, (offset, length)) in used.into_iter().enumerate() {
            if offset < extents.end {
                return Err(position);
            }
            if offset > extents.end {
                extents.insert(extents.end, offset - extents.end);
            }
            extents.end = (offset + length).next_multiple_of(unit);
        }
        Ok(extents)
    }

    /// What extents begin at multiples of.
    pub(crate) fn unit(&self) -> u64 {
        self.unit
    }

    /// `bytes` rounded up to whole units.
    pub(crate) fn whole(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.unit)
    }

    fn insert(&mut self, offset: u64, length: u64) {
        self.holes.insert(offset, length);
        self.sizes.insert((length, offset));
    }

    fn remove(&mut self, offset: u64, length: u64) {
        self.holes.remove(&offset);
        self.sizes.remove(&(length, offset));
    }

    /// Takes `bytes` from the run, else from the smallest hole of at least `RUN`, else from the
    /// smallest that is large enough. `None`: the file must grow.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<u64> {
        debug_assert!(bytes > 0);
        let bytes = self.whole(bytes);
        if self.lowest {
            return self.take_before(bytes, self.end);
        }
        if self.run.1 - self.run.0 < bytes {
            let at_least = |bytes: u64| self.sizes.range((bytes, 0)..).next().copied();
            let (length, offset) = at_least(bytes.max(RUN)).or_else(|| at_least(bytes))?;
            self.remove(offset, length);
            self.new_run(offset, length);
        }
        let offset = self.run.0;
        self.run.0 += bytes;
        Some(offset)
    }

    /// From now on, whether [`take`](Extents::take) prefers the lowest place.
    pub(crate) fn prefer_lowest(&mut self, lowest: bool) {
        self.lowest = lowest;
        self.end_run();
    }

    fn end_run(&mut self) {
        self.new_run(FIRST_EXTENT, 0);
    }

    /// Where the first free bytes are.
    pub(crate) fn lowest(&mut self) -> Option<u64> {
        self.end_run();
        self.holes.first_key_value().map(|(&offset, _)| offset)
    }

    /// Takes `bytes` from the first hole that is large enough and begins before `limit`, if one of
    /// the first ones is; else from the smallest that does and is.
    pub(crate) fn take_before(&mut self, bytes: u64, limit: u64) -> Option<u64> {
        self.end_run();
        let bytes = self.whole(bytes);
        let before = |offset: u64| offset + bytes <= limit;
        let first = self.holes.range(..limit).take(LOOKS);
        let first = first
            .map(|(&offset, &length)| (length, offset))
            .find(|&(length, offset)| length >= bytes && before(offset));
        let (length, offset) = first.or_else(|| {
            let mut large = self.sizes.range((bytes, 0)..).take(LOOKS).copied();
            large.find(|&(_, offset)| before(offset))
        })?;
        self.remove(offset, length);
        if length > bytes {
            self.insert(offset + bytes, length - bytes);
        }
        Some(offset)
    }

    /// Gives back what `take` gave last, so that it gives it next.
    pub(crate) fn untake(&mut self, offset: u64, bytes: u64) {
        let bytes = self.whole(bytes);
        if offset + bytes == self.run.0 {
            self.run.0 = offset;
        } else {
            self.give(offset, bytes);
        }
    }

    fn new_run(&mut self, offset: u64, length: u64) {
        let (start, end) = std::mem::replace(&mut self.run, (offset, offset + length));
        self.give(start, end - start);
    }

    /// How far the file is to grow so that `bytes` find room: what is wanted, and what suffices.
    pub(crate) fn growth(&self, bytes: u64) -> (u64, u64) {
        let step = (self.end / 8).clamp(*GROWTH.start(), *GROWTH.end());
        let bytes = self.whole(bytes);
        let step = self.whole(step.max(bytes));
        (
            self.end.saturating_add(step),
            self.end.saturating_add(bytes),
        )
    }

    /// The file has grown to `end`: the new part is what extents are cut from next.
    pub(crate) fn grown(&mut self, end: u64) {
        let old = self.end;
        self.end = end;
        if self.run.1 == old {
            self.run.1 = end;
        } else {
            self.new_run(old, end - old);
        }
    }

    /// Gives back `bytes` at `offset`.
    pub(crate) fn give(&mut self, mut offset: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let mut bytes = self.whole(bytes);
        debug_assert!(offset >= FIRST_EXTENT && offset + bytes <= self.end);
        if let Some((&before, &length)) = self.holes.range(..offset).next_back() {
            debug_assert!(before + length <= offset, "given back twice");
            if before + length == offset {
                self.remove(before, length);
                offset = before;
                bytes += length;
            }
        }
        if let Some(&length) = self.holes.get(&(offset + bytes)) {
            self.remove(offset + bytes, length);
            bytes += length;
        }
        self.insert(offset, bytes);
    }

    /// Takes all that is free up to `length`, the length of the file: pairs of offset and length.
    pub(crate) fn take_all(&mut self, length: u64) -> Vec<(u64, u64)> {
        let (start, end) = std::mem::replace(&mut self.run, (FIRST_EXTENT, FIRST_EXTENT));
        self.give(start, end - start);
        let length = self.whole(length);
        if length > self.end {
            let old = std::mem::replace(&mut self.end, length);
            self.give(old, length - old);
        }
        self.sizes.clear();
        std::mem::take(&mut self.holes).into_iter().collect()
    }

    /// Forgets the free end of the file; returns where the used part ends.
    pub(crate) fn trim(&mut self) -> u64 {
        let (start, end) = std::mem::replace(&mut self.run, (FIRST_EXTENT, FIRST_EXTENT));
        self.give(start, end - start);
        if let Some((&offset, &length)) = self.holes.last_key_value()
            && offset + length == self.end
        {
            self.remove(offset, length);
            self.end = offset;
        }
        self.end
    }

    /// Where the last extent in use ends.
    pub(crate) fn used_end(&self) -> u64 {
        let mut end = self.end;
        // The run and the last hole may lie in either order.
        for _ in 0..2 {
            if self.run.0 < self.run.1 && self.run.1 == end {
                end = self.run.0;
            }
            if let Some((&offset, &length)) = self.holes.range(..end).next_back()
                && offset + length == end
            {
                end = offset;
            }
        }
        end
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn free_bytes(&self) -> u64 {
        self.holes.values().sum::<u64>() + (self.run.1 - self.run.0)
    }
}

/// Which page ids are free.
#[derive(Debug)]
pub(crate) struct Ids {
    /// Ids from here on were never used.
    pub(crate) next: u64,
    /// Runs of free ids below `next`; none is empty.
    free: Vec<Range<u64>>,
}

impl Ids {
    /// No free ids but those from `next` on.
    pub(crate) fn none(next: u64) -> Ids {
        Ids {
            next,
            free: Vec::new(),
        }
    }

    pub(crate) fn take(&mut self) -> Option<PageId> {
        let Some(run) = self.free.last_mut() else {
            let page = PageId::try_from(self.next).ok()?;
            self.next += 1;
            return Some(page);
        };
        let page = run.start as PageId;
        run.start += 1;
        if run.is_empty() {
            self.free.pop();
        }
        Some(page)
    }

    /// Gives back ids, in their order, which are taken again in their order.
    pub(crate) fn give(&mut self, ids: &[PageId]) {
        for page in ids.iter().rev().map(|&page| u64::from(page)) {
            match self.free.last_mut() {
                Some(run) if run.start == page + 1 => run.start = page,
                _ => self.free.push(page..page + 1),
            }
        }
    }
}

/// Free ids, found as the others are told in their order.
#[derive(Debug, Default)]
pub(crate) struct FreeIds {
    free: Vec<Range<u64>>,
    expected: u64,
}

impl FreeIds {
    /// `page` is used; all that are told later are greater.
    pub(crate) fn pass(&mut self, page: u64) {
        if self.expected < page {
            self.free.push(self.expected..page);
        }
        self.expected = page + 1;
    }

    /// The others below `next`, and all from there on.
    pub(crate) fn below(mut self, next: u64) -> Ids {
        self.pass(next);
        // The lowest are taken first, which keeps the map small.
        self.free.reverse();
        Ids {
            next,
            free: self.free,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grow(extents: &mut Extents, bytes: u64) -> u64 {
        extents.take(bytes).unwrap_or_else(|| {
            let (wanted, _) = extents.growth(bytes);
            extents.grown(wanted);
            extents.take(bytes).expect("grown for it")
        })
    }

    fn complement(next: u64, used: &[u64]) -> Ids {
        let mut ids = FreeIds::default();
        used.iter().for_each(|page| ids.pass(*page));
        ids.below(next)
    }

    #[test]
    fn what_is_written_together_lies_together() {
        let mut extents = Extents::complement([], 64).unwrap();
        let offsets: Vec<_> = (0..100).map(|_| grow(&mut extents, 65_536)).collect();
        assert!(offsets.windows(2).all(|pair| pair[1] == pair[0] + 65_536));
    }

    #[test]
    fn ids_are_taken_from_the_lowest_and_again() {
        let mut ids = complement(6, &[1, 4]);
        let taken: Vec<_> = (0..6).map_while(|_| ids.take()).collect();
        assert_eq!(taken, [0, 2, 3, 5, 6, 7]);
        ids.give(&[2, 3, 6]);
        assert_eq!(ids.free, [6..7, 2..4]);
        assert_eq!(
            (0..4).map_while(|_| ids.take()).collect::<Vec<_>>(),
            [2, 3, 6, 8]
        );
        let mut all = complement(1 << 32, &[0]);
        assert_eq!(all.take(), Some(1));
        all.free.clear();
        assert_eq!(all.take(), None);
    }

    #[test]
    fn the_complement_names_overlaps() {
        let used = [
            (FIRST_EXTENT, 128),
            (FIRST_EXTENT + 256, 64),
            (FIRST_EXTENT + 256, 64),
        ];
        assert_eq!(Extents::complement(used, 64).unwrap_err(), 2);
        let mut extents = Extents::complement(used[..2].iter().copied(), 64).unwrap();
        assert_eq!(extents.free_bytes(), 128);
        assert_eq!(extents.take(128), Some(FIRST_EXTENT + 128));
        assert_eq!(extents.take(64), None);
    }

    proptest! {
        #[test]
        fn never_the_same_bytes_twice(steps in prop::collection::vec((0u64..60, any::<bool>()), 1..200)) {
            let mut extents = Extents::complement([], 64).unwrap();
            let mut held: BTreeMap<u64, u64> = BTreeMap::new();
            for (size, take) in steps {
                if take || held.is_empty() {
                    let bytes = (size + 1) * size.max(1) * 64;
                    let offset = grow(&mut extents, bytes);
                    let before = held.range(..offset + bytes).next_back();
                    prop_assert!(before.is_none_or(|(at, length)| at + length <= offset));
                    held.insert(offset, bytes);
                } else {
                    let key = *held.keys().nth(size as usize % held.len()).unwrap();
                    let bytes = held.remove(&key).unwrap();
                    extents.give(key, bytes);
                }
                let used: u64 = held.values().sum();
                prop_assert_eq!(used + extents.free_bytes(), extents.end() - FIRST_EXTENT);
            }
            let used_end = extents.used_end();
            let end = extents.trim();
            prop_assert_eq!(used_end, end);
            let last = held.last_key_value().map_or(FIRST_EXTENT, |(at, length)| at + length);
            prop_assert_eq!(end, last);
        }
    }
}
