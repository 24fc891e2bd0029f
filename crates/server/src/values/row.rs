//! Rows of a batch, field by field.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, RecordBatch};
use arrow::compute::{CastOptions, cast};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Decimal256Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use sql::{Infinity, Local};

use crate::values::nested::{flat, is_list, items};
use crate::values::{binary, calendar, digits, text, types};
use crate::wire::backend;

/// Appends the value of a row, which is not null.
type Write<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

/// A column as one of few types, so that there are few ways to write it.
fn plain(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let to = match column.data_type() {
        DataType::Float16 => DataType::Float32,
        DataType::LargeUtf8 => DataType::Utf8,
        DataType::FixedSizeBinary(16) => return Ok(column.clone()),
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Interval(_) | DataType::Duration(_) => {
            DataType::Interval(IntervalUnit::MonthDayNano)
        }
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Dictionary(_, value) => return plain(&cast(column, value)?),
        _ => return Ok(column.clone()),
    };
    if column.data_type() == &to {
        return Ok(column.clone());
    }
    sql::cast_moments(column, &to, &CastOptions::default())
}

/// The columns of a batch, ready to be written row by row.
pub(crate) struct Rows {
    columns: Vec<ArrayRef>,
    /// The numbers of their types.
    types: Vec<u32>,
    count: usize,
    formats: Vec<bool>,
    /// How dates and times are written.
    local: Local,
}

impl Rows {
    /// The rows of `batch`, of which each column is binary where `formats` says so.
    ///
    /// # Errors
    /// If a column cannot be converted.
    pub(crate) fn new(batch: &RecordBatch, formats: Vec<bool>) -> Result<Rows, ArrowError> {
        let columns = batch.columns().iter().map(plain);
        let schema = batch.schema();
        let types = schema
            .fields()
            .iter()
            .map(|field| sql::column_number(field));
        Ok(Rows {
            columns: columns.collect::<Result<_, _>>()?,
            types: types.collect(),
            count: batch.num_rows(),
            formats,
            local: Local::default(),
        })
    }

    /// The same with dates and times written so.
    pub(crate) fn of(mut self, local: Local) -> Rows {
        self.local = local;
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Which columns are binary from now on.
    pub(crate) fn set_formats(&mut self, formats: &[bool]) {
        self.formats = formats.to_vec();
    }

    /// What writes each column.
    pub(crate) fn writers(&self) -> Result<Writers<'_>, ArrowError> {
        let all = self.columns.iter().zip(&self.formats).zip(&self.types);
        let columns = all.map(|((column, binary), oid)| {
            let write = if *binary {
                in_binary(column, *oid)?
            } else {
                as_text(column, self.local)?
            };
            Ok((column.as_ref(), write))
        });
        Ok(Writers(columns.collect::<Result<_, ArrowError>>()?))
    }
}

/// Writes the rows of a batch.
pub(crate) struct Writers<'a>(Vec<(&'a dyn Array, Write<'a>)>);

impl Writers<'_> {
    /// Appends a row as the protocol has it.
    pub(crate) fn row(&self, at: usize, out: &mut Vec<u8>) {
        backend::row(out, self.0.len(), |out| self.fields(at, out));
    }

    /// Appends the fields of a row, each with its length.
    pub(crate) fn fields(&self, at: usize, out: &mut Vec<u8>) {
        for (column, write) in &self.0 {
            if is_null(*column, at) {
                backend::null(out);
            } else {
                backend::field(out, |out| write(at, out));
            }
        }
    }

    pub(crate) fn columns(&self) -> usize {
        self.0.len()
    }

    /// Whether the values of a column are numbers, days or times, whose texts are digits, letters, spaces and `-+.:`.
    pub(crate) fn is_numeric(&self, column: usize) -> bool {
        self.0.get(column).is_some_and(|(array, _)| {
            let kind = array.data_type();
            kind.is_numeric()
                || matches!(
                    kind,
                    DataType::Boolean
                        | DataType::Date32
                        | DataType::Time64(_)
                        | DataType::Timestamp(..)
                )
        })
    }

    /// Appends the value of a column; false if it is NULL.
    pub(crate) fn value(&self, column: usize, at: usize, out: &mut Vec<u8>) -> bool {
        match self.0.get(column) {
            Some((array, write)) if !is_null(*array, at) => {
                write(at, out);
                true
            }
            _ => false,
        }
    }
}

fn is_null(column: &dyn Array, at: usize) -> bool {
    column.data_type() == &DataType::Null || column.is_null(at)
}

/// Writes a column of plain numbers by `write`.
fn each<'a, T: ArrowPrimitiveType>(
    column: &'a ArrayRef,
    write: impl Fn(T::Native, &mut Vec<u8>) + 'a,
) -> Write<'a> {
    let column: &PrimitiveArray<T> = column.as_primitive();
    Box::new(move |at, out| write(column.value(at), out))
}

/// Writes a column of texts by `write`.
fn each_text<'a>(column: &'a ArrayRef, write: impl Fn(&str, &mut Vec<u8>) + 'a) -> Write<'a> {
    match column.as_string_view_opt() {
        Some(column) => Box::new(move |at, out| write(column.value(at), out)),
        None => {
            let column = column.as_string::<i32>();
            Box::new(move |at, out| write(column.value(at), out))
        }
    }
}

/// Writes whole numbers as text.
fn whole<'a, T: ArrowPrimitiveType>(column: &'a ArrayRef) -> Write<'a>
where
    T::Native: Into<i64>,
{
    each::<T>(column, |value, out| digits::signed(value.into(), out))
}

/// Microseconds of an interval's nanoseconds.
fn micros(nanoseconds: i64) -> i64 {
    nanoseconds / 1000
}

fn as_text(column: &ArrayRef, local: Local) -> Result<Write<'_>, ArrowError> {
    if !local.is_plain()
        && let Some(write) = in_style(column, local)
    {
        return Ok(write);
    }
    Ok(match column.data_type() {
        DataType::Null => Box::new(|_, _| {}),
        DataType::Boolean => {
            let column = column.as_boolean();
            Box::new(|at, out| out.push(if column.value(at) { b't' } else { b'f' }))
        }
        DataType::Int8 => whole::<Int8Type>(column),
        DataType::Int16 => whole::<Int16Type>(column),
        DataType::Int32 => whole::<Int32Type>(column),
        DataType::Int64 => whole::<Int64Type>(column),
        DataType::UInt8 => whole::<UInt8Type>(column),
        DataType::UInt16 => whole::<UInt16Type>(column),
        DataType::UInt32 => whole::<UInt32Type>(column),
        DataType::UInt64 => each::<UInt64Type>(column, digits::unsigned),
        DataType::Float32 => each::<Float32Type>(column, text::single),
        DataType::Float64 => each::<Float64Type>(column, text::double),
        DataType::Decimal128(_, scale) => {
            let scale = *scale;
            each::<Decimal128Type>(column, move |value, out| text::decimal(value, scale, out))
        }
        DataType::Decimal256(..) => {
            let column = column.as_primitive::<Decimal256Type>();
            let (precision, scale) = (column.precision(), column.scale());
            Box::new(move |at, out| {
                let text = sql::decimal_text(column.value(at), precision, scale);
                out.extend(text.bytes());
            })
        }
        DataType::Utf8 | DataType::Utf8View => each_text(column, |text, out| {
            out.extend_from_slice(text.as_bytes());
        }),
        DataType::Binary => {
            let column = column.as_binary::<i32>();
            Box::new(|at, out| text::bytes(column.value(at), out))
        }
        DataType::FixedSizeBinary(_) => {
            let column = column.as_fixed_size_binary();
            Box::new(|at, out| out.extend(sql::uuid_text(column.value(at)).bytes()))
        }
        DataType::Date32 => {
            each::<Date32Type>(column, |days, out| calendar::date(days.into(), out))
        }
        DataType::Time64(_) => each::<Time64MicrosecondType>(column, calendar::time),
        DataType::Timestamp(_, zone) => {
            let zone = zone.is_some();
            each::<TimestampMicrosecondType>(column, move |micros, out| {
                calendar::timestamp(micros, zone, out);
            })
        }
        DataType::Interval(_) => each::<IntervalMonthDayNanoType>(column, |value, out| {
            calendar::interval(value.months, value.days, micros(value.nanoseconds), out);
        }),
        vector
            if matches!(
                sql::type_number(vector),
                types::INT2VECTOR | types::OIDVECTOR
            ) =>
        {
            vector_of(column)
        }
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _) => {
            list(column, local)
        }
        _ => shown(column, local)?,
    })
}

/// Writes dates and times as the session has them; none of other types.
fn in_style(column: &ArrayRef, local: Local) -> Option<Write<'_>> {
    Some(match column.data_type() {
        DataType::Date32 => each::<Date32Type>(column, move |days, out| {
            let mut text = String::new();
            local.date(days.into(), &mut text);
            out.extend(text.bytes());
        }),
        DataType::Timestamp(_, zone) => {
            let zone = zone.is_some();
            each::<TimestampMicrosecondType>(column, move |micros, out| {
                if let Some(infinity) = Infinity::of_count(micros) {
                    return out.extend(infinity.text().bytes());
                }
                let mut text = String::new();
                let rest = micros.rem_euclid(1_000_000) * 1_000;
                local.timestamp(micros.div_euclid(1_000_000), rest, zone, &mut text);
                out.extend(text.bytes());
            })
        }
        DataType::Interval(_) => each::<IntervalMonthDayNanoType>(column, move |value, out| {
            let mut text = String::new();
            local.interval(value.months, value.days, value.nanoseconds, &mut text);
            out.extend(text.bytes());
        }),
        _ => return None,
    })
}

/// Structs as PostgreSQL writes composite values, maps as JSON.
fn composite(column: &ArrayRef, local: Local) -> Result<Write<'_>, ArrowError> {
    let rows = RecordBatch::try_from_iter([("value", Arc::clone(column))])?;
    let rows =
        sql::as_texts_of(&rows, local).map_err(|error| ArrowError::CastError(error.to_string()))?;
    let texts = rows.column(0).as_string_view().clone();
    Ok(Box::new(move |at, out| {
        out.extend(texts.value(at).as_bytes())
    }))
}

/// Values that have no form of their own, as Arrow shows them.
fn shown(column: &ArrayRef, local: Local) -> Result<Write<'_>, ArrowError> {
    if matches!(column.data_type(), DataType::Struct(_) | DataType::Map(..)) {
        return composite(column, local);
    }
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options)?;
    let mut texts = Vec::with_capacity(column.len());
    for at in 0..column.len() {
        let mut text = String::new();
        let _ = write!(text, "{}", formatter.value(at));
        texts.push(text);
    }
    Ok(Box::new(move |at, out| out.extend(texts[at].as_bytes())))
}

/// Writes a column of values of type `oid`.
fn in_binary(column: &ArrayRef, oid: u32) -> Result<Write<'_>, ArrowError> {
    if let Some(write) = binary::of_text(oid, column.data_type()) {
        return Ok(each_text(column, write));
    }
    Ok(match column.data_type() {
        DataType::Null => Box::new(|_, _| {}),
        DataType::Boolean => {
            let column = column.as_boolean();
            Box::new(|at, out| out.push(column.value(at).into()))
        }
        DataType::Int8 => each::<Int8Type>(column, |v, out| out.extend(i16::from(v).to_be_bytes())),
        DataType::UInt8 => {
            each::<UInt8Type>(column, |v, out| out.extend(i16::from(v).to_be_bytes()))
        }
        DataType::Int16 => each::<Int16Type>(column, |v, out| out.extend(v.to_be_bytes())),
        DataType::UInt16 => {
            each::<UInt16Type>(column, |v, out| out.extend(i32::from(v).to_be_bytes()))
        }
        DataType::Int32 => each::<Int32Type>(column, |v, out| out.extend(v.to_be_bytes())),
        DataType::UInt32 => {
            each::<UInt32Type>(column, |v, out| out.extend(i64::from(v).to_be_bytes()))
        }
        DataType::Int64 => each::<Int64Type>(column, |v, out| out.extend(v.to_be_bytes())),
        DataType::UInt64 => each::<UInt64Type>(column, |v, out| binary::numeric(v.into(), 0, out)),
        DataType::Float32 => each::<Float32Type>(column, |v, out| out.extend(v.to_be_bytes())),
        DataType::Float64 => each::<Float64Type>(column, |v, out| out.extend(v.to_be_bytes())),
        DataType::Decimal128(_, scale) => {
            let scale = *scale;
            each::<Decimal128Type>(column, move |v, out| binary::numeric(v, scale, out))
        }
        DataType::Decimal256(_, scale) => {
            let (column, scale) = (column.as_primitive::<Decimal256Type>(), *scale);
            Box::new(move |at, out| binary::wide_numeric(column.value(at), scale, out))
        }
        DataType::Utf8 | DataType::Utf8View => {
            // The version of its format stands before a `jsonb`.
            let version: &[u8] = if oid == types::JSONB { &[1] } else { &[] };
            each_text(column, move |text, out| {
                out.extend_from_slice(version);
                out.extend_from_slice(text.as_bytes());
            })
        }
        DataType::FixedSizeBinary(_) => {
            let column = column.as_fixed_size_binary();
            Box::new(|at, out| out.extend(column.value(at)))
        }
        DataType::Binary => {
            let column = column.as_binary::<i32>();
            Box::new(|at, out| out.extend(column.value(at)))
        }
        DataType::Date32 => each::<Date32Type>(column, |days, out| {
            out.extend(binary::day(days).to_be_bytes());
        }),
        DataType::Time64(_) => {
            each::<Time64MicrosecondType>(column, |micros, out| out.extend(micros.to_be_bytes()))
        }
        DataType::Timestamp(..) => each::<TimestampMicrosecondType>(column, |micros, out| {
            out.extend(binary::timestamp(micros).to_be_bytes());
        }),
        DataType::Interval(_) => each::<IntervalMonthDayNanoType>(column, |value, out| {
            binary::interval(value.months, value.days, micros(value.nanoseconds), out);
        }),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _) => {
            let item = match oid {
                types::INT2VECTOR => types::INT2,
                types::OIDVECTOR => types::OID,
                oid => types::item(oid).unwrap_or(types::TEXT),
            };
            binary_list(column, item)
        }
        _ => shown(column, Local::default())?,
    })
}

/// An array of PostgreSQL in binary, of items of type `oid`.
fn binary_list(column: &ArrayRef, oid: u32) -> Write<'_> {
    Box::new(move |at, out| {
        let Some((lengths, items)) = flat(column, at) else {
            return;
        };
        out.extend((lengths.len() as i32).to_be_bytes());
        let nulls = !lengths.is_empty() && items.null_count() > 0;
        out.extend(i32::from(nulls).to_be_bytes());
        out.extend(oid.to_be_bytes());
        for length in &lengths {
            out.extend(length.to_be_bytes());
            out.extend(1i32.to_be_bytes());
        }
        if lengths.is_empty() {
            return;
        }
        let Ok(items) = plain(&items) else {
            return;
        };
        let Ok(write) = in_binary(&items, oid) else {
            return;
        };
        for at in 0..items.len() {
            if items.is_null(at) {
                backend::null(out);
            } else {
                backend::field(out, |out| write(at, out));
            }
        }
    })
}

/// Writes vectors as text: items with spaces between them.
fn vector_of(column: &ArrayRef) -> Write<'_> {
    Box::new(move |at, out| {
        let Some(items) = items(column, at) else {
            return;
        };
        let Ok(numbers) = arrow::compute::cast(&items, &DataType::Int64) else {
            return;
        };
        let numbers = numbers.as_primitive::<Int64Type>().values();
        let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        out.extend(texts.join(" ").bytes());
    })
}

/// An array of PostgreSQL. Where an item cannot be written it is NULL.
fn list(column: &ArrayRef, local: Local) -> Write<'_> {
    Box::new(move |at, out| {
        let empty = flat(column, at).is_none_or(|(lengths, _)| lengths.is_empty());
        let items = items(column, at).filter(|_| !empty);
        let items = items.and_then(|items| plain(&items).ok());
        out.push(b'{');
        if let Some(items) = &items
            && let Ok(write) = as_text(items, local)
        {
            for at in 0..items.len() {
                if at > 0 {
                    out.push(b',');
                }
                if items.is_null(at) {
                    out.extend(b"NULL");
                    continue;
                }
                let mut value = Vec::new();
                write(at, &mut value);
                // An array within an array stands as it is.
                if is_list(items) {
                    out.extend(value);
                } else {
                    text::item(&value, out);
                }
            }
        }
        out.push(b'}');
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BinaryViewArray, BooleanArray, Int8Array, Int32Array, ListArray, NullArray,
        StringViewArray, StructArray, TimestampNanosecondArray, UInt64Array,
    };

    use super::*;

    fn written(columns: Vec<(&str, ArrayRef)>, binary: bool) -> Vec<Vec<Option<Vec<u8>>>> {
        let width = columns.len();
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, array)| (name, array, true)),
        )
        .unwrap();
        let rows = Rows::new(&batch, vec![binary; width]).unwrap();
        let writers = rows.writers().unwrap();
        let value = |row, column| {
            let mut out = Vec::new();
            writers.value(column, row, &mut out).then_some(out)
        };
        (0..rows.len())
            .map(|row| (0..width).map(|column| value(row, column)).collect())
            .collect()
    }

    #[test]
    fn values_are_written_in_both_formats() {
        let items = ListArray::from_iter_primitive::<Int32Type, _, _>([
            Some(vec![Some(1), None]),
            Some(vec![]),
        ]);
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(1)]));
        let words: ArrayRef = Arc::new(StringViewArray::from(vec!["x y", ""]));
        let structs = StructArray::try_from(vec![("n", numbers), ("w", words)]).unwrap();
        let columns = || -> Vec<(&str, ArrayRef)> {
            vec![
                ("a", Arc::new(BooleanArray::from(vec![Some(true), None]))),
                ("b", Arc::new(Int8Array::from(vec![-1, 2]))),
                ("c", Arc::new(UInt64Array::from(vec![u64::MAX, 0]))),
                ("d", Arc::new(StringViewArray::from(vec!["é", ""]))),
                ("e", Arc::new(BinaryViewArray::from(vec![&b"\0"[..], b""]))),
                (
                    "f",
                    Arc::new(TimestampNanosecondArray::from(vec![1_999, 0])),
                ),
                ("g", Arc::new(items.clone())),
                ("h", Arc::new(NullArray::new(2))),
                ("i", Arc::new(structs.clone())),
            ]
        };
        let text = |value: &str| Some(value.as_bytes().to_vec());
        let found = written(columns(), false);
        let first = [
            text("t"),
            text("-1"),
            text("18446744073709551615"),
            text("é"),
            text("\\x00"),
            text("1970-01-01 00:00:00.000001"),
            text("{1,NULL}"),
            None,
            text("(,\"x y\")"),
        ];
        assert_eq!(found[0], first);
        assert_eq!(found[1][0], None);
        assert_eq!(found[1][6], text("{}"));
        let found = written(columns(), true);
        assert_eq!(found[0][1], Some(vec![0xff, 0xff]));
        assert_eq!(found[0][4], Some(vec![0]));
        // A client that asks for binary gets a text: what it is told is the type of one.
        assert_eq!(found[1][8], text("(1,\"\")"));
        let array = [
            [0, 0, 0, 1],
            [0, 0, 0, 1],
            [0, 0, 0, 23],
            [0, 0, 0, 2],
            [0, 0, 0, 1],
            [0, 0, 0, 4],
            [0, 0, 0, 1],
            [255, 255, 255, 255],
        ];
        assert_eq!(found[0][6], Some(array.concat()));
        assert_eq!(found[1][6], Some([[0; 4], [0; 4], [0, 0, 0, 23]].concat()));
    }

    #[test]
    fn infinite_values_are_the_ends_of_their_types() {
        let stamps: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![i64::MAX, -i64::MAX]));
        let found = written(vec![("a", stamps.clone())], false).concat();
        let texts = ["infinity", "-infinity"].map(|t| Some(t.as_bytes().to_vec()));
        assert_eq!(found, texts);
        let found = written(vec![("a", stamps)], true).concat();
        assert_eq!(
            found,
            [i64::MAX, i64::MIN].map(|t| Some(t.to_be_bytes().to_vec()))
        );
        assert_eq!(
            (binary::day(i32::MAX), binary::day(-i32::MAX)),
            (i32::MAX, i32::MIN)
        );
    }

    #[test]
    fn every_type_has_a_number() {
        let array: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        let batch = RecordBatch::try_from_iter([("a", array)]).unwrap();
        assert_eq!(types::oid(batch.schema().field(0).data_type()), types::INT4);
    }
}
