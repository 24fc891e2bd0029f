//! Constants of `numeric` that are no numbers: `'NaN'::numeric`, `numeric 'inf'`, `'-Infinity'::float8::numeric`.
//!
//! Without digits `numeric` is a decimal of 38 digits here, which has none of these: such a constant is one of 76.

use functions::decimals::DIGITS;
use sqlparser::ast::{CastKind, DataType, ExactNumberInfo, Expr, SetExpr, Value, Values};
use table::NotFinite;

/// Gives such a constant its type.
pub(super) fn typed(expr: &mut Expr) {
    match expr {
        Expr::Cast {
            expr, data_type, ..
        } if is_bare(data_type) && is_one(expr) => *data_type = wide(),
        Expr::TypedString(typed) if is_bare(&typed.data_type) && says_one(&typed.value.value) => {
            typed.data_type = wide();
        }
        _ => {}
    }
}

/// Gives it to constants in quotes in `values` beside those that are cast to `numeric`.
pub(super) fn listed(body: &mut SetExpr) {
    match body {
        SetExpr::Values(values) => beside(values),
        SetExpr::SetOperation { left, right, .. } => {
            listed(left);
            listed(right);
        }
        _ => {}
    }
}

fn beside(values: &mut Values) {
    let width = values.rows.first().map_or(0, |row| row.content.len());
    for at in 0..width {
        let mut items = values.rows.iter().filter_map(|row| row.content.get(at));
        if !items.any(is_numeric) {
            continue;
        }
        let items = values.rows.iter_mut();
        for item in items.filter_map(|row| row.content.get_mut(at)) {
            if is_quoted(item) {
                let text = std::mem::replace(item, Expr::value(Value::Null));
                *item = Expr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(text),
                    data_type: wide(),
                    array: false,
                    format: None,
                };
            }
        }
    }
}

fn wide() -> DataType {
    let (precision, scale) = DIGITS;
    DataType::Numeric(ExactNumberInfo::PrecisionAndScale(
        precision.into(),
        scale.into(),
    ))
}

/// Whether a type is `numeric` without digits.
pub(super) fn is_bare(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Numeric(ExactNumberInfo::None)
            | DataType::Decimal(ExactNumberInfo::None)
            | DataType::Dec(ExactNumberInfo::None)
    )
}

/// Whether numbers of a type float.
pub(super) fn is_float(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Float(_)
            | DataType::Float4
            | DataType::Float8
            | DataType::Real
            | DataType::Double(_)
            | DataType::DoublePrecision
    )
}

fn says_one(value: &Value) -> bool {
    matches!(value, Value::SingleQuotedString(text) if NotFinite::read(text).is_some())
}

fn is_quoted(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_quoted(inner),
        Expr::Value(value) => says_one(&value.value),
        _ => false,
    }
}

/// Whether an expression is such a constant, of no type yet or of one that floats.
fn is_one(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_one(inner),
        Expr::Cast {
            expr, data_type, ..
        } => is_float(data_type) && is_quoted(expr),
        Expr::TypedString(typed) => is_float(&typed.data_type) && says_one(&typed.value.value),
        expr => is_quoted(expr),
    }
}

fn is_numeric(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_numeric(inner),
        Expr::Cast { data_type, .. } => matches!(
            data_type,
            DataType::Numeric(_) | DataType::Decimal(_) | DataType::Dec(_)
        ),
        _ => false,
    }
}
