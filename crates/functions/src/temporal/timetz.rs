//! `time with time zone`: 12 bytes, which are in the order of the values.
//!
//! The first eight are the time in UTC in nanoseconds, the last four the seconds of the zone to the west, both with the
//! sign turned and the greatest byte first: so they are ordered and told apart as in PostgreSQL, by the instant and then by the
//! zone, by whatever orders bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryBuilder};
use datafusion_common::Result;

use crate::temporal::calendar;

/// A time of a day in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeInZone {
    /// What clocks there show, in nanoseconds from midnight on.
    pub local: i64,
    /// Seconds to the east of UTC.
    pub east: i64,
}

const SECOND: i64 = 1_000_000_000;

/// Bytes of a value.
const WIDTH: i32 = 12;

impl TimeInZone {
    /// The value of 12 bytes; none of others.
    pub(crate) fn of(bytes: &[u8]) -> Option<TimeInZone> {
        let (first, last) = bytes.split_first_chunk::<8>()?;
        let last: [u8; 4] = last.try_into().ok()?;
        let utc = (u64::from_be_bytes(*first) ^ 1 << 63) as i64;
        let west = (u32::from_be_bytes(last) ^ 1 << 31) as i32;
        Some(TimeInZone {
            local: utc.wrapping_sub(i64::from(west).wrapping_mul(SECOND)),
            east: -i64::from(west),
        })
    }

    /// Its bytes.
    pub(crate) fn bytes(self) -> [u8; 12] {
        let utc = self.utc();
        let west = -self.east as i32;
        let mut all = [0; 12];
        all[..8].copy_from_slice(&((utc as u64) ^ 1 << 63).to_be_bytes());
        all[8..].copy_from_slice(&((west as u32) ^ 1 << 31).to_be_bytes());
        all
    }

    /// The time in UTC in nanoseconds, which may be on the day before or after.
    pub(crate) fn utc(self) -> i64 {
        self.local - self.east * SECOND
    }

    /// The same moment in another zone.
    pub(crate) fn to_zone(self, east: i64) -> TimeInZone {
        const DAY: i64 = 86_400 * SECOND;
        TimeInZone {
            local: (self.utc() + east * SECOND).rem_euclid(DAY),
            east,
        }
    }

    /// `04:05:06-08`.
    pub(crate) fn text(self) -> String {
        let mut text = String::new();
        calendar::time(self.local, &mut text);
        calendar::offset(self.east, &mut text);
        text
    }
}

/// The values of a column.
pub(crate) fn values(array: &ArrayRef) -> impl Iterator<Item = Option<TimeInZone>> + '_ {
    let values = array.as_fixed_size_binary();
    (0..values.len()).map(move |row| {
        let valid = values.is_valid(row);
        valid.then(|| TimeInZone::of(values.value(row))).flatten()
    })
}

/// A column of values.
///
/// # Errors
/// None that there could be: the bytes have their width.
pub(crate) fn column(values: impl IntoIterator<Item = Option<TimeInZone>>) -> Result<ArrayRef> {
    let mut all = FixedSizeBinaryBuilder::new(WIDTH);
    for value in values {
        match value {
            Some(value) => all.append_value(value.bytes())?,
            None => all.append_null(),
        }
    }
    Ok(Arc::new(all.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_in_the_order_of_the_values() {
        let value = |hour: i64, east: i64| TimeInZone {
            local: hour * 3_600 * SECOND,
            east: east * 3_600,
        };
        // By the instant, and then by the zone, from east to west.
        let ascending = [
            value(1, 2),
            value(0, 0),
            value(1, 0),
            value(0, -1),
            value(24, -12),
        ];
        for pair in ascending.windows(2) {
            assert!(pair[0].bytes() < pair[1].bytes(), "{pair:?}");
        }
        for one in ascending {
            assert_eq!(TimeInZone::of(&one.bytes()), Some(one));
        }
        assert_eq!(TimeInZone::of(b"short"), None);
        assert_eq!(value(4, -8).text(), "04:00:00-08");
        assert_eq!(value(4, -8).to_zone(3_600).text(), "13:00:00+01");
    }
}
