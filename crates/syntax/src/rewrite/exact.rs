//! Constants that are cast to `numeric` without digits, which is a decimal of 38 digits with 10 behind the point here: `1e-20::numeric`
//! and others that would lose digits, or do not fit, have a type with as many digits as they have. Other values keep theirs by
//! [a function](functions::decimals::bare).

use functions::decimals::bare::NUMERIC;
use messages::{Error, Result};
use sqlparser::ast::{CastKind, DataType, ExactNumberInfo, Expr, UnaryOperator, Value};

use crate::call::call;
use crate::rewrite::not_finite::{is_bare, is_float};

/// Digits behind the point, and before it, of `numeric` without any.
const BEHIND: i64 = 10;
const BEFORE: i64 = 28;

/// Most digits of a decimal.
const MOST: i64 = 76;

/// Most digits that a double shows.
const OF_DOUBLE: usize = 15;

/// Gives such a constant its type.
///
/// # Errors
/// If it has more digits than any decimal.
pub(super) fn typed(expr: &mut Expr) -> Result<()> {
    if let Some(call) = of_value(expr) {
        *expr = call;
        return Ok(());
    }
    match expr {
        Expr::Cast {
            expr, data_type, ..
        } if is_bare(data_type) => {
            let Some(found) = number(expr) else {
                return Ok(());
            };
            if let Some(digits) = found.digits()? {
                *data_type = digits;
                // It is not read as a double first.
                if let Some(text) = exponent(expr) {
                    **expr = text;
                }
            }
        }
        Expr::TypedString(typed) if is_bare(&typed.data_type) => {
            if let Value::SingleQuotedString(text) = &typed.value.value
                && let Some(found) = Number::read(text)
                && let Some(digits) = found.digits()?
            {
                typed.data_type = digits;
            }
        }
        _ => {}
    }
    Ok(())
}

/// The call that the cast of what is no constant and no parameter becomes.
fn of_value(expr: &mut Expr) -> Option<Expr> {
    let Expr::Cast {
        kind: CastKind::Cast | CastKind::DoubleColon,
        expr,
        data_type,
        array: false,
        format: None,
    } = expr
    else {
        return None;
    };
    if !is_bare(data_type) || is_constant(expr) {
        return None;
    }
    let value = std::mem::replace(&mut **expr, Expr::value(Value::Null));
    Some(call(NUMERIC, vec![value]))
}

/// Whether an expression is a constant or a parameter, with a sign or cast to what floats.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(expr)
        | Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        } => is_constant(expr),
        Expr::Cast {
            expr, data_type, ..
        } if is_float(data_type) => is_constant(expr),
        other => matches!(other, Expr::Value(_) | Expr::TypedString(_)),
    }
}

/// A number with an exponent, which has been read as a [double](super::numbers), as a text.
fn exponent(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Nested(inner) => exponent(inner),
        Expr::Cast {
            expr,
            data_type: DataType::Double(_),
            ..
        } => Some((**expr).clone()),
        _ => None,
    }
}

/// The constant that an expression is; none of others.
fn number(expr: &Expr) -> Option<Number> {
    match expr {
        Expr::Nested(inner) => number(inner),
        Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        } => number(expr),
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) | Value::SingleQuotedString(text) => Number::read(text),
            _ => None,
        },
        Expr::Cast {
            expr,
            data_type: DataType::Double(_),
            ..
        } => number(expr),
        // It has the digits that the double shows.
        Expr::Cast {
            expr, data_type, ..
        } if is_float(data_type) => {
            let found = number(expr)?;
            let shown = found.text.parse::<f64>().ok()?;
            Number::read(&format!("{shown:.*e}", OF_DOUBLE - 1)).map(Number::without_zeros)
        }
        _ => None,
    }
}

/// A number as it is written.
#[derive(Debug, PartialEq)]
struct Number {
    text: String,
    /// Its digits, without a point.
    digits: String,
    /// How many of them stand behind the point; fewer than none if zeros follow.
    behind: i64,
}

impl Number {
    fn read(text: &str) -> Option<Number> {
        let text = text.trim();
        let plain = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (number, exponent) = match plain.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i64>().ok()?),
            None => (plain, 0),
        };
        let (whole, rest) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{rest}");
        if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
            return None;
        }
        let behind = i64::try_from(rest.len()).ok()?.checked_sub(exponent)?;
        Some(Number {
            text: text.to_string(),
            digits,
            behind,
        })
    }

    fn without_zeros(mut self) -> Number {
        while self.digits.len() > 1 && self.digits.ends_with('0') {
            self.digits.pop();
            self.behind -= 1;
        }
        self
    }

    /// The type that holds it, if `numeric` without digits does not.
    fn digits(&self) -> Result<Option<DataType>> {
        let refused = || {
            Error::coded(
                "22003",
                format!("a numeric has up to {MOST} digits here: {}", self.text),
            )
        };
        let written = self.digits.trim_start_matches('0').len();
        let written = i64::try_from(written).map_err(|_| refused())?;
        let before = if written == 0 {
            0
        } else {
            written.saturating_sub(self.behind).max(0)
        };
        let behind = self.behind.max(0);
        if behind <= BEHIND && before <= BEFORE {
            return Ok(None);
        }
        let all = before.saturating_add(behind);
        if all > MOST {
            return Err(refused());
        }
        let all = u64::try_from(all.max(38)).map_err(|_| refused())?;
        Ok(Some(DataType::Numeric(ExactNumberInfo::PrecisionAndScale(
            all, behind,
        ))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_have_the_digits_that_they_need() {
        for (text, wanted) in [
            ("1.5", None),
            ("0.0000000001", None),
            ("1e-20", Some("NUMERIC(38,20)")),
            ("-0.000000000012", Some("NUMERIC(38,12)")),
            ("1e30", Some("NUMERIC(38,0)")),
            ("123456789012345678901234567890.5", Some("NUMERIC(38,1)")),
            ("1e-60", Some("NUMERIC(60,60)")),
            ("x", None),
            ("", None),
        ] {
            let found = Number::read(text).and_then(|own| own.digits().unwrap());
            let found = found.map(|own| own.to_string());
            assert_eq!(found.as_deref(), wanted, "{text}");
        }
        assert!(Number::read("1e-80").unwrap().digits().is_err());
        assert!(Number::read("1e99").unwrap().digits().is_err());
    }
}
