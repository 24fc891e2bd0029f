//! The operands of operators that compare numbers or compute with them: one that is exact beside one that floats becomes
//! [one that floats](crate::number_types), and products and quotients of decimals get their
//! [digits](crate::decimals::operators).

use arrow::datatypes::{DataType, i256};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator};
use table::decimal_text;

use crate::decimals::exponents;
use crate::decimals::operators::quotient;
use crate::decimals::products::product;
use crate::number_types::{beside, is_exact};

/// Whether an operator compares its sides.
fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(
        op,
        Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom
    )
}

/// Whether an operator computes with its sides as numbers.
pub(crate) fn computes(op: Operator) -> bool {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    matches!(op, Plus | Minus | Multiply | Divide | Modulo)
}

/// The operator between its sides.
pub fn whole(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

/// The sides of an operator, of which one that is exact beside one that floats does so, too; `None` if they stay.
pub fn sides(op: Operator, left: &Expr, right: &Expr, schema: &DFSchema) -> Option<(Expr, Expr)> {
    let takes = compares(op) || computes(op);
    if !takes || floats(right, schema)? == floats(left, schema)? {
        return None;
    }
    let (l, r) = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
    let to = beside(&l, &r)?;
    if compares(op) {
        // As it is compared in PostgreSQL, and found by what is known of the column.
        match (exact(left), exact(right)) {
            (None, Some(constant)) if is_exact(&l) => return Some((left.clone(), constant)),
            (Some(constant), None) if is_exact(&r) => return Some((constant, right.clone())),
            _ => {}
        }
    }
    let of = |side: &Expr, own: &DataType| as_type(side.clone(), own, &to);
    Some((of(left, &l), of(right, &r)))
}

/// Whether a number floats; `None` of what is no number. It is cheaper than to find types, which takes long in a long sum.
fn floats(expr: &Expr, schema: &DFSchema) -> Option<bool> {
    match expr {
        Expr::BinaryExpr(binary) if computes(binary.op) => {
            let right = floats(&binary.right, schema)?;
            Some(floats(&binary.left, schema)? || right)
        }
        Expr::Alias(alias) => floats(&alias.expr, schema),
        Expr::Negative(inner) => floats(inner, schema),
        other => {
            let own = other.get_type(schema).ok()?;
            own.is_numeric().then(|| own.is_floating())
        }
    }
}

/// The decimal that a number with an exponent is, `1.5e3`, which the statement has as a text that is cast to a double.
fn exact(number: &Expr) -> Option<Expr> {
    let Expr::Cast(cast) = number else {
        return None;
    };
    let Expr::Literal(text, _) = &*cast.expr else {
        return None;
    };
    let text = text.try_as_str().flatten()?;
    if *cast.field.data_type() != DataType::Float64 || !text.contains(['e', 'E']) {
        return None;
    }
    let text = exponents::plain(text)?;
    let behind = text.split_once('.').map_or(0, |(_, behind)| behind.len());
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let precision = u8::try_from(digits).ok().filter(|digits| *digits <= 38)?;
    let value: i128 = text.replace('.', "").parse().ok()?;
    let scale = i8::try_from(behind).ok()?;
    let value = ScalarValue::Decimal128(Some(value), precision, scale);
    Some(Expr::Literal(value, None))
}

/// What an operator gives of numbers of which one floats and the other does not, or as a product or a quotient of decimals;
/// `None` of others.
///
/// # Errors
/// If a constant cannot be computed.
pub fn operated(
    op: Operator,
    left: &Expr,
    right: &Expr,
    schema: &DFSchema,
) -> Result<Option<Expr>> {
    if let Some((left, right)) = sides(op, left, right, schema) {
        return Ok(Some(whole(left, op, right)));
    }
    match op {
        Operator::Divide => quotient(left, right, schema),
        Operator::Multiply => Ok(product(left, right, schema)),
        _ => Ok(None),
    }
}

/// A number of the type `from` as one of a type that floats.
pub fn as_type(number: Expr, from: &DataType, to: &DataType) -> Expr {
    if from == to || from.is_null() {
        number
    } else {
        floating(number, to)
    }
}

/// `number` as one of a type that floats: a constant as the nearest there is.
fn floating(number: Expr, to: &DataType) -> Expr {
    let constant = match &number {
        Expr::Literal(value, _) => nearest(value, to),
        _ => None,
    };
    match constant {
        Some(value) => Expr::Literal(value, None),
        None => Expr::Cast(Cast::new(Box::new(number), to.clone())),
    }
}

/// The number of a type that floats that is nearest to a constant; `None` if that is NULL, or too great.
fn nearest(value: &ScalarValue, to: &DataType) -> Option<ScalarValue> {
    if value.is_null() {
        return None;
    }
    let text = match value {
        ScalarValue::Decimal128(Some(own), precision, scale) => {
            decimal_text(i256::from_i128(*own), *precision, *scale)
        }
        ScalarValue::Decimal256(Some(own), precision, scale) => {
            decimal_text(*own, *precision, *scale)
        }
        ScalarValue::Float32(Some(own)) if *to == DataType::Float64 => {
            return Some(ScalarValue::Float64(Some(f64::from(*own))));
        }
        own if own.data_type().is_integer() => own.to_string(),
        _ => return None,
    };
    let of_word = text.ends_with(|end: char| end.is_ascii_alphabetic());
    let fits = |is_finite: bool| is_finite || of_word;
    match to {
        DataType::Float64 => {
            let own: f64 = text.parse().ok()?;
            fits(own.is_finite()).then_some(ScalarValue::Float64(Some(own)))
        }
        DataType::Float32 => {
            let own: f32 = text.parse().ok()?;
            fits(own.is_finite()).then_some(ScalarValue::Float32(Some(own)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_an_exponent_are_exact_beside_exact_ones() {
        let written = |text: &str| {
            let text = Expr::Literal(ScalarValue::Utf8(Some(text.into())), None);
            Expr::Cast(Cast::new(Box::new(text), DataType::Float64))
        };
        let found = |text: &str| match exact(&written(text)) {
            Some(Expr::Literal(value, _)) => Some(value),
            _ => None,
        };
        assert_eq!(
            found("1.5e3"),
            Some(ScalarValue::Decimal128(Some(1500), 4, 0))
        );
        assert_eq!(
            found("25e-3"),
            Some(ScalarValue::Decimal128(Some(25), 4, 3))
        );
        assert_eq!(found("1e300"), None);
        assert_eq!(found("1.5"), None);
    }

    #[test]
    fn constants_become_the_nearest_number_that_floats() {
        let of = |value, to: &DataType| nearest(&value, to);
        let third = ScalarValue::Decimal128(Some(3), 1, 1);
        assert_eq!(
            of(third.clone(), &DataType::Float64),
            Some(ScalarValue::Float64(Some(0.3)))
        );
        assert_eq!(
            of(third, &DataType::Float32),
            Some(ScalarValue::Float32(Some(0.3)))
        );
        let long = ScalarValue::Decimal128(Some(12_345_678_901_234_567_890), 20, 2);
        assert_eq!(
            of(long, &DataType::Float64),
            Some(ScalarValue::Float64(Some(123_456_789_012_345_678.9)))
        );
        let great = ScalarValue::Decimal256(i256::from_string(&format!("1{:0>50}", "")), 51, 0);
        assert_eq!(of(great, &DataType::Float32), None);
        let null = ScalarValue::Decimal128(None, 1, 1);
        assert_eq!(of(null, &DataType::Float64), None);
    }
}
