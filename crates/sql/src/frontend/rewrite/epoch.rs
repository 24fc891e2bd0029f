//! `timestamp 'epoch'`: the moment from which seconds are counted.

use datafusion::sql::sqlparser::ast::{DataType, Expr, Value};

/// Writes the moment out, where a constant is read as a date or a timestamp.
pub(super) fn expr(expr: &mut Expr) {
    let constant = match expr {
        Expr::TypedString(typed) if is_moment(&typed.data_type) => &mut typed.value.value,
        Expr::Cast {
            expr, data_type, ..
        } if is_moment(data_type) => match &mut **expr {
            Expr::Value(value) => &mut value.value,
            _ => return,
        },
        _ => return,
    };
    if let Value::SingleQuotedString(text) = constant
        && text.trim().eq_ignore_ascii_case("epoch")
    {
        *text = "1970-01-01 00:00:00".into();
    }
}

fn is_moment(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Timestamp(..)
            | DataType::TimestampNtz(_)
            | DataType::Date
            | DataType::Datetime(_)
    )
}
