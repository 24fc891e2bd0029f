//! Casts to types with so many digits of a second: `x::timestamp(2)`, `time(0) '10:00:00.6'`, `x::interval(3)`; and with so
//! many characters: `x::varchar(2)`, `x::char(2)`.

use datafusion::sql::sqlparser::ast::{CastKind, DataType, Expr, TypedString, Value};

use crate::frontend::lengths;
use crate::frontend::rewrite::special::call;
use crate::functions::rounding::ROUND;

/// Most digits that there are.
const MOST: u64 = 6;

/// A cast to such a type as one to the type without digits, rounded; none of other expressions.
pub(super) fn expr(expr: &Expr) -> Option<Expr> {
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
    let first = call("left", vec![text, length]);
    if title == "character" {
        call("rtrim", vec![first])
    } else {
        first
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
        DataType::Timestamp(Some(0 | 3 | 6 | 9), _) => return None,
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
        _ => return None,
    })
}
