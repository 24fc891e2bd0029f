//! Results as comma-separated values: a header, then a line per row; NULL is an empty field, empty text `""`.
//!
//! Numbers, dates and strings are formatted directly into one buffer: with Arrow's general formatter, which makes a
//! string for each value, six million rows of `lineitem` took three times as long as DuckDB takes.

use std::io::Write;

use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, Decimal128Array, Int64Array, RecordBatch, StringArray,
    StringViewArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Int64Type};
use arrow::util::display::ArrayFormatter;
use chrono::Datelike;

use crate::output::results::{Results, TEXT, shown};

/// The number of bytes at which the buffer is written.
const FULL: usize = 256 << 10;

/// Writes all rows of `results`.
///
/// # Errors
/// If a value cannot be computed, or the output cannot be written.
pub fn write(out: &mut dyn Write, results: &mut dyn Results) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for (at, field) in results.schema().fields().iter().enumerate() {
        if at > 0 {
            lines.push(b',');
        }
        text(field.name(), &mut lines);
    }
    lines.push(b'\n');
    out.write_all(&lines)?;
    lines.clear();
    while let Some(batch) = results.next()? {
        rows(&shown(&batch)?, &mut lines, out)?;
        out.write_all(&lines)?;
        lines.clear();
    }
    Ok(())
}

fn rows(batch: &RecordBatch, lines: &mut Vec<u8>, out: &mut dyn Write) -> anyhow::Result<()> {
    let columns = batch.columns().iter().map(Column::new);
    let mut columns = columns.collect::<anyhow::Result<Vec<_>>>()?;
    // Also those of columns that are nothing but NULL.
    let nulls: Vec<_> = batch.columns().iter().map(Array::logical_nulls).collect();
    for row in 0..batch.num_rows() {
        for (at, column) in columns.iter_mut().enumerate() {
            if at > 0 {
                lines.push(b',');
            }
            let null = nulls[at].as_ref().is_some_and(|nulls| nulls.is_null(row));
            if !null {
                column.append(row, lines)?;
            }
        }
        lines.push(b'\n');
        if lines.len() >= FULL {
            out.write_all(lines)?;
            lines.clear();
        }
    }
    Ok(())
}

/// The values of a column of a batch, by the way they are formatted.
enum Column<'a> {
    Integers(Int64Array),
    Decimals(&'a Decimal128Array, usize),
    Dates(&'a Date32Array, Other<'a>),
    Texts(&'a StringArray),
    Views(&'a StringViewArray),
    Other(Other<'a>),
}

/// Values that Arrow's general formatter writes, with a buffer for one.
struct Other<'a> {
    values: ArrayFormatter<'a>,
    room: String,
}

impl<'a> Column<'a> {
    fn new(array: &'a ArrayRef) -> anyhow::Result<Column<'a>> {
        let other = || -> anyhow::Result<Other<'a>> {
            Ok(Other {
                values: ArrayFormatter::try_new(array, &TEXT)?,
                room: String::new(),
            })
        };
        Ok(match array.data_type() {
            DataType::UInt64 => Column::Other(other()?),
            ty if ty.is_integer() => {
                let wide = cast(array, &DataType::Int64)?;
                Column::Integers(wide.as_primitive::<Int64Type>().clone())
            }
            DataType::Decimal128(_, scale @ 0..) => {
                Column::Decimals(array.as_primitive::<Decimal128Type>(), *scale as usize)
            }
            DataType::Date32 => Column::Dates(array.as_primitive::<Date32Type>(), other()?),
            DataType::Utf8 => Column::Texts(array.as_string::<i32>()),
            DataType::Utf8View => Column::Views(array.as_string_view()),
            _ => Column::Other(other()?),
        })
    }

    fn append(&mut self, row: usize, line: &mut Vec<u8>) -> anyhow::Result<()> {
        match self {
            Column::Integers(values) => {
                let value = values.value(row);
                number(value < 0, value.unsigned_abs().into(), 0, line);
            }
            Column::Decimals(values, scale) => {
                let value = values.value(row);
                number(value < 0, value.unsigned_abs(), *scale, line);
            }
            Column::Dates(values, other) => {
                match Date32Type::to_naive_date_opt(values.value(row)) {
                    Some(date) if (0..=9999).contains(&date.year()) => {
                        padded(date.year().unsigned_abs(), 4, line);
                        line.push(b'-');
                        padded(date.month(), 2, line);
                        line.push(b'-');
                        padded(date.day(), 2, line);
                    }
                    _ => other.append(row, line)?,
                }
            }
            Column::Texts(values) => text(values.value(row), line),
            Column::Views(values) => text(values.value(row), line),
            Column::Other(other) => other.append(row, line)?,
        }
        Ok(())
    }
}

impl Other<'_> {
    fn append(&mut self, row: usize, line: &mut Vec<u8>) -> anyhow::Result<()> {
        self.room.clear();
        self.values.value(row).write(&mut self.room)?;
        text(&self.room, line);
        Ok(())
    }
}

/// Writes a string, in quotes if it needs them.
fn text(value: &str, line: &mut Vec<u8>) {
    let special = |byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
    if !value.is_empty() && !value.as_bytes().iter().any(special) {
        line.extend_from_slice(value.as_bytes());
        return;
    }
    line.push(b'"');
    for byte in value.bytes() {
        if byte == b'"' {
            line.push(b'"');
        }
        line.push(byte);
    }
    line.push(b'"');
}

/// Writes a decimal whose last `scale` digits are the fraction.
fn number(negative: bool, magnitude: u128, scale: usize, line: &mut Vec<u8>) {
    // 39 digits, and zeros before a fraction; a scale is below 128.
    let mut digits = [b'0'; 192];
    let mut at = digits.len();
    let mut put = |digit: u8| {
        at -= 1;
        digits[at] = b'0' + digit;
    };
    let mut written = 0;
    let mut wide = magnitude;
    while wide > u128::from(u64::MAX) {
        put((wide % 10) as u8);
        wide /= 10;
        written += 1;
    }
    let mut rest = wide as u64;
    while rest > 0 || written <= scale {
        put((rest % 10) as u8);
        rest /= 10;
        written += 1;
    }
    if negative {
        line.push(b'-');
    }
    let (whole, fraction) = digits[at..].split_at(written - scale);
    line.extend_from_slice(whole);
    if scale > 0 {
        line.push(b'.');
        line.extend_from_slice(fraction);
    }
}

/// Writes a number with leading zeros.
fn padded(number: u32, width: usize, line: &mut Vec<u8>) {
    let start = line.len();
    line.resize(start + width, b'0');
    let mut rest = number;
    for byte in line[start..].iter_mut().rev() {
        *byte = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int8Array, UInt64Array};

    use super::*;

    /// All values of `array`, as they are written, and as the general formatter has them.
    #[track_caller]
    fn check(array: ArrayRef) {
        let formatter = ArrayFormatter::try_new(&array, &TEXT).unwrap();
        let mut column = Column::new(&array).unwrap();
        for row in 0..array.len() {
            let mut line = Vec::new();
            column.append(row, &mut line).unwrap();
            let wanted = formatter.value(row).to_string();
            assert_eq!(String::from_utf8(line).unwrap(), wanted);
        }
    }

    #[test]
    fn values_are_those_of_the_general_formatter() {
        let numbers = [0, 1, -1, 9, 10, 99, -100, 123_456_789, i64::MAX, i64::MIN];
        check(Arc::new(Int64Array::from(numbers.to_vec())));
        check(Arc::new(Int8Array::from(vec![0, -128, 127])));
        check(Arc::new(UInt64Array::from(vec![0, u64::MAX])));
        let most = 99_999_999_999_999_999_999_999_999_999_999_999_999_i128;
        let wide = numbers.map(i128::from).into_iter().chain([most, -most]);
        let wide: Vec<i128> = wide.collect();
        for scale in [0, 1, 2, 10, 37, 38] {
            let values = Decimal128Array::from(wide.clone());
            let values = values.with_precision_and_scale(38, scale).unwrap();
            check(Arc::new(values));
        }
        let days = vec![0, -1, 10_957, 2_932_896, 2_932_897, -719_528, -719_529];
        check(Arc::new(Date32Array::from(days)));
    }

    #[test]
    fn texts_are_in_quotes_where_they_need_them() {
        for (value, wanted) in [
            ("plain", "plain"),
            ("", "\"\""),
            ("a,b", "\"a,b\""),
            ("say \"so\"", "\"say \"\"so\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("é", "é"),
        ] {
            let mut line = Vec::new();
            text(value, &mut line);
            assert_eq!(String::from_utf8(line).unwrap(), wanted);
        }
    }
}
