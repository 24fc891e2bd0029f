//! Constants as they stand in a statement, as values of a column: where that is plain, without a planner.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray, StringViewArray, new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use functions::uuid;
use sqlparser::ast::{Expr, UnaryOperator, Value};
use table::{enum_type, is_enum};

/// A constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant<'e> {
    /// NULL.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number of 64 bits.
    Whole(i64),
    /// A number with an exponent, or one that is too large for 64 bits.
    Float(f64),
    /// A string literal.
    Text(&'e str),
}

/// The greatest whole number up to which each is a float, too.
const EXACT: u64 = 1 << 53;

impl<'e> Constant<'e> {
    /// The constant that an expression is, if it is one that says its value.
    pub fn of(expr: &'e Expr) -> Option<Constant<'e>> {
        match expr {
            Expr::Nested(inner) => Constant::of(inner),
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => match Constant::of(expr)? {
                Constant::Whole(number) => number.checked_neg().map(Constant::Whole),
                Constant::Float(number) => Some(Constant::Float(-number)),
                _ => None,
            },
            Expr::Value(value) => match &value.value {
                Value::Null => Some(Constant::Null),
                Value::Boolean(value) => Some(Constant::Boolean(*value)),
                Value::SingleQuotedString(text) => Some(Constant::Text(text)),
                Value::Number(digits, false) => match digits.parse() {
                    Ok(whole) => Some(Constant::Whole(whole)),
                    // More digits than a float has say another number than it.
                    Err(_) if digits.len() < 16 => digits.parse().ok().map(Constant::Float),
                    Err(_) => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// Constants as values of one column; none if one would have to be converted, or does not fit.
    pub(crate) fn column(values: &[Constant<'_>], data_type: &DataType) -> Option<ArrayRef> {
        if values.iter().all(|value| *value == Constant::Null) {
            return Some(new_null_array(data_type, values.len()));
        }
        fn all<'v, T>(
            values: &'v [Constant<'v>],
            value: impl Fn(&'v Constant<'v>) -> Option<T>,
        ) -> Option<Vec<Option<T>>> {
            let each = values.iter().map(|one| match one {
                Constant::Null => Some(None),
                other => value(other).map(Some),
            });
            each.collect()
        }
        Some(match data_type {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
                let values = all(values, |value| match value {
                    Constant::Whole(number) => Some(*number),
                    _ => None,
                })?;
                let options = CastOptions {
                    safe: false,
                    ..Default::default()
                };
                cast_with_options(&Int64Array::from(values), data_type, &options).ok()?
            }
            DataType::Float64 => Arc::new(Float64Array::from(all(values, |value| match value {
                Constant::Float(number) => Some(*number),
                Constant::Whole(number) if number.unsigned_abs() <= EXACT => Some(*number as f64),
                _ => None,
            })?)),
            DataType::Utf8View => {
                let texts = all(values, |value| match value {
                    Constant::Text(text) => Some(*text),
                    _ => None,
                })?;
                Arc::new(StringViewArray::from_iter(texts))
            }
            DataType::Boolean => Arc::new(BooleanArray::from(all(values, |value| match value {
                Constant::Boolean(value) => Some(*value),
                _ => None,
            })?)),
            DataType::FixedSizeBinary(16) => {
                let texts = all(values, |value| match value {
                    Constant::Text(text) => Some(*text),
                    _ => None,
                })?;
                uuid::read(&StringArray::from(texts)).ok()?
            }
            own if is_enum(own) => {
                let texts = all(values, |value| match value {
                    Constant::Text(text) => Some(*text),
                    _ => None,
                })?;
                enum_type(own)?.read(&StringArray::from(texts)).ok()?
            }
            _ => return None,
        })
    }
}
