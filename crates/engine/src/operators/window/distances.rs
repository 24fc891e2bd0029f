//! Frames whose edges lie at a distance from the sort key of a row.

use std::ops::Range;

use arrow::datatypes::DataType;

use crate::cancel::Stop;
use crate::error::{Error, Result};
use crate::logical::window::{DAY, Distance, tick};
use crate::operators::window::shape::each_block;
use crate::vector::value::{Type, Values, Vector};

/// An edge of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Start,
    /// The row behind the last.
    End,
}

/// The single key by which the rows of each partition are sorted.
pub(super) struct SortedKey<'r> {
    pub vector: &'r Vector,
    pub ty: &'r Type,
    pub descending: bool,
    pub nulls_first: bool,
}

/// Adds for each of `rows`, which are a partition, the edge at `distance` from its key, behind it if `after`. A row whose
/// key is NULL has the other such rows for its frame. Edges never go back, even where months of different lengths would
/// have it so.
///
/// # Errors
/// [`Error::Cancelled`]; an internal error for keys of which there is no such distance.
pub(super) fn reach(
    key: &SortedKey<'_>,
    rows: Range<usize>,
    side: Side,
    (distance, after): (Distance, bool),
    stop: &Stop,
    out: &mut Vec<u32>,
) -> Result<()> {
    let (nulls, there) = parted(key, rows);
    let of_null = match side {
        Side::Start => nulls.start,
        Side::End => nulls.end,
    };
    if key.nulls_first {
        out.resize(nulls.end, of_null as u32);
    }
    let scan = Scan {
        side,
        // Backwards in a descending order.
        minus: after == key.descending,
        // Whether keys up to the edge are within the distance, rather than those from it on.
        most: (side == Side::Start) == key.descending,
        rows: there,
        stop,
    };
    match (distance, &key.vector.values) {
        (Distance::Whole(by), Values::Int(v)) => {
            let value = |row: usize| i128::from(v[row]);
            scan.whole(value, |row| moved(value(row), by, scan.minus, key.ty), out)?;
        }
        (Distance::Whole(by), Values::Wide(v)) => {
            let value = |row: usize| v[row];
            scan.whole(value, |row| moved(value(row), by, scan.minus, key.ty), out)?;
        }
        (Distance::Float(by), Values::Float(v)) => {
            let within = |place: usize, row: usize| {
                float_within(v[place], v[row], by, scan.minus, scan.most)
            };
            scan.places(within, out)?;
        }
        (
            Distance::Months {
                months,
                days,
                nanoseconds,
            },
            Values::Int(v),
        ) => {
            let tick = tick(&key.ty.data).ok_or_else(no_distance)?;
            let sign = if scan.minus { -1 } else { 1 };
            let months = i64::from(months) * sign;
            let rest = i128::from(days) * DAY + i128::from(nanoseconds);
            let rest = rest * i128::from(sign);
            let value = |row: usize| i128::from(v[row]) * tick;
            let at = |row: usize| {
                if is_infinite(v[row].into(), key.ty) {
                    value(row)
                } else {
                    months_later(value(row), months) + rest
                }
            };
            scan.whole(value, at, out)?;
        }
        _ => return Err(no_distance()),
    }
    if !key.nulls_first {
        out.resize(nulls.end, of_null as u32);
    }
    Ok(())
}

fn no_distance() -> Error {
    Error::internal("a sort key without distances")
}

/// The rows of a partition whose key is NULL, and those where it is not.
fn parted(key: &SortedKey<'_>, rows: Range<usize>) -> (Range<usize>, Range<usize>) {
    let Range { start, end } = rows;
    match &key.vector.valid {
        None if key.nulls_first => (start..start, start..end),
        None => (end..end, start..end),
        Some(valid) => {
            let own = &valid[start..end];
            if key.nulls_first {
                let first = start + own.partition_point(|valid| !valid);
                (start..first, first..end)
            } else {
                let first = start + own.partition_point(|valid| *valid);
                (first..end, start..first)
            }
        }
    }
}

/// A walk over the rows of a partition, and over the edges of their frames.
struct Scan<'s> {
    side: Side,
    minus: bool,
    most: bool,
    rows: Range<usize>,
    stop: &'s Stop,
}

impl Scan<'_> {
    /// Adds the edges: `within` says whether the key at a place is on the inner side of the edge of a row.
    fn places(&self, within: impl Fn(usize, usize) -> bool, out: &mut Vec<u32>) -> Result<()> {
        let Range { start, end } = self.rows;
        let starts = self.side == Side::Start;
        let mut place = start;
        each_block(start..end, self.stop, |rows| {
            for row in rows {
                // Places before the start are not within, and those before the end are.
                while place < end && within(place, row) != starts {
                    place += 1;
                }
                out.push(place as u32);
            }
        })
    }

    /// Adds the edges where keys are whole numbers, and those of rows lie `at` others.
    fn whole(
        &self,
        value: impl Fn(usize) -> i128,
        at: impl Fn(usize) -> i128,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        if self.most {
            self.places(|place, row| value(place) <= at(row), out)
        } else {
            self.places(|place, row| value(place) >= at(row), out)
        }
    }
}

/// What is infinite stays where it is.
fn moved(value: i128, by: i128, minus: bool, ty: &Type) -> i128 {
    if is_infinite(value, ty) {
        value
    } else if minus {
        value.saturating_sub(by)
    } else {
        value.saturating_add(by)
    }
}

/// Whether a moment is infinite: the least and the greatest numbers stand for that.
fn is_infinite(value: i128, ty: &Type) -> bool {
    match ty.data {
        DataType::Date32 => [i32::MIN, i32::MAX].map(i128::from).contains(&value),
        DataType::Timestamp(..) => [i64::MIN, i64::MAX].map(i128::from).contains(&value),
        _ => false,
    }
}

/// Whether `value` is at most `base` moved by `offset` (if `most`), or at least that. NaN is equal to itself and greater
/// than all others, as PostgreSQL has it.
fn float_within(value: f64, base: f64, offset: f64, minus: bool, most: bool) -> bool {
    if value.is_nan() {
        return base.is_nan() || !most;
    }
    if base.is_nan() {
        return most;
    }
    if offset.is_infinite() && base.is_infinite() && minus == (base > 0.0) {
        return true;
    }
    let edge = if minus { base - offset } else { base + offset };
    if most { value <= edge } else { value >= edge }
}

/// The moment, in nanoseconds since 1970, so many months later. The last day of a month stands for those that it has not.
fn months_later(moment: i128, months: i64) -> i128 {
    let (day, time) = (moment.div_euclid(DAY), moment.rem_euclid(DAY));
    let (year, month, day) = date(day as i64);
    let all = year * 12 + (month - 1) + months;
    let (year, month) = (all.div_euclid(12), all.rem_euclid(12) + 1);
    let day = day.min(month_length(year, month));
    i128::from(days_until(year, month, day)) * DAY + time
}

/// The year, the month and the day so many days after 1970-01-01 (<https://howardhinnant.github.io/date_algorithms.html>).
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The number of days from 1970-01-01 to a date.
fn days_until(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn month_length(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(-1), (1969, 12, 31));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(days_until(2024, 2, 29), 19_782);
        for days in (-1_000_000..1_000_000).step_by(13) {
            let (year, month, day) = date(days);
            assert_eq!(days_until(year, month, day), days);
            assert!((1..=12).contains(&month) && (1..=month_length(year, month)).contains(&day));
        }
    }

    #[test]
    fn months_end_with_their_last_day() {
        let at = |year, month, day| i128::from(days_until(year, month, day)) * DAY + 5;
        assert_eq!(months_later(at(2024, 1, 31), 1), at(2024, 2, 29));
        assert_eq!(months_later(at(2024, 3, 31), -1), at(2024, 2, 29));
        assert_eq!(months_later(at(2023, 12, 15), 14), at(2025, 2, 15));
        assert_eq!(months_later(at(1970, 1, 1), -1), at(1969, 12, 1));
    }

    #[test]
    fn nan_is_near_itself_alone() {
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        assert!(float_within(nan, nan, 1.0, true, false));
        assert!(!float_within(1.0, nan, 1.0, true, false));
        assert!(float_within(1.0, nan, 1.0, true, true));
        assert!(float_within(infinity, infinity, infinity, true, false));
    }

    #[test]
    fn edges_are_at_a_distance_within_the_partition() {
        let vector = Vector {
            values: Values::Int(vec![0, 5, 4, 2, 1, 9, 1]),
            valid: Some(vec![false, true, true, true, true, true, true]),
        };
        let key = SortedKey {
            vector: &vector,
            ty: &Type::of(&DataType::Int64, true).unwrap(),
            descending: true,
            nulls_first: true,
        };
        let edges = |side, after| {
            let (mut out, by) = (vec![], Distance::Whole(2));
            let stop = Stop::default();
            reach(&key, 0..5, side, (by, after), &stop, &mut out).unwrap();
            reach(&key, 5..7, side, (by, after), &stop, &mut out).unwrap();
            out
        };
        assert_eq!(edges(Side::Start, false), [0, 1, 1, 2, 3, 5, 6]);
        assert_eq!(edges(Side::End, true), [1, 3, 4, 5, 5, 6, 7]);
        assert_eq!(edges(Side::End, false), [1, 1, 1, 3, 3, 5, 6]);
    }
}
