//! Which bytes of a simulated file take room on the disk, and which are holes.

use std::collections::BTreeMap;
use std::ops::Range;

/// The bytes of one file that take room.
///
/// Invariants: no range is empty, none overlaps or adjoins another; `bytes` is their sum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Room {
    /// Start to end.
    ranges: BTreeMap<usize, usize>,
    bytes: usize,
}

impl Room {
    /// A file of this length without holes.
    pub(super) fn whole(length: usize) -> Room {
        let mut room = Room::default();
        room.add(0..length);
        room
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// How many bytes of `range` are holes.
    pub(super) fn missing(&self, range: &Range<usize>) -> u64 {
        let within = self
            .touching(range)
            .map(|(start, end)| end.min(range.end).saturating_sub(start.max(range.start)));
        (range.len() - within.sum::<usize>()) as u64
    }

    /// How long a part of `range` from its start on takes at most `free` more bytes.
    pub(super) fn prefix(&self, range: &Range<usize>, free: u64) -> usize {
        let mut free = usize::try_from(free).unwrap_or(usize::MAX);
        let mut at = range.start;
        for (start, end) in self.touching(range) {
            let hole = start.saturating_sub(at);
            if hole > free {
                break;
            }
            free -= hole;
            at = at.max(end.min(range.end));
        }
        at.saturating_add(free).min(range.end) - range.start
    }

    /// From now on `range` takes room.
    pub(super) fn add(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let joined: Vec<_> = self
            .touching(&(range.start.saturating_sub(1)..range.end + 1))
            .collect();
        let (mut from, mut to) = (range.start, range.end);
        for (start, end) in joined {
            self.ranges.remove(&start);
            self.bytes -= end - start;
            (from, to) = (from.min(start), to.max(end));
        }
        self.ranges.insert(from, to);
        self.bytes += to - from;
    }

    /// The file ends at `length` now.
    pub(super) fn cut(&mut self, length: usize) {
        for (start, end) in self.ranges.split_off(&length) {
            self.bytes -= end - start;
        }
        if let Some((_, end)) = self.ranges.iter_mut().next_back()
            && *end > length
        {
            self.bytes -= *end - length;
            *end = length;
        }
    }

    /// The ranges that overlap `range`, in their order.
    fn touching(&self, range: &Range<usize>) -> impl Iterator<Item = (usize, usize)> {
        let before = self.ranges.range(..range.start).next_back();
        let from = before
            .filter(|(_, end)| **end > range.start)
            .map_or(range.start, |(start, _)| *start);
        self.ranges
            .range(from..range.end.max(from))
            .map(|(start, end)| (*start, *end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn room_is_what_a_set_of_bytes_says(
            steps in prop::collection::vec((0usize..60, 0usize..30, 0..4u8, 0u64..40), 1..60),
        ) {
            let mut room = Room::default();
            let mut taken = [false; 100];
            for (start, length, step, free) in steps {
                let range = start..start + length;
                let holes = |range: Range<usize>| range.filter(|&at| !taken[at]).count() as u64;
                prop_assert_eq!(room.missing(&range), holes(range.clone()));
                let fits = (0..=length).rev().find(|n| holes(start..start + n) <= free);
                prop_assert_eq!(Some(room.prefix(&range, free)), fits);
                if step == 0 {
                    room.cut(start);
                    taken[start..].fill(false);
                } else {
                    room.add(range.clone());
                    taken[range].fill(true);
                }
                prop_assert_eq!(room.bytes(), taken.iter().filter(|at| **at).count() as u64);
            }
            let again = taken.iter().enumerate().fold(Room::default(), |mut room, (at, taken)| {
                if *taken {
                    room.add(at..at + 1);
                }
                room
            });
            prop_assert_eq!(room, again);
        }
    }
}
