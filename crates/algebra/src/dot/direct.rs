//! A join table that is addressed by the key.

use super::found::NONE;
use crate::encoded::{Stored, set_where};
use crate::fill;
use crate::level::dispatched;

/// Integers that are looked at, at most, to know whether one of them is a key.
const LOOKED_AT: usize = 65_536;

/// Rows of integer keys between two bounds, found by position: 4 bytes per integer between them.
///
/// Invariant: `rows` has one entry more than there are integers; the last is [`NONE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Direct {
    pub(super) min: i64,
    pub(super) rows: Vec<u32>,
}

impl Direct {
    /// An empty table for keys in `min..=max`.
    ///
    /// # Panics
    /// When `min > max`, or there are 2^32 integers between them or more.
    pub fn new(min: i64, max: i64) -> Direct {
        assert!(min <= max, "bounds are upside down");
        let span = max.wrapping_sub(min) as u64;
        assert!(
            span < u64::from(u32::MAX),
            "keys are too far apart to be found by position"
        );
        Direct {
            min,
            rows: vec![NONE; span as usize + 2],
        }
    }

    /// Bytes of memory that it has allocated.
    pub fn memory(&self) -> usize {
        4 * self.rows.capacity()
    }

    /// Sets the row of each key, and returns whether any key was in the table already or occurs
    /// twice in `keys`. Of several rows of a key the last stays.
    ///
    /// # Panics
    /// When lengths differ, or a key lies outside the bounds.
    pub fn set(&mut self, keys: &[i64], rows: &[u32]) -> bool {
        assert_eq!(keys.len(), rows.len(), "one row per key");
        let integers = self.rows.len() - 1;
        let table = &mut self.rows[..integers];
        let mut twice = false;
        for (key, row) in keys.iter().zip(rows) {
            let slot = &mut table[key.wrapping_sub(self.min) as u64 as usize];
            twice |= *slot != NONE;
            *slot = *row;
        }
        twice
    }

    /// The row of each key, [`NONE`] where there is none or the key is not valid.
    ///
    /// # Panics
    /// When lengths differ.
    pub fn find(&self, keys: &[i64], valid: Option<&[bool]>, out: &mut Vec<u32>) {
        find(&self.rows, self.min, keys, valid, out);
    }

    /// As [`super::Keys::any_within`].
    pub(super) fn any_within(&self, low: i64, high: i64) -> bool {
        let integers = &self.rows[..self.rows.len() - 1];
        let Some((first, last)) = within(self.min, integers.len() as u64 - 1, low, high) else {
            return false;
        };
        let some = &integers[first as usize..=last as usize];
        // Of a long range enough is known.
        some.len() > LOOKED_AT || some.iter().any(|row| *row != NONE)
    }

    /// As [`super::Keys::test`].
    pub(super) fn test<T: Stored>(&self, values: &[T], base: i64, into: &mut [u64]) {
        test(&self.rows, base.wrapping_sub(self.min), values, into);
    }
}

/// The distances from `min` of `low..=high`, as far as they are at most `span`; `None` if none is.
pub(super) fn within(min: i64, span: u64, low: i64, high: i64) -> Option<(u64, u64)> {
    let min = i128::from(min);
    let first = (i128::from(low) - min).max(0);
    let last = (i128::from(high) - min).min(i128::from(span));
    (first <= last).then_some((first as u64, last as u64))
}

dispatched! {
    fn test<T: Stored>(rows: &[u32], shift: i64, values: &[T], into: &mut [u64]) {
        let last = rows.len() - 1;
        set_where(values, into, |value| {
            let at = (shift.wrapping_add(value.wide() as i64) as u64 as usize).min(last);
            // SAFETY: `at` is at most `last`, the index of the last entry: a `Direct` has at least one.
            unsafe { *rows.get_unchecked(at) != NONE }
        });
    }

    fn find(rows: &[u32], min: i64, keys: &[i64], valid: Option<&[bool]>, out: &mut Vec<u32>) {
        // The last entry is NONE: where keys outside are sent.
        let last = rows.len() - 1;
        let row = |key: i64| {
            let at = (key.wrapping_sub(min) as u64 as usize).min(last);
            // SAFETY: `at` is at most `last`, the index of the last entry: a `Direct` has at least one.
            unsafe { *rows.get_unchecked(at) }
        };
        match valid {
            None => fill::map(keys, out, row),
            Some(valid) => fill::zip(keys, valid, out, |key, valid| if valid { row(key) } else { NONE }),
        }
    }
}
