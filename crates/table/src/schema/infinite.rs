//! Infinite dates and timestamps: the ends of what their types count.
//!
//! The greatest count is later than all others, whatever the unit, and its negative is earlier: so comparisons, sorts, groups,
//! keys and zone maps need not know them. What computes with dates does. They lie as DuckDB has them; the least count of
//! all, which PostgreSQL has for what is earlier and NumPy for what is no time, is read as the same.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Date32Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow::error::ArrowError;

/// One of the two infinite dates or timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Infinity {
    /// `-infinity`, earlier than all others.
    Past,
    /// `infinity`, later than all others.
    Future,
}

impl Infinity {
    /// The one that a count of days from 1970 on is; none if it is a day.
    pub fn of_day(day: i32) -> Option<Infinity> {
        match day {
            i32::MAX => Some(Infinity::Future),
            _ => (day <= -i32::MAX).then_some(Infinity::Past),
        }
    }

    /// The one that the count of a timestamp is, of whatever unit; none if it is a moment.
    pub fn of_count(count: i64) -> Option<Infinity> {
        match count {
            i64::MAX => Some(Infinity::Future),
            _ => (count <= -i64::MAX).then_some(Infinity::Past),
        }
    }

    /// As a count of days.
    pub fn day(self) -> i32 {
        match self {
            Infinity::Past => -i32::MAX,
            Infinity::Future => i32::MAX,
        }
    }

    /// As the count of a timestamp.
    pub fn count(self) -> i64 {
        match self {
            Infinity::Past => -i64::MAX,
            Infinity::Future => i64::MAX,
        }
    }

    /// As a floating-point number.
    pub fn float(self) -> f64 {
        match self {
            Infinity::Past => f64::NEG_INFINITY,
            Infinity::Future => f64::INFINITY,
        }
    }

    /// As PostgreSQL writes it, in all styles.
    pub fn text(self) -> &'static str {
        match self {
            Infinity::Past => "-infinity",
            Infinity::Future => "infinity",
        }
    }
}

/// A type of dates or timestamps.
trait Moments: ArrowPrimitiveType {
    /// The infinity that a value is.
    fn infinity(value: Self::Native) -> Option<Infinity>;

    /// Whether a value is infinite, without a branch.
    fn is_infinite(value: Self::Native) -> bool;

    /// The value that is infinite.
    fn of(infinity: Infinity) -> Self::Native;
}

impl Moments for Date32Type {
    fn infinity(value: i32) -> Option<Infinity> {
        Infinity::of_day(value)
    }

    fn is_infinite(value: i32) -> bool {
        (value == i32::MAX) | (value <= -i32::MAX)
    }

    fn of(infinity: Infinity) -> i32 {
        infinity.day()
    }
}

macro_rules! timestamps {
    ($($type:ty),*) => {
        $(impl Moments for $type {
            fn infinity(value: i64) -> Option<Infinity> {
                Infinity::of_count(value)
            }

            fn is_infinite(value: i64) -> bool {
                (value == i64::MAX) | (value <= -i64::MAX)
            }

            fn of(infinity: Infinity) -> i64 {
                infinity.count()
            }
        })*
    };
}

timestamps!(
    TimestampSecondType,
    TimestampMillisecondType,
    TimestampMicrosecondType,
    TimestampNanosecondType
);

/// A function of values by their type; `$other` for what is no date or timestamp.
macro_rules! by_type {
    ($data_type:expr, $function:ident $arguments:tt, $other:expr) => {
        match $data_type {
            DataType::Date32 => $function::<Date32Type> $arguments,
            DataType::Timestamp(TimeUnit::Second, _) => {
                $function::<TimestampSecondType> $arguments
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                $function::<TimestampMillisecondType> $arguments
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                $function::<TimestampMicrosecondType> $arguments
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                $function::<TimestampNanosecondType> $arguments
            }
            _ => $other,
        }
    };
}

fn any<T: Moments>(values: &dyn Array) -> bool {
    // All are looked at, which takes no branches.
    let values = values.as_primitive::<T>().values();
    values
        .iter()
        .fold(false, |any, value| any | T::is_infinite(*value))
}

/// Whether a date or timestamp among `values` may be infinite; false for other types. What lies where a row is NULL may say
/// so, too.
pub fn has_infinite(values: &dyn Array) -> bool {
    by_type!(values.data_type(), any(values), false)
}

fn at<T: Moments>(values: &dyn Array, row: usize) -> Option<Infinity> {
    let values = values.as_primitive::<T>();
    values
        .is_valid(row)
        .then(|| T::infinity(values.value(row)))?
}

/// The infinity that a row of dates or timestamps is; none if it is NULL, or finite, or of another type.
pub fn infinity_at(values: &dyn Array, row: usize) -> Option<Infinity> {
    by_type!(values.data_type(), at(values, row), None)
}

/// Which rows are infinite.
#[derive(Clone, Debug)]
pub struct Infinities(Vec<Option<Infinity>>);

fn split<T: Moments>(values: &ArrayRef) -> (ArrayRef, Infinities) {
    let own = values.as_primitive::<T>();
    let infinities: Vec<_> = own
        .iter()
        .map(|value| value.and_then(T::infinity))
        .collect();
    let finite = own.iter().zip(&infinities);
    let finite = finite.map(|(value, infinity)| value.filter(|_| infinity.is_none()));
    let finite: PrimitiveArray<T> = finite.collect();
    let finite = finite.with_data_type(values.data_type().clone());
    (Arc::new(finite), Infinities(infinities))
}

fn joined<T: Moments>(finite: &ArrayRef, infinities: &[Option<Infinity>]) -> ArrayRef {
    let all = finite.as_primitive::<T>().iter().zip(infinities);
    let all = all.map(|(value, infinity)| infinity.map_or(value, |infinity| Some(T::of(infinity))));
    let all: PrimitiveArray<T> = all.collect();
    Arc::new(all.with_data_type(finite.data_type().clone()))
}

impl Infinities {
    /// That of a row.
    pub fn get(&self, row: usize) -> Option<Infinity> {
        self.0.get(row).copied().flatten()
    }

    /// Those of all rows.
    pub fn iter(&self) -> impl Iterator<Item = Option<Infinity>> {
        self.0.iter().copied()
    }

    /// Whether there is one at all.
    pub fn any(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    /// Those of the rows in which `others` are not NULL.
    pub fn beside(mut self, others: &dyn Array) -> Infinities {
        for (row, infinity) in self.0.iter_mut().enumerate() {
            if others.is_null(row) {
                *infinity = None;
            }
        }
        self
    }

    /// Dates or timestamps that were computed of the finite ones, with the infinite ones in their places; values of other
    /// types as they are.
    pub fn put_into(&self, finite: ArrayRef) -> ArrayRef {
        let infinities = &self.0;
        by_type!(finite.data_type(), joined(&finite, infinities), finite)
    }
}

/// Dates or timestamps with NULL in place of what is infinite, and where that was; none if there is nothing, or for values of other types.
pub fn finite_part(values: &ArrayRef) -> Option<(ArrayRef, Infinities)> {
    if !has_infinite(values) {
        return None;
    }
    by_type!(values.data_type(), some_split(values), None)
}

fn some_split<T: Moments>(values: &ArrayRef) -> Option<(ArrayRef, Infinities)> {
    Some(split::<T>(values))
}

/// Arrow's cast, but what is infinite stays so in another unit, and has no time of the day.
///
/// # Errors
/// Those of Arrow's cast.
pub fn cast_moments(
    values: &ArrayRef,
    to: &DataType,
    options: &CastOptions<'_>,
) -> Result<ArrayRef, ArrowError> {
    let moments = matches!(
        to,
        DataType::Date32 | DataType::Timestamp(_, _) | DataType::Time32(_) | DataType::Time64(_)
    );
    match finite_part(values) {
        Some((finite, infinities)) if moments => {
            let found = cast_with_options(&finite, to, options)?;
            Ok(infinities.put_into(found))
        }
        _ => cast_with_options(values, to, options),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Date32Array, TimestampMicrosecondArray, TimestampNanosecondArray};
    use arrow::compute::cast;

    use super::*;

    #[test]
    fn what_is_infinite_stays_so_in_all_units() {
        let options = CastOptions::default();
        let days: ArrayRef = Arc::new(Date32Array::from(vec![
            Some(i32::MAX),
            Some(1),
            None,
            Some(-i32::MAX),
            Some(i32::MIN),
        ]));
        for unit in [
            TimeUnit::Second,
            TimeUnit::Millisecond,
            TimeUnit::Microsecond,
            TimeUnit::Nanosecond,
        ] {
            let to = DataType::Timestamp(unit, Some("+00:00".into()));
            let stamps = cast_moments(&days, &to, &options).unwrap();
            assert_eq!(*stamps.data_type(), to);
            let found: Vec<_> = (0..5).map(|row| infinity_at(&stamps, row)).collect();
            let (past, future) = (Some(Infinity::Past), Some(Infinity::Future));
            assert_eq!(found, [future, None, None, past, past]);
            assert!(stamps.is_null(2));
            let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
            let micros = cast_moments(&stamps, &micros, &options).unwrap();
            let micros = micros.as_primitive::<TimestampMicrosecondType>();
            assert_eq!(micros.value(0), i64::MAX);
            assert_eq!(micros.value(1), 86_400_000_000);
            assert_eq!(micros.value(4), -i64::MAX);
            let back = cast_moments(&stamps, &DataType::Date32, &options).unwrap();
            let back = back.as_primitive::<Date32Type>();
            assert_eq!((back.value(0), back.value(1)), (i32::MAX, 1));
        }
        let times = cast_moments(
            &(Arc::new(TimestampNanosecondArray::from(vec![i64::MAX, 1_000])) as ArrayRef),
            &DataType::Time64(TimeUnit::Microsecond),
            &options,
        );
        let times = times.unwrap();
        assert_eq!((times.is_null(0), times.is_null(1)), (true, false));
    }

    #[test]
    fn the_finite_part_is_taken_out_and_put_back() {
        let finite: ArrayRef = Arc::new(Date32Array::from(vec![Some(i32::MAX - 1), None]));
        assert!(finite_part(&finite).is_none());
        let counts: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![i64::MAX]));
        assert!(!has_infinite(&counts) && finite_part(&counts).is_none());
        let stamps: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![
            Some(-i64::MAX),
            Some(5),
            None,
        ]));
        let (finite, infinities) = finite_part(&stamps).unwrap();
        assert_eq!((finite.null_count(), infinities.any()), (2, true));
        assert_eq!(infinities.get(0), Some(Infinity::Past));
        let numbers = cast(&finite, &DataType::Int64).unwrap();
        assert_eq!(infinities.put_into(numbers).null_count(), 2);
        assert_eq!(infinities.put_into(finite).as_ref(), stamps.as_ref());
        assert_eq!(Infinity::of_count(i64::MIN), Some(Infinity::Past));
        assert_eq!(Infinity::of_day(-i32::MAX + 1), None);
    }
}
