//! `NaN` and the infinities among decimals of 39 to 76 digits, which in Arrow are whole numbers of 256 bits.
//!
//! Those numbers are less than 10^76, and so far from the ends of 256 bits. Three values at the ends are set aside, the same
//! for all scales. As whole numbers they are in PostgreSQL's order: `-Infinity` is before all numbers, `Infinity` behind them,
//! and `NaN`, which equals itself, behind that. So whatever only compares values needs to know nothing of them: keys, zones,
//! sorts, groups, joins. What computes with them does, and so does what hands values to others, for whom they would be numbers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal256Array, RecordBatch};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Decimal256Type, DecimalType, i256};
use arrow::error::ArrowError;

use crate::error::{Error, Result};

/// What a decimal may be that is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFinite {
    /// Less than all numbers.
    NegativeInfinity,
    /// Greater than all numbers.
    Infinity,
    /// Not a number.
    NaN,
}

impl NotFinite {
    /// What a value is, unless it is a number.
    pub fn of(value: i256) -> Option<NotFinite> {
        if !is_outside(value) {
            return None;
        }
        let all = [
            NotFinite::NaN,
            NotFinite::Infinity,
            NotFinite::NegativeInfinity,
        ];
        all.into_iter().find(|own| own.value() == value)
    }

    /// The value that stands for it.
    pub const fn value(self) -> i256 {
        match self {
            NotFinite::NegativeInfinity => i256::MIN,
            NotFinite::Infinity => i256::from_parts(u128::MAX - 1, i128::MAX),
            NotFinite::NaN => i256::MAX,
        }
    }

    /// As PostgreSQL writes it.
    pub const fn text(self) -> &'static str {
        match self {
            NotFinite::NegativeInfinity => "-Infinity",
            NotFinite::Infinity => "Infinity",
            NotFinite::NaN => "NaN",
        }
    }

    /// What a text says, as PostgreSQL reads it: in any case, with blanks around.
    pub fn read(text: &str) -> Option<NotFinite> {
        let word = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
        // The longest has nine letters: most texts are numbers, and are told by the first.
        let first = word.bytes().find(|byte| *byte != b'+' && *byte != b'-')?;
        if word.len() > 9 || !matches!(first, b'n' | b'N' | b'i' | b'I') {
            return None;
        }
        Some(match word.to_ascii_lowercase().as_str() {
            "nan" => NotFinite::NaN,
            "inf" | "+inf" | "infinity" | "+infinity" => NotFinite::Infinity,
            "-inf" | "-infinity" => NotFinite::NegativeInfinity,
            _ => return None,
        })
    }

    /// What a number that floats is, unless it is finite.
    pub fn of_float(value: f64) -> Option<NotFinite> {
        if value.is_finite() {
            None
        } else if value.is_nan() {
            Some(NotFinite::NaN)
        } else if value > 0.0 {
            Some(NotFinite::Infinity)
        } else {
            Some(NotFinite::NegativeInfinity)
        }
    }

    /// The same as a number that floats.
    pub const fn float(self) -> f64 {
        match self {
            NotFinite::NegativeInfinity => f64::NEG_INFINITY,
            NotFinite::Infinity => f64::INFINITY,
            NotFinite::NaN => f64::NAN,
        }
    }
}

/// Whether a value is beyond all decimals. Their upper halves are far from the ends of 128 bits.
fn is_outside(value: i256) -> bool {
    let (_, upper) = value.to_parts();
    (upper == i128::MAX) | (upper == i128::MIN)
}

/// Whether values of this type, or such within them, may be no numbers.
pub fn is_wide(data_type: &DataType) -> bool {
    match data_type {
        DataType::Decimal256(..) => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::Map(item, _) => is_wide(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| is_wide(field.data_type())),
        DataType::Dictionary(_, value) => is_wide(value),
        _ => false,
    }
}

/// The first value that is no number among decimals, or among those within lists, maps and structs.
pub fn not_finite(array: &dyn Array) -> Option<NotFinite> {
    if !is_wide(array.data_type()) {
        return None;
    }
    match array.data_type() {
        DataType::Decimal256(..) => {
            let own = array.as_primitive::<Decimal256Type>();
            // One pass without branches: nearly always there is none.
            let values = own.values().iter();
            if !values.fold(false, |any, value| any | is_outside(*value)) {
                return None;
            }
            own.iter().flatten().find_map(NotFinite::of)
        }
        DataType::List(_) => {
            let own = array.as_list::<i32>();
            (0..own.len())
                .filter(|row| own.is_valid(*row))
                .find_map(|row| not_finite(own.value(row).as_ref()))
        }
        DataType::LargeList(_) => {
            let own = array.as_list::<i64>();
            (0..own.len())
                .filter(|row| own.is_valid(*row))
                .find_map(|row| not_finite(own.value(row).as_ref()))
        }
        DataType::FixedSizeList(..) => not_finite(array.as_fixed_size_list().values().as_ref()),
        DataType::ListView(_) => not_finite(array.as_list_view::<i32>().values().as_ref()),
        DataType::LargeListView(_) => not_finite(array.as_list_view::<i64>().values().as_ref()),
        DataType::Map(..) => {
            let own = array.as_map();
            (0..own.len())
                .filter(|row| own.is_valid(*row))
                .find_map(|row| not_finite(&own.value(row)))
        }
        DataType::Struct(_) => {
            let mut columns = array.as_struct().columns().iter();
            columns.find_map(|column| not_finite(column.as_ref()))
        }
        DataType::Dictionary(..) => not_finite(array.as_any_dictionary().values().as_ref()),
        _ => None,
    }
}

/// Decimals with NULL in place of what is no number.
pub fn only_numbers(values: &Decimal256Array) -> Decimal256Array {
    let is_number = |row: usize| values.is_valid(row) && !is_outside(values.value(row));
    let nulls = NullBuffer::new(BooleanBuffer::collect_bool(values.len(), is_number));
    let numbers = Decimal256Array::new(values.values().clone(), Some(nulls));
    numbers.with_data_type(values.data_type().clone())
}

/// `numbers`, decimals, with what is no number in `values` at its place.
pub fn with_not_finite(numbers: &Decimal256Array, values: &Decimal256Array) -> Decimal256Array {
    let of = |row: usize| {
        let own = values.is_valid(row).then(|| values.value(row));
        match own.filter(|value| is_outside(*value)) {
            Some(value) => Some(value),
            None => numbers.is_valid(row).then(|| numbers.value(row)),
        }
    };
    let found: Decimal256Array = (0..numbers.len()).map(of).collect();
    found.with_data_type(numbers.data_type().clone())
}

/// Decimals as ones of other digits; what is no number stays.
///
/// # Errors
/// For a number that has more digits, unless the options say that it becomes NULL.
pub fn rescaled(
    values: &Decimal256Array,
    to: &DataType,
    options: &CastOptions<'_>,
) -> std::result::Result<ArrayRef, ArrowError> {
    if not_finite(values).is_none() {
        return cast_with_options(values, to, options);
    }
    let numbers = cast_with_options(&only_numbers(values), to, options)?;
    Ok(Arc::new(with_not_finite(
        numbers.as_primitive::<Decimal256Type>(),
        values,
    )))
}

/// A decimal as text.
pub fn decimal_text(value: i256, precision: u8, scale: i8) -> String {
    match NotFinite::of(value) {
        Some(own) => own.text().to_string(),
        None => Decimal256Type::format_decimal(value, precision, scale),
    }
}

/// Refuses rows that leave in Arrow's form or in that of a file, for whose readers every decimal is a number.
///
/// # Errors
/// [`Error::NotFinite`], which names the first column that holds what is none.
pub fn refuse_not_finite(rows: &RecordBatch) -> Result<()> {
    let schema = rows.schema_ref();
    for (field, column) in schema.fields().iter().zip(rows.columns()) {
        if let Some(own) = not_finite(column.as_ref()) {
            return Err(Error::NotFinite {
                column: field.name().clone(),
                value: own.text(),
            });
        }
    }
    Ok(())
}

/// Refuses infinities in a column of so many digits: PostgreSQL has them only in `numeric` without any.
///
/// # Errors
/// [`Error::Infinite`]
pub(crate) fn refuse_infinite(column: &dyn Array) -> Result<()> {
    let DataType::Decimal256(precision, scale) = *column.data_type() else {
        return Ok(());
    };
    if not_finite(column).is_none() {
        return Ok(());
    }
    let mut values = column.as_primitive::<Decimal256Type>().iter().flatten();
    let infinite = [NotFinite::Infinity, NotFinite::NegativeInfinity].map(NotFinite::value);
    if values.any(|value| infinite.contains(&value)) {
        return Err(Error::Infinite { precision, scale });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [NotFinite; 3] = [
        NotFinite::NegativeInfinity,
        NotFinite::Infinity,
        NotFinite::NaN,
    ];

    #[test]
    fn they_are_in_the_order_of_postgresql_and_no_numbers() {
        let most = i256::from_string(&"9".repeat(76)).unwrap();
        let [least, above, nan] = ALL.map(NotFinite::value);
        assert!(least < most.wrapping_neg() && most < above && above < nan);
        for own in ALL {
            assert_eq!(NotFinite::of(own.value()), Some(own));
            assert_eq!(NotFinite::read(own.text()), Some(own));
            assert_eq!(NotFinite::of_float(own.float()), Some(own));
        }
        for number in [most, most.wrapping_neg(), i256::ZERO] {
            assert_eq!(NotFinite::of(number), None);
        }
    }

    #[test]
    fn words_are_those_of_postgresql() {
        for (text, wanted) in [
            (" nan\t", Some(NotFinite::NaN)),
            ("NaN ", Some(NotFinite::NaN)),
            (" +inFinity ", Some(NotFinite::Infinity)),
            ("-INF", Some(NotFinite::NegativeInfinity)),
            ("+nan", None),
            ("- inf", None),
            ("infinite", None),
            ("1", None),
            ("", None),
        ] {
            assert_eq!(NotFinite::read(text), wanted, "{text}");
        }
    }

    #[test]
    fn they_are_found_where_they_are_and_stay_what_they_are() {
        let values = [Some(i256::ONE), None, Some(NotFinite::NaN.value())];
        let values = Decimal256Array::from_iter(values);
        let values = values.with_precision_and_scale(50, 2).unwrap();
        assert_eq!(not_finite(&values), Some(NotFinite::NaN));
        assert_eq!(not_finite(&values.slice(0, 2)), None);
        assert_eq!(only_numbers(&values).null_count(), 2);
        let wider = DataType::Decimal256(76, 12);
        let found = rescaled(&values, &wider, &CastOptions::default()).unwrap();
        let found = found.as_primitive::<Decimal256Type>();
        assert_eq!(found.value(0), i256::from_i128(10_000_000_000));
        assert!(found.is_null(1));
        assert_eq!(NotFinite::of(found.value(2)), Some(NotFinite::NaN));
        assert_eq!(decimal_text(found.value(0), 76, 12), "0.010000000000");

        let rows = RecordBatch::try_from_iter([("x", Arc::new(values) as ArrayRef)]).unwrap();
        let refused = refuse_not_finite(&rows).unwrap_err().to_string();
        assert!(
            refused.contains("\"x\"") && refused.contains("NaN"),
            "{refused}"
        );
    }

    #[test]
    fn columns_hold_nan_and_no_infinities() {
        let of = |own: NotFinite| {
            let array = Decimal256Array::from_iter_values([own.value()]);
            refuse_infinite(&array.with_precision_and_scale(76, 10).unwrap())
        };
        assert!(of(NotFinite::NaN).is_ok());
        let refused = of(NotFinite::Infinity).unwrap_err().to_string();
        assert_eq!(
            refused,
            "numeric field overflow: A field with precision 76, scale 10 cannot hold an infinite value."
        );
        assert!(of(NotFinite::NegativeInfinity).is_err());
    }
}
