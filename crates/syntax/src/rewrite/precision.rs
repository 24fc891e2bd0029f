//! Casts to types with so many digits of a second, `x::timestamp(2)`, `time(0) '10:00:00.6'`, `x::interval(3)`, and to types
//! of intervals with fields, `interval '1 2:03' day to minute`; and with so many characters: `x::varchar(2)`, `x::char(2)`.

use functions::cut::{CUT_CHAR, CUT_TEXT};
use functions::rounding::ROUND;
use functions::temporal::fields::Fields;
use functions::temporal::make::{CUT_INTERVAL, READ_INTERVAL};
use sqlparser::ast::{
    ArrayElemTypeDef, CastKind, DataType, DateTimeField, Expr, Interval, TypedString, Value,
};

use crate::call::call;
use crate::lengths;

/// Most digits that there are.
const MOST: u64 = 6;

/// A cast to such a type as one to the type without digits, rounded; none of other expressions.
pub(super) fn expr(expr: &Expr) -> Option<Expr> {
    if let Some(interval) = with_fields(expr) {
        return Some(interval);
    }
    match expr {
        Expr::Cast {
            kind: kind @ (CastKind::Cast | CastKind::DoubleColon | CastKind::TryCast),
            expr,
            data_type,
            array: false,
            format: None,
        } => {
            if let Some((title, length)) = lengths::of_type(data_type) {
                return Some(cut(kind.clone(), (**expr).clone(), title, length));
            }
            let (plain, digits) = without_digits(data_type)?;
            let cast = Expr::Cast {
                kind: kind.clone(),
                expr: expr.clone(),
                data_type: plain,
                array: false,
                format: None,
            };
            Some(rounded(cast, digits))
        }
        Expr::TypedString(typed) => {
            if let Some((title, length)) = lengths::of_type(&typed.data_type) {
                let text = Expr::Value(typed.value.clone());
                return Some(cut(CastKind::Cast, text, title, length));
            }
            let (plain, digits) = without_digits(&typed.data_type)?;
            let typed = Expr::TypedString(TypedString {
                data_type: plain,
                ..typed.clone()
            });
            Some(rounded(typed, digits))
        }
        _ => None,
    }
}

/// The first `length` characters of a value; of `char(n)` without the blanks at its end, which count for nothing there.
fn cut(kind: CastKind, value: Expr, title: &str, length: u64) -> Expr {
    let text = Expr::Cast {
        kind,
        expr: Box::new(value),
        data_type: DataType::Varchar(None),
        array: false,
        format: None,
    };
    let length = Expr::value(Value::Number(length.to_string(), false));
    let cut = if title == "character" {
        CUT_CHAR
    } else {
        CUT_TEXT
    };
    call(cut, vec![text, length])
}

/// An interval in quotes, or a cast to a type of intervals with fields, as a call of what reads it; none of others.
fn with_fields(expr: &Expr) -> Option<Expr> {
    let (value, fields, digits) = match expr {
        Expr::Interval(Interval {
            value,
            leading_field,
            leading_precision,
            last_field,
            fractional_seconds_precision,
        }) => {
            text(value)?;
            let first = leading_field.as_ref().map(field);
            let last = last_field.as_ref().map(field);
            let fields = match (first, last) {
                (None, _) => String::new(),
                (Some(first), None) => first,
                (Some(first), Some(last)) => format!("{first} to {last}"),
            };
            // Units of other dialects are those of the planner.
            if last_field.is_none() && !fields.is_empty() {
                Fields::of(&fields)?;
            }
            let digits = fractional_seconds_precision.or(*leading_precision);
            (value, fields, digits)
        }
        Expr::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon,
            expr,
            data_type:
                DataType::Interval {
                    fields: Some(fields),
                    precision,
                },
            array: false,
            format: None,
        } => (expr, fields.to_string().to_lowercase(), *precision),
        _ => return None,
    };
    let fields = Expr::value(Value::SingleQuotedString(fields));
    let read = match text(value) {
        Some(_) => call(READ_INTERVAL, vec![(**value).clone(), fields]),
        None => {
            let interval = Expr::Cast {
                kind: CastKind::Cast,
                expr: value.clone(),
                data_type: DataType::Interval {
                    fields: None,
                    precision: None,
                },
                array: false,
                format: None,
            };
            call(CUT_INTERVAL, vec![interval, fields])
        }
    };
    Some(match digits {
        Some(digits) => rounded(read, digits),
        None => read,
    })
}

/// `YEAR` as `year`: the parser writes plural words and those of other dialects, too.
fn field(field: &DateTimeField) -> String {
    let name = field.to_string().to_lowercase();
    let bare = name.strip_suffix('s').unwrap_or(&name);
    bare.to_string()
}

/// The text of a constant in quotes.
fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn rounded(value: Expr, digits: u64) -> Expr {
    if digits >= MOST {
        return value;
    }
    let digits = Expr::value(Value::Number(digits.to_string(), false));
    call(ROUND, vec![value, digits])
}

/// A type without its digits, and those; none if it has none, or if they are those of a type of their own.
fn without_digits(data_type: &DataType) -> Option<(DataType, u64)> {
    Some(match data_type {
        // Seconds, milliseconds and nanoseconds are types of their own, to which casts round.
        DataType::Timestamp(Some(0 | 3 | 9), _) => return None,
        DataType::Timestamp(Some(digits), zone) => (DataType::Timestamp(None, *zone), *digits),
        DataType::Time(Some(digits), zone) => (DataType::Time(None, *zone), *digits),
        DataType::Interval {
            fields: None,
            precision: Some(digits),
        } => {
            let plain = DataType::Interval {
                fields: None,
                precision: None,
            };
            (plain, *digits)
        }
        DataType::Array(ArrayElemTypeDef::SquareBracket(item, None)) => {
            let (plain, digits) = without_digits(item)?;
            let item = ArrayElemTypeDef::SquareBracket(Box::new(plain), None);
            (DataType::Array(item), digits)
        }
        _ => return None,
    })
}
