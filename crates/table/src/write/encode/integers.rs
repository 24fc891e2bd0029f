//! Whole numbers: distances from the least value of a page, in the narrowest width that holds them.

use arrow::array::*;
use arrow::buffer::NullBuffer;
use arrow::datatypes::*;

use crate::error::{Error, Result};
use crate::format::block::{Encoding, Matrix, Zone};
use crate::write::encode::pages::{Sink, distances, fill_nulls, pack, value_pages};

/// The matrix of a column of whole numbers.
pub(super) fn integers(
    column: &str,
    array: &dyn Array,
    page_size: usize,
    sink: &mut Sink<'_>,
) -> Result<Matrix> {
    match whole(column, array)? {
        Whole::Narrow(values) => narrow(values, array.nulls(), page_size, sink),
        Whole::Wide(values) => wide(values, array.nulls(), page_size, sink),
    }
}

/// A column of whole numbers in one of two widths.
enum Whole {
    /// All values fit 64 bits.
    Narrow(Vec<i64>),
    /// Some do not.
    Wide(Vec<i128>),
}

/// The values of a column of whole numbers (NULL rows hold anything that fits).
fn whole(column: &str, array: &dyn Array) -> Result<Whole> {
    macro_rules! narrow {
        ($t:ty) => {
            Whole::Narrow(
                array
                    .as_primitive::<$t>()
                    .values()
                    .iter()
                    .map(|v| *v as i64)
                    .collect(),
            )
        };
    }
    use DataType::*;
    Ok(match array.data_type() {
        Boolean => Whole::Narrow(array.as_boolean().values().iter().map(i64::from).collect()),
        Int8 => narrow!(Int8Type),
        Int16 => narrow!(Int16Type),
        Int32 => narrow!(Int32Type),
        Int64 => narrow!(Int64Type),
        UInt8 => narrow!(UInt8Type),
        UInt16 => narrow!(UInt16Type),
        UInt32 => narrow!(UInt32Type),
        Date32 => narrow!(Date32Type),
        Time32(TimeUnit::Second) => narrow!(Time32SecondType),
        Time32(_) => narrow!(Time32MillisecondType),
        Time64(TimeUnit::Microsecond) => narrow!(Time64MicrosecondType),
        Time64(_) => narrow!(Time64NanosecondType),
        Timestamp(TimeUnit::Second, _) => narrow!(TimestampSecondType),
        Timestamp(TimeUnit::Millisecond, _) => narrow!(TimestampMillisecondType),
        Timestamp(TimeUnit::Microsecond, _) => narrow!(TimestampMicrosecondType),
        Timestamp(TimeUnit::Nanosecond, _) => narrow!(TimestampNanosecondType),
        UInt64 => {
            let values = array.as_primitive::<UInt64Type>().values();
            if values.iter().all(|v| *v <= i64::MAX as u64) {
                Whole::Narrow(values.iter().map(|v| *v as i64).collect())
            } else {
                Whole::Wide(values.iter().map(|v| i128::from(*v)).collect())
            }
        }
        Decimal128(_, _) => {
            let values = array.as_primitive::<Decimal128Type>().values();
            if values
                .iter()
                .fold(true, |all, v| all & (*v as i64 as i128 == *v))
            {
                Whole::Narrow(values.iter().map(|v| *v as i64).collect())
            } else {
                Whole::Wide(values.to_vec())
            }
        }
        other => {
            return Err(Error::Unsupported {
                column: column.to_owned(),
                data_type: other.to_string(),
            });
        }
    })
}

fn narrow(
    mut values: Vec<i64>,
    nulls: Option<&NullBuffer>,
    page_size: usize,
    sink: &mut Sink<'_>,
) -> Result<Matrix> {
    fill_nulls(&mut values, nulls);
    let steps: Vec<(i64, i64)> = values.chunks(page_size / 8).map(min_max).collect();
    let (min, max) = cover(&steps);
    let zone = Some(zone(min, max));
    if min == max {
        return Ok(Matrix::new(Encoding::Constant(min.into()), vec![], zone));
    }
    let width = width_of(&steps);
    let pages = value_pages(&values, width, page_size, sink, |chunk, into| {
        let (min, max) = min_max(chunk);
        if width == 8 {
            pack(chunk, into, i64::to_le_bytes);
        } else {
            distances(chunk, width, into, |v| v.wrapping_sub(min) as u32);
        }
        Some(self::zone(min, max))
    })?;
    let encoding = Encoding::Int { width: width as u8 };
    Ok(Matrix::new(encoding, pages, zone))
}

fn zone(min: i64, max: i64) -> Zone {
    Zone::Int {
        min: min.into(),
        max: max.into(),
    }
}

fn min_max(values: &[i64]) -> (i64, i64) {
    let min = values.iter().fold(i64::MAX, |a, v| a.min(*v));
    let max = values.iter().fold(i64::MIN, |a, v| a.max(*v));
    (min, max)
}

fn cover(zones: &[(i64, i64)]) -> (i64, i64) {
    zones.iter().fold((i64::MAX, i64::MIN), |(a, b), (c, d)| {
        (a.min(*c), b.max(*d))
    })
}

/// The narrowest width whose pages all hold their values, from the zones of eighths of a
/// one-byte page.
fn width_of(steps: &[(i64, i64)]) -> usize {
    let fits = |width: usize, most: u64| {
        steps.chunks(8 / width).all(|page| {
            let (min, max) = cover(page);
            max.wrapping_sub(min) as u64 <= most
        })
    };
    if fits(1, u8::MAX.into()) {
        1
    } else if fits(2, u16::MAX.into()) {
        2
    } else if fits(4, u32::MAX.into()) {
        4
    } else {
        8
    }
}

fn wide(
    mut values: Vec<i128>,
    nulls: Option<&NullBuffer>,
    page_size: usize,
    sink: &mut Sink<'_>,
) -> Result<Matrix> {
    fill_nulls(&mut values, nulls);
    if values.iter().all(|v| i64::try_from(*v).is_ok()) {
        // Only NULL rows were wide.
        let values = values.iter().map(|v| *v as i64).collect();
        return narrow(values, None, page_size, sink);
    }
    let mut whole: Option<Zone> = None;
    let pages = value_pages(&values, 16, page_size, sink, |chunk, into| {
        let min = chunk.iter().copied().min().unwrap_or(0);
        let max = chunk.iter().copied().max().unwrap_or(0);
        let zone = Zone::Int { min, max };
        whole = whole.map_or(Some(zone), |w| w.join(zone));
        pack(chunk, into, i128::to_le_bytes);
        Some(zone)
    })?;
    Ok(Matrix::new(Encoding::Int { width: 16 }, pages, whole))
}
