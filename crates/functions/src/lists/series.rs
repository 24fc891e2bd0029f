//! The values of `generate_series` and `generate_subscripts`, which `unnest` makes rows of.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Int32Array, Int64Array, ListArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{
    DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Field, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampMicrosecondType,
};
use datafusion_common::DataFusionError;
use datafusion_common::{Result, exec_err, plan_err};
use messages::Error;
use messages::numbers::is_vector;
use messages::types::type_name;
use table::{Infinity, NotFinite};

use crate::arguments::{MICROS, UTC, is_text};
use crate::lists::dimensions::lengths;
use crate::lists::names::{SERIES, SUBSCRIPTS};
use crate::lists::types::{count, list_argument, list_of};
use crate::own::Own;
use crate::temporal::instants::later_instant;
use crate::temporal::local::Local;

/// Most values of all series that are made at once: those for the rows of one batch.
const MOST: usize = 1 << 25;

/// Digits of the widest decimal.
const DIGITS: u8 = 38;

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(
            SERIES,
            types,
            |types| Ok(list_of(narrow(&types[0]))),
            series,
        ),
        Own::new(
            SUBSCRIPTS,
            |types| {
                count("generate_subscripts", types, 2..=3)?;
                let list = match types.first() {
                    Some(ty) if is_vector(ty) => ty.clone(),
                    _ => list_argument("generate_subscripts", types, 0)?,
                };
                let rest = [DataType::Int64, DataType::Boolean];
                Ok(std::iter::once(list)
                    .chain(rest)
                    .take(types.len())
                    .collect())
            },
            |_| Ok(list_of(DataType::Int32)),
            subscripts,
        ),
    ]
}

/// What a type is among those that a series may be of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// NULL, or a text that is read as what the others are.
    Open,
    Small,
    Whole,
    /// With so many digits after the point.
    Decimal(i8),
    Date,
    Stamp {
        zoned: bool,
    },
    Interval,
    Other,
}

fn kind(ty: &DataType) -> Kind {
    match ty {
        ty if is_text(ty) => Kind::Open,
        DataType::Int8 | DataType::Int16 | DataType::Int32 => Kind::Small,
        ty if ty.is_integer() => Kind::Whole,
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => Kind::Decimal(*scale),
        DataType::Date32 | DataType::Date64 => Kind::Date,
        DataType::Timestamp(_, zone) => Kind::Stamp {
            zoned: zone.is_some(),
        },
        DataType::Interval(_) => Kind::Interval,
        _ => Kind::Other,
    }
}

/// The types in which a series is counted: from, to, and the step.
fn types(given: &[DataType]) -> Result<Vec<DataType>> {
    count("generate_series", given, 2..=3)?;
    let kinds: Vec<Kind> = given.iter().map(kind).collect();
    let is_time = |kind: &Kind| matches!(kind, Kind::Date | Kind::Stamp { .. });
    let is_number = |kind: &Kind| {
        matches!(
            kind,
            Kind::Open | Kind::Small | Kind::Whole | Kind::Decimal(_)
        )
    };
    if kinds.iter().all(is_number) {
        let mut taken = numbers(&kinds);
        for (own, given) in taken.iter_mut().zip(given) {
            // It may be NaN, of which the function tells itself.
            if let (DataType::Decimal128(_, scale), DataType::Decimal256(..)) = (&*own, given) {
                *own = DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale);
            }
        }
        return Ok(taken);
    }
    if let [from, to, step] = kinds[..]
        && [from, to]
            .iter()
            .all(|kind| is_time(kind) || *kind == Kind::Open)
        && matches!(step, Kind::Interval | Kind::Open)
    {
        let plain = Kind::Stamp { zoned: false };
        let zoned = Kind::Stamp { zoned: true };
        // A date is an instant unless it stands beside a timestamp, as in PostgreSQL.
        let own = if [from, to].contains(&plain) && ![from, to].contains(&zoned) {
            MICROS
        } else {
            DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()))
        };
        let step = DataType::Interval(IntervalUnit::MonthDayNano);
        return Ok(vec![own.clone(), own, step]);
    }
    let names: Vec<String> = given.iter().map(type_name).collect();
    plan_err!(
        "function generate_series({}) does not exist: it takes whole numbers, decimals, or two timestamps and an interval",
        names.join(", ")
    )
}

/// The types in which a series of numbers is counted.
fn numbers(kinds: &[Kind]) -> Vec<DataType> {
    let scale = |kind: &Kind| match kind {
        Kind::Decimal(scale) => *scale,
        _ => 0,
    };
    if kinds.iter().any(|kind| matches!(kind, Kind::Decimal(_))) {
        // The values have the digits of the first and of the step; the last may have more.
        let own = scale(&kinds[0]).max(kinds.get(2).map_or(0, scale));
        let mut all = vec![DataType::Decimal128(DIGITS, own); kinds.len()];
        all[1] = DataType::Decimal128(DIGITS, scale(&kinds[1]));
        return all;
    }
    let small = kinds.contains(&Kind::Small) && !kinds.contains(&Kind::Whole);
    let own = if small {
        DataType::Int32
    } else {
        DataType::Int64
    };
    vec![own; kinds.len()]
}

/// Lists of values as they are made.
struct Lists<T> {
    values: Vec<T>,
    ends: Vec<i32>,
}

impl<T> Lists<T> {
    fn new(rows: usize) -> Lists<T> {
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(0);
        Lists {
            values: Vec::new(),
            ends,
        }
    }

    fn push(&mut self, value: T) -> Result<()> {
        if self.values.len() == MOST {
            return exec_err!(
                "generate_series makes more than {MOST} values at once here: write it in `from` with constants, which makes them one by one"
            );
        }
        self.values.push(value);
        Ok(())
    }

    fn end(&mut self) {
        self.ends.push(self.values.len() as i32);
    }

    fn finish(self, of: impl FnOnce(Vec<T>) -> ArrayRef) -> Result<ArrayRef> {
        let items = of(self.values);
        let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        let ends = OffsetBuffer::new(self.ends.into());
        Ok(Arc::new(ListArray::try_new(field, ends, items, None)?))
    }
}

fn zero_step() -> DataFusionError {
    Error::coded("22023", "step size cannot equal zero").into()
}

/// The type of the values of a series that begins with one of this type.
fn narrow(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Decimal256(_, scale) => DataType::Decimal128(DIGITS, *scale),
        other => other.clone(),
    }
}

fn series(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let names = ["start value", "stop value", "step size"];
    for (arg, name) in args.iter().zip(names) {
        if let Some(own) = table::not_finite(arg.as_ref()) {
            let called = match own {
                NotFinite::NaN => "NaN",
                _ => "infinity",
            };
            let message = format!("{name} cannot be {called}");
            return Err(Error::coded("22023", message).into());
        }
    }
    let exact = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let args = args
        .iter()
        .map(|arg| cast_with_options(arg, &narrow(arg.data_type()), &exact));
    let args = args.collect::<std::result::Result<Vec<_>, _>>()?;
    let args = &args[..];
    match args[0].data_type() {
        DataType::Timestamp(..) => of_times(args, rows),
        DataType::Decimal128(_, scale) => of_decimals(args, rows, *scale),
        _ => of_numbers(args, rows),
    }
}

/// Whether all arguments of a row have values: a series with a NULL has none.
fn is_there(args: &[ArrayRef], row: usize) -> bool {
    args.iter().all(|arg| arg.is_valid(row))
}

/// A list for each row, which `of` fills; an empty one where an argument is NULL.
fn gather<T>(
    args: &[ArrayRef],
    rows: usize,
    of: impl Fn(usize, &mut Lists<T>) -> Result<()>,
) -> Result<Lists<T>> {
    let mut lists = Lists::new(rows);
    for row in 0..rows {
        if is_there(args, row) {
            of(row, &mut lists)?;
        }
        lists.end();
    }
    Ok(lists)
}

/// Puts `from`, `from + step`, ... up to `to` into a list, or down to it.
fn walk<T: Copy + PartialOrd>(
    lists: &mut Lists<T>,
    (from, to): (T, T),
    up: bool,
    next: impl Fn(T) -> Result<Option<T>>,
) -> Result<()> {
    let mut at = from;
    while if up { at <= to } else { at >= to } {
        lists.push(at)?;
        match next(at)? {
            Some(next) => at = next,
            None => break,
        }
    }
    Ok(())
}

fn of_numbers(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let narrow = *args[0].data_type() == DataType::Int32;
    let wide = args.iter().map(|arg| cast(arg, &DataType::Int64));
    let wide = wide.collect::<std::result::Result<Vec<_>, _>>()?;
    let all = wide.iter().map(|arg| arg.as_primitive::<Int64Type>());
    let all: Vec<&Int64Array> = all.collect();
    let lists = gather(args, rows, |row, lists| {
        let step = all.get(2).map_or(1, |step| step.value(row));
        if step == 0 {
            return Err(zero_step());
        }
        let ends = (all[0].value(row), all[1].value(row));
        walk(lists, ends, step > 0, |at: i64| Ok(at.checked_add(step)))
    })?;
    lists.finish(|values| {
        if narrow {
            // Each lies between two values of this type.
            let values = values.into_iter().map(|value| value as i32);
            Arc::new(Int32Array::from_iter_values(values))
        } else {
            Arc::new(Int64Array::from(values))
        }
    })
}

fn of_decimals(args: &[ArrayRef], rows: usize, scale: i8) -> Result<ArrayRef> {
    let all = args.iter().map(|arg| arg.as_primitive::<Decimal128Type>());
    let all: Vec<&Decimal128Array> = all.collect();
    let power = |digits: i8| 10_i128.pow(u32::from(digits.max(0).unsigned_abs()));
    let other = match args[1].data_type() {
        DataType::Decimal128(_, scale) => *scale,
        _ => 0,
    };
    let lists = gather(args, rows, |row, lists| {
        let step = all.get(2).map_or(power(scale), |step| step.value(row));
        if step == 0 {
            return Err(zero_step());
        }
        let (to, cut) = (all[1].value(row), power(other - scale));
        // What lies between two values of the series ends it at the nearer one.
        let to = match (other > scale, step > 0) {
            (true, true) => to.div_euclid(cut),
            (true, false) => -(-to).div_euclid(cut),
            (false, _) => to.saturating_mul(power(scale - other)),
        };
        let ends = (all[0].value(row), to);
        walk(lists, ends, step > 0, |at: i128| Ok(at.checked_add(step)))
    })?;
    let ty = args[0].data_type().clone();
    lists.finish(|values| Arc::new(Decimal128Array::from(values).with_data_type(ty)))
}

/// The sign of an interval, with months of 30 days and days of 24 hours.
fn sign(step: IntervalMonthDayNano) -> i128 {
    let days = i128::from(step.months) * 30 + i128::from(step.days);
    (days * 86_400_000_000_000 + i128::from(step.nanoseconds)).signum()
}

fn of_times(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let from = args[0].as_primitive::<TimestampMicrosecondType>();
    let to = args[1].as_primitive::<TimestampMicrosecondType>();
    let steps = args[2].as_primitive::<IntervalMonthDayNanoType>();
    let zone: Tz = UTC.parse()?;
    let clocks = Local::now();
    let by_clocks =
        !clocks.is_utc() && matches!(args[0].data_type(), DataType::Timestamp(_, Some(_)));
    let lists = gather(args, rows, |row, lists| {
        let step = steps.value(row);
        let sign = sign(step);
        if sign == 0 {
            return Err(zero_step());
        }
        let (from, to) = (from.value(row), to.value(row));
        let goes = if sign > 0 { from <= to } else { from >= to };
        if goes && [from, to].map(Infinity::of_count) != [None, None] {
            return Err(Error::coded(
                "54000",
                "generate_series does not go from or to infinity here: name an end",
            )
            .into());
        }
        // From one to the next, as months have ends: the 31st is followed by the 28th, and that by the 28th.
        let next = |at: i64| {
            let next = if by_clocks {
                later_instant(clocks, at, step)
            } else {
                TimestampMicrosecondType::add_month_day_nano(at, step, zone)
            };
            match next {
                Some(next) if (next > at && sign > 0) || (next < at && sign < 0) => Ok(Some(next)),
                Some(_) => exec_err!("generate_series: the step leads back at the end of a month"),
                None => exec_err!("timestamp out of range"),
            }
        };
        walk(lists, (from, to), sign > 0, next)
    })?;
    let ty = args[0].data_type().clone();
    lists.finish(|values| Arc::new(TimestampMicrosecondArray::from(values).with_data_type(ty)))
}

/// The positions of a dimension of an array, from the last on if the third argument is true.
fn subscripts(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let which = args[1].as_primitive::<Int64Type>();
    let backwards = args.get(2).map(|arg| arg.as_boolean());
    let first = i32::from(!is_vector(args[0].data_type()));
    let lists = gather(args, rows, |row, lists| {
        let at = which.value(row).checked_sub(1);
        let at = at.and_then(|at| usize::try_from(at).ok());
        let all = lengths(&args[0], row);
        let length = at.and_then(|at| all.get(at)).map_or(0, |length| *length);
        let length = length as i32;
        if backwards.is_some_and(|backwards| backwards.value(row)) {
            (first..first + length)
                .rev()
                .try_for_each(|at| lists.push(at))
        } else {
            (first..first + length).try_for_each(|at| lists.push(at))
        }
    })?;
    lists.finish(|values| Arc::new(Int32Array::from(values)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_those_of_postgresql() {
        use DataType::{Date32, Decimal128, Float64, Int32, Int64, Null, Utf8View};
        let stamp = |zone: Option<&str>| {
            DataType::Timestamp(TimeUnit::Microsecond, zone.map(std::convert::Into::into))
        };
        let month = DataType::Interval(IntervalUnit::MonthDayNano);
        let first = |given: &[DataType]| types(given).map(|all| all[0].clone());
        for (given, wanted) in [
            (vec![Int32, Int32], Int32),
            (vec![Int32, Int64], Int64),
            (vec![Int32, Utf8View], Int32),
            (vec![Null, Null], Int64),
            (vec![Int64, Decimal128(3, 2)], Decimal128(38, 0)),
            (vec![Int64, Int64, Decimal128(3, 2)], Decimal128(38, 2)),
            (vec![Date32, Date32, month.clone()], stamp(Some(UTC))),
            (vec![Date32, stamp(None), month.clone()], stamp(None)),
            (vec![Utf8View, stamp(None), Utf8View], stamp(None)),
        ] {
            assert_eq!(first(&given).unwrap(), wanted, "{given:?}");
        }
        for given in [
            vec![Float64, Int64],
            vec![Date32, Date32],
            vec![Int64, Int64, month],
            vec![Int64],
        ] {
            assert!(types(&given).is_err(), "{given:?}");
        }
    }

    #[test]
    fn an_interval_has_the_sign_of_its_days() {
        let of =
            |months, days, nanoseconds| sign(IntervalMonthDayNano::new(months, days, nanoseconds));
        assert_eq!(of(1, -30, 0), 0);
        assert_eq!(of(1, -31, 0), -1);
        assert_eq!(of(0, 1, -86_399_999_999_999), 1);
    }
}
