//! The rows of each frame of a partition.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Scalar};
use arrow::compute::kernels::numeric::{add, sub};
use arrow::compute::{CastOptions, SortOptions, cast, partition};
use arrow::datatypes::{
    DataType, Decimal128Type, Float64Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion_common::{Result, internal_err};
use messages::Error;
use table::{cast_moments, finite_part};

use crate::windows::frame::{Bound, Exclude, Frame, Units};

/// The pieces of rows that a frame consists of, in their order; there are at most three, and none is empty.
pub(crate) type Pieces = Vec<Range<usize>>;

/// A partition whose rows are in order.
pub(crate) struct Partition<'a> {
    pub rows: usize,
    pub keys: &'a [ArrayRef],
    pub options: &'a [SortOptions],
    /// The distances at the start and at the end, of one value for all rows.
    pub start: Option<&'a ArrayRef>,
    pub end: Option<&'a ArrayRef>,
}

/// The frames of all rows.
///
/// # Errors
/// For distances that are NULL or negative.
pub(crate) fn frames(frame: &Frame, of: &Partition) -> Result<Vec<Pieces>> {
    let peers = Peers::of(of)?;
    let starts = edges(frame, of, &peers, Side::Start)?;
    let ends = edges(frame, of, &peers, Side::End)?;
    let pieces = (0..of.rows).map(|row| {
        let (start, end) = (starts[row], ends[row].max(starts[row]));
        let own = peers.range(row);
        let without: Pieces = match frame.exclude {
            Exclude::None => std::iter::once(start..end).collect(),
            Exclude::Current => vec![start..row.min(end), (row + 1).max(start)..end],
            Exclude::Group => vec![start..own.start.min(end), own.end.max(start)..end],
            Exclude::Ties => vec![
                start..own.start.min(end),
                row.max(start)..(row + 1).min(end),
                own.end.max(start)..end,
            ],
        };
        let there = without.into_iter().filter(|piece| piece.start < piece.end);
        there.collect()
    });
    Ok(pieces.collect())
}

/// Groups of rows whose sort keys are equal.
struct Peers {
    groups: Vec<Range<usize>>,
    /// The group of each row.
    of_row: Vec<usize>,
}

impl Peers {
    fn of(partition_of: &Partition) -> Result<Peers> {
        let rows = partition_of.rows;
        let groups = if partition_of.keys.is_empty() || rows == 0 {
            std::iter::once(0..rows).collect()
        } else {
            let keys: Vec<ArrayRef> = partition_of
                .keys
                .iter()
                .map(comparable)
                .collect::<Result<_>>()?;
            partition(&keys)?.ranges()
        };
        let numbered = groups.iter().enumerate();
        let of_row = numbered
            .flat_map(|(number, group)| group.clone().map(move |_| number))
            .collect();
        Ok(Peers { groups, of_row })
    }

    fn range(&self, row: usize) -> Range<usize> {
        self.groups[self.of_row[row]].clone()
    }
}

/// Sort keys that are equal where PostgreSQL has them equal: intervals of one length are.
fn comparable(keys: &ArrayRef) -> Result<ArrayRef> {
    if !matches!(keys.data_type(), DataType::Interval(_)) {
        return Ok(Arc::clone(keys));
    }
    let keys = cast(keys, &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let keys = keys.as_primitive::<IntervalMonthDayNanoType>();
    let lengths: Decimal128Array = keys.unary(length);
    Ok(Arc::new(lengths))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Start,
    End,
}

/// Where the frame of each row begins, or ends: the row behind its last.
fn edges(frame: &Frame, of: &Partition, peers: &Peers, side: Side) -> Result<Vec<usize>> {
    let (bound, offset) = match side {
        Side::Start => (frame.start, of.start),
        Side::End => (frame.end, of.end),
    };
    let rows = 0..of.rows;
    let after = match bound {
        Bound::First => return Ok(vec![0; of.rows]),
        Bound::Last => return Ok(vec![of.rows; of.rows]),
        Bound::Current => {
            let own = |row| match (frame.units, side) {
                (Units::Rows, Side::Start) => row,
                (Units::Rows, Side::End) => row + 1,
                (_, Side::Start) => peers.range(row).start,
                (_, Side::End) => peers.range(row).end,
            };
            return Ok(rows.map(own).collect());
        }
        Bound::Preceding => false,
        Bound::Following => true,
    };
    // An empty partition has no row from which to take it.
    if of.rows == 0 {
        return Ok(vec![]);
    }
    let Some(offset) = offset else {
        return internal_err!("a frame lacks a distance");
    };
    let offset = offset.slice(0, 1);
    if offset.is_null(0) {
        return refused("22004", side, "must not be null");
    }
    if frame.units == Units::Range {
        return values(of, &offset, side, after);
    }
    let distance = offset.as_primitive::<Int64Type>().value(0);
    let Ok(distance) = usize::try_from(distance) else {
        return refused("22013", side, "must not be negative");
    };
    let last = match frame.units {
        Units::Groups => peers.groups.len(),
        _ => of.rows,
    };
    let found = rows.map(|row| {
        let at = match frame.units {
            Units::Groups => peers.of_row[row],
            _ => row,
        };
        // The place at that distance; none where it lies before the first.
        let place = if after {
            Some(at.saturating_add(distance).min(last))
        } else {
            at.checked_sub(distance)
        };
        match (frame.units, side, place) {
            (_, _, None) => 0,
            (Units::Groups, Side::Start, Some(group)) => {
                peers.groups.get(group).map_or(of.rows, |own| own.start)
            }
            (Units::Groups, Side::End, Some(group)) => {
                peers.groups.get(group).map_or(of.rows, |own| own.end)
            }
            (_, Side::Start, Some(row)) => row,
            (_, Side::End, Some(row)) => (row + 1).min(of.rows),
        }
    });
    Ok(found.collect())
}

fn refused<T>(code: &'static str, side: Side, what: &str) -> Result<T> {
    let side = match side {
        Side::Start => "starting",
        Side::End => "ending",
    };
    Err(Error::coded(code, format!("frame {side} offset {what}")).into())
}

fn negative<T>() -> Result<T> {
    let message = "invalid preceding or following size in window function";
    Err(Error::coded("22013", message).into())
}

/// Sort keys, and the values at a distance from each of them, on a line.
enum Line {
    Whole { keys: Vec<i128>, at: Vec<i128> },
    Float { keys: Vec<f64>, offset: f64 },
}

/// The edges of frames by values of the sort key. A row whose key is NULL has those others for its frame.
fn values(of: &Partition, offset: &ArrayRef, side: Side, after: bool) -> Result<Vec<usize>> {
    let ([keys], [options]) = (of.keys, of.options) else {
        return internal_err!("a frame of distances has one sort key");
    };
    let nulls = keys.logical_nulls();
    let count = nulls.as_ref().map_or(0, |nulls| nulls.null_count());
    let there = if options.nulls_first {
        count..of.rows
    } else {
        0..of.rows - count
    };
    let nulls = if options.nulls_first {
        0..count
    } else {
        of.rows - count..of.rows
    };
    // Backwards in a descending order.
    let minus = after == options.descending;
    let line = line(&keys.slice(there.start, there.len()), offset, minus)?;
    // An edge never goes back, as in PostgreSQL: a month before March 31 is before a month before noon of March 30.
    let mut last = 0;
    let edge = |row: usize| {
        if nulls.contains(&row) {
            return match side {
                Side::Start => nulls.start,
                Side::End => nulls.end,
            };
        }
        let own = row - there.start;
        // Whether the row at a place lies before the edge.
        let before = |place: usize| {
            // Those that are within the distance, seen from one side.
            let least = (side == Side::Start) != options.descending;
            let within = line.within(place, own, minus, !least);
            match side {
                Side::Start => !within,
                Side::End => within,
            }
        };
        there.start + partition_point(there.len(), before)
    };
    let found = (0..of.rows).map(|row| {
        last = edge(row).max(last);
        last
    });
    Ok(found.collect())
}

/// The number of places, from the first, for which something holds that holds for no place behind.
fn partition_point(places: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, places);
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

impl Line {
    /// Whether the key at `place` is at most that of row `own` at the distance (if `most`), or at least it.
    fn within(&self, place: usize, own: usize, minus: bool, most: bool) -> bool {
        match self {
            Line::Whole { keys, at } => {
                if most {
                    keys[place] <= at[own]
                } else {
                    keys[place] >= at[own]
                }
            }
            Line::Float { keys, offset } => {
                float_within(keys[place], keys[own], *offset, minus, most)
            }
        }
    }
}

/// As PostgreSQL has it: NaN is equal to itself and greater than all others.
fn float_within(value: f64, base: f64, offset: f64, minus: bool, most: bool) -> bool {
    if value.is_nan() {
        return base.is_nan() || !most;
    }
    if base.is_nan() {
        return most;
    }
    if offset.is_infinite() && base.is_infinite() && (minus == (base > 0.0)) {
        return true;
    }
    let sum = if minus { base - offset } else { base + offset };
    if most { value <= sum } else { value >= sum }
}

const DAY: i128 = 86_400_000_000_000;

/// The length of an interval in nanoseconds, with 30 days a month.
fn length(own: IntervalMonthDayNano) -> i128 {
    let days = i128::from(own.months) * 30 + i128::from(own.days);
    days * DAY + i128::from(own.nanoseconds)
}

fn whole(keys: &ArrayRef) -> Result<Vec<i128>> {
    let numbers = cast(keys, &DataType::Decimal128(38, 0))?;
    let numbers = numbers.as_primitive::<Decimal128Type>();
    Ok(numbers.values().iter().copied().collect())
}

/// Integers, and what they stand for, as `i64`.
fn ticks(keys: &ArrayRef) -> Result<Vec<i128>> {
    let numbers = cast(keys, &DataType::Int64)?;
    let numbers = numbers.as_primitive::<Int64Type>().values();
    Ok(numbers.iter().map(|number| i128::from(*number)).collect())
}

fn shifted(keys: Vec<i128>, offset: i128, minus: bool) -> Result<Line> {
    if offset < 0 {
        return negative();
    }
    let offset = if minus { -offset } else { offset };
    let at = keys.iter().map(|key| key.saturating_add(offset)).collect();
    Ok(Line::Whole { keys, at })
}

/// Keys of which none is NULL, and a distance.
fn line(keys: &ArrayRef, offset: &ArrayRef, minus: bool) -> Result<Line> {
    match keys.data_type() {
        ty if ty.is_integer() => shifted(whole(keys)?, ticks(offset)?[0], minus),
        DataType::Float32 | DataType::Float64 => {
            let offset = offset.as_primitive::<Float64Type>().value(0);
            if offset.is_nan() || offset < 0.0 {
                return negative();
            }
            let keys = cast(keys, &DataType::Float64)?;
            let keys = keys.as_primitive::<Float64Type>().values().to_vec();
            Ok(Line::Float { keys, offset })
        }
        DataType::Decimal128(_, scale) => {
            let scale = match offset.data_type() {
                DataType::Decimal128(_, other) => *other.max(scale),
                _ => *scale,
            };
            let as_decimal = |values: &ArrayRef| -> Result<Vec<i128>> {
                let values = cast(values, &DataType::Decimal128(38, scale))?;
                Ok(values.as_primitive::<Decimal128Type>().values().to_vec())
            };
            let distance = as_decimal(offset)?[0];
            shifted(as_decimal(keys)?, distance, minus)
        }
        DataType::Time32(_) | DataType::Time64(_) => {
            let time = cast(keys, &DataType::Time64(TimeUnit::Nanosecond))?;
            let offset = interval(offset)?;
            shifted(ticks(&time)?, i128::from(offset.nanoseconds), minus)
        }
        DataType::Interval(_) => {
            let keys = cast(keys, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let keys = keys.as_primitive::<IntervalMonthDayNanoType>().values();
            let keys = keys.iter().map(|own| length(*own)).collect();
            shifted(keys, length(interval(offset)?), minus)
        }
        DataType::Date32 | DataType::Timestamp(_, _) => {
            let distance = interval(offset)?;
            if length(distance) < 0 {
                return negative();
            }
            // How long they are depends on the zone of the session.
            let zoned = matches!(keys.data_type(), DataType::Timestamp(_, Some(_)));
            if zoned && (distance.months != 0 || distance.days != 0) {
                return Err(Error::unsupported(
                    "not supported: a frame of days or months over a timestamp with time zone: order by it `at time zone` a zone, or name hours",
                )
                .into());
            }
            let unit = match keys.data_type() {
                DataType::Timestamp(unit, _) => *unit,
                _ => TimeUnit::Microsecond,
            };
            moments(keys, offset, unit, minus)
        }
        _ => internal_err!("a sort key without distances"),
    }
}

/// Keys that are dates or timestamps, as timestamps of this unit.
fn moments(keys: &ArrayRef, offset: &ArrayRef, unit: TimeUnit, minus: bool) -> Result<Line> {
    let options = CastOptions::default();
    let stamps = cast_moments(keys, &DataType::Timestamp(unit, None), &options)?;
    let by = Scalar::new(offset.slice(0, 1));
    let moved = |stamps: &ArrayRef| {
        if minus {
            sub(stamps, &by)
        } else {
            add(stamps, &by)
        }
    };
    // What is infinite stays where it is.
    let at = match finite_part(&stamps) {
        None => moved(&stamps)?,
        Some((finite, infinities)) => infinities.put_into(moved(&finite)?),
    };
    Ok(Line::Whole {
        keys: ticks(&stamps)?,
        at: ticks(&at)?,
    })
}

fn interval(offset: &ArrayRef) -> Result<IntervalMonthDayNano> {
    let offset = cast(offset, &DataType::Interval(IntervalUnit::MonthDayNano))?;
    Ok(offset.as_primitive::<IntervalMonthDayNanoType>().value(0))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, Int64Array};

    use super::*;

    /// What a frame has of the rows, found row by row.
    fn model(frame: &Frame, keys: &[Option<i64>], offsets: (i64, i64), row: usize) -> Vec<usize> {
        let equal = |a: usize, b: usize| keys[a] == keys[b];
        let group = |row: usize| {
            let mut number = 0i64;
            for at in 1..=row {
                number += i64::from(!equal(at - 1, at));
            }
            number
        };
        let beyond = |bound: Bound, offset: i64, at: usize, start: bool| -> bool {
            // Whether `at` lies on the wanted side of the bound.
            let signed = if bound == Bound::Preceding {
                -offset
            } else {
                offset
            };
            let (own, other) = match frame.units {
                Units::Rows => (row as i64, at as i64),
                Units::Groups => (group(row), group(at)),
                Units::Range => match (keys[row], keys[at]) {
                    (Some(own), Some(other)) => (own, other),
                    (None, None) => return true,
                    // NULLs stand behind all others.
                    (Some(_), None) => return start,
                    (None, Some(_)) => return !start,
                },
            };
            if start {
                other >= own + signed
            } else {
                other <= own + signed
            }
        };
        let holds = |bound: Bound, offset: i64, at: usize, start: bool| match bound {
            Bound::First | Bound::Last => true,
            Bound::Current if frame.units == Units::Rows => {
                if start {
                    at >= row
                } else {
                    at <= row
                }
            }
            Bound::Current => (if start { at >= row } else { at <= row }) || equal(at, row),
            bound => beyond(bound, offset, at, start),
        };
        (0..keys.len())
            .filter(|at| holds(frame.start, offsets.0, *at, true))
            .filter(|at| holds(frame.end, offsets.1, *at, false))
            .filter(|at| match frame.exclude {
                Exclude::None => true,
                Exclude::Current => *at != row,
                Exclude::Group => !equal(*at, row),
                Exclude::Ties => *at == row || !equal(*at, row),
            })
            .collect()
    }

    #[test]
    fn frames_are_those_of_a_model() {
        let mut random = fastrand::Rng::with_seed(7);
        let bounds = [
            Bound::First,
            Bound::Preceding,
            Bound::Current,
            Bound::Following,
            Bound::Last,
        ];
        let excludes = [
            Exclude::None,
            Exclude::Current,
            Exclude::Group,
            Exclude::Ties,
        ];
        for _ in 0..4000 {
            let rows = random.usize(0..9);
            let mut keys: Vec<Option<i64>> = (0..rows).map(|_| Some(random.i64(0..6))).collect();
            keys.sort();
            let nulls = random.usize(0..=rows.min(2));
            let there = rows - nulls;
            keys[there..].fill(None);
            let frame = Frame {
                units: [Units::Rows, Units::Range, Units::Groups][random.usize(0..3)],
                start: bounds[random.usize(0..5)],
                end: bounds[random.usize(0..5)],
                exclude: excludes[random.usize(0..4)],
            };
            if frame.check(1).is_err() {
                continue;
            }
            let offsets = (random.i64(0..4), random.i64(0..4));
            let array: ArrayRef = Arc::new(Int64Array::from(keys.clone()));
            let [start, end] = [offsets.0, offsets.1]
                .map(|offset| -> ArrayRef { Arc::new(Int64Array::from(vec![offset; rows])) });
            let options = [SortOptions {
                descending: false,
                nulls_first: false,
            }];
            let of = Partition {
                rows,
                keys: &[array],
                options: &options,
                start: Some(&start),
                end: Some(&end),
            };
            let found = frames(&frame, &of).unwrap();
            for (row, pieces) in found.into_iter().enumerate() {
                let own: Vec<usize> = pieces.into_iter().flatten().collect();
                let wanted = model(&frame, &keys, offsets, row);
                assert_eq!(own, wanted, "{frame:?} {keys:?} {offsets:?} row {row}");
            }
        }
    }

    #[test]
    fn nan_is_near_itself_alone() {
        let nan = f64::NAN;
        assert!(float_within(nan, nan, 1.0, true, false));
        assert!(!float_within(1.0, nan, 1.0, true, false));
        assert!(float_within(1.0, nan, 1.0, true, true));
        assert!(float_within(
            f64::INFINITY,
            f64::INFINITY,
            f64::INFINITY,
            true,
            false
        ));
    }

    #[test]
    fn descending_orders_and_infinite_keys_have_frames() {
        let keys: ArrayRef = Arc::new(Float64Array::from(vec![
            f64::NAN,
            f64::INFINITY,
            3.0,
            2.0,
            0.0,
        ]));
        let options = [SortOptions {
            descending: true,
            nulls_first: true,
        }];
        let one: ArrayRef = Arc::new(Float64Array::from(vec![1.0; 5]));
        let frame = Frame {
            units: Units::Range,
            start: Bound::Preceding,
            end: Bound::Following,
            exclude: Exclude::None,
        };
        let of = Partition {
            rows: 5,
            keys: &[keys],
            options: &options,
            start: Some(&one),
            end: Some(&one),
        };
        let found: Vec<Vec<usize>> = frames(&frame, &of)
            .unwrap()
            .into_iter()
            .map(|pieces| pieces.into_iter().flatten().collect())
            .collect();
        let wanted = vec![vec![0], vec![1], vec![2, 3], vec![2, 3], vec![4]];
        assert_eq!(found, wanted);
    }
}
