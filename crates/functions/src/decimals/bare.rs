//! Casts of what is no constant to `numeric` without digits, which loses none of those that values have: a decimal stays as it
//! is, and what floats, a text and JSON become decimals of as many digits as there are, half of them behind the point.

use arrow::array::{ArrayRef, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result, plan_err};
use datafusion_expr::{Cast, Expr, ExprSchemable};
use messages::Error;
use table::json_kind;

use crate::arguments::{is_text, strings};
use crate::convert::convert;
use crate::decimals::casts::{concerns, converted};
use crate::decimals::exponents;
use crate::own::Own;

/// The name of the function that a cast to `numeric` without digits becomes. Statements cannot write it.
pub const NUMERIC: &str = "numeric of";

/// Most digits before the point, and behind it, of what had no declared digits.
const HALF: u8 = 38;

/// The function.
pub(crate) fn function() -> Own {
    Own::new(
        NUMERIC,
        |types| match types {
            [_] => Ok(types.to_vec()),
            _ => plan_err!("a cast takes one value"),
        },
        |types| Ok(types.first().map_or(DataType::Null, target)),
        |args, _| of(&args[0]),
    )
}

/// The type that values of a type have as `numeric`.
fn target(from: &DataType) -> DataType {
    match from {
        DataType::Decimal128(..) | DataType::Decimal256(..) => from.clone(),
        DataType::Null => DataType::Decimal128(HALF, 10),
        from if from.is_floating() || is_text(from) || json_kind(from).is_some() => {
            DataType::Decimal256(2 * HALF, HALF as i8)
        }
        _ => DataType::Decimal128(HALF, 10),
    }
}

/// The expression with the cast that it stands for, if it is this function of a value whose digits need not be looked at.
///
/// # Errors
/// If the value has no type.
pub fn as_cast(expr: Expr, schema: &DFSchema) -> Result<(Expr, bool)> {
    let Expr::ScalarFunction(call) = &expr else {
        return Ok((expr, false));
    };
    let ([value], NUMERIC) = (&call.args[..], call.func.name()) else {
        return Ok((expr, false));
    };
    let from = value.get_type(schema)?;
    if is_text(&from) && from != DataType::Null {
        return Ok((expr, false));
    }
    let to = target(&from);
    let value = value.clone();
    let cast = if from == to {
        value
    } else {
        Expr::Cast(Cast::new(Box::new(value), to))
    };
    Ok((cast, true))
}

/// The values as decimals.
fn of(values: &ArrayRef) -> Result<ArrayRef> {
    let from = values.data_type();
    let to = target(from);
    if *from == to {
        return Ok(ArrayRef::clone(values));
    }
    if is_text(from) && *from != DataType::Null {
        check(&strings(values)?)?;
    }
    if json_kind(from).is_some() {
        return convert(values, &to);
    }
    if concerns(from, &to) {
        return converted(values, &to, true);
    }
    Ok(cast(values, &to)?)
}

/// Refuses texts with more digits behind the point than are kept.
fn check(texts: &StringArray) -> Result<()> {
    let most = usize::from(HALF);
    for text in texts.iter().flatten() {
        // Most are shorter.
        if text.len() <= most && !text.contains(['e', 'E']) {
            continue;
        }
        let written = exponents::plain(text);
        let behind = written.as_deref().unwrap_or(text).trim().split_once('.');
        let behind = behind.map_or("", |(_, behind)| behind.trim_end_matches('0'));
        if behind.len() > most && behind.bytes().all(|byte| byte.is_ascii_digit()) {
            let message = format!(
                "a text that is cast to numeric has up to {most} digits behind the point: cast it to numeric(p, s): \"{text}\""
            );
            return Err(Error::coded("22003", message).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn digits_behind_the_point_are_kept_or_refused() {
        let texts = |text: &str| StringArray::from(vec![None, Some(text)]);
        for kept in ["1.5", " 1e-38 ", &format!("0.{}", "1".repeat(38)), "1e400"] {
            assert!(check(&texts(kept)).is_ok(), "{kept}");
        }
        let zeros = format!("0.5{}", "0".repeat(60));
        assert!(check(&texts(&zeros)).is_ok());
        for refused in ["1e-39", &format!("0.{}", "1".repeat(39))] {
            assert!(check(&texts(refused)).is_err(), "{refused}");
        }
        let doubles: ArrayRef = Arc::new(arrow::array::Float64Array::from(vec![1e-12]));
        let found = of(&doubles).unwrap();
        assert_eq!(*found.data_type(), DataType::Decimal256(76, 38));
    }
}
