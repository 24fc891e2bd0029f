//! Sorting in memory, byte by byte from the lowest (LSD radix sort).

use bytemuck::Pod;

/// A key, and perhaps a value that goes with it.
pub(crate) trait Record: Pod + Send + Sync + std::fmt::Debug {
    /// A record; the value is dropped where it has no room.
    fn new(key: u64, value: u64) -> Self;
    fn key(self) -> u64;
    /// 0 where it has no room.
    fn value(self) -> u64;
}

impl Record for u64 {
    #[inline]
    fn new(key: u64, _: u64) -> u64 {
        key
    }

    #[inline]
    fn key(self) -> u64 {
        self
    }

    #[inline]
    fn value(self) -> u64 {
        0
    }
}

impl Record for [u64; 2] {
    #[inline]
    fn new(key: u64, value: u64) -> [u64; 2] {
        [key, value]
    }

    #[inline]
    fn key(self) -> u64 {
        self[0]
    }

    #[inline]
    fn value(self) -> u64 {
        self[1]
    }
}

/// Sorts by key; equal keys keep their order. `scratch` ends as long as `records`.
pub(crate) fn sort<R: Record>(records: &mut Vec<R>, scratch: &mut Vec<R>) {
    if records.is_sorted_by_key(|record| record.key()) {
        return;
    }
    let mut counts = [[0_usize; 256]; 8];
    for record in records.iter() {
        let key = record.key().to_le_bytes();
        for (counts, byte) in counts.iter_mut().zip(key) {
            counts[byte as usize] += 1;
        }
    }
    scratch.resize(records.len(), R::zeroed());
    for (digit, counts) in counts.iter_mut().enumerate() {
        // All keys have the same byte here.
        if counts.contains(&records.len()) {
            continue;
        }
        let mut start = 0;
        for count in counts.iter_mut() {
            start += std::mem::replace(count, start);
        }
        for &record in records.iter() {
            let byte = (record.key() >> (8 * digit)) as u8;
            let place = &mut counts[byte as usize];
            scratch[*place] = record;
            *place += 1;
        }
        std::mem::swap(records, scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_a_stable_sort(keys in prop::collection::vec(prop_oneof![0..9_u64, any::<u64>()], 0..300)) {
            let mut records: Vec<[u64; 2]> = keys.iter().enumerate().map(|(at, &key)| [key, at as u64]).collect();
            let mut expected = records.clone();
            expected.sort_by_key(|record| record[0]);
            sort(&mut records, &mut Vec::new());
            prop_assert_eq!(records, expected);
        }
    }
}
