//! Products of decimals: digits enough before the point, and as many behind it as are left.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType};
use datafusion_common::DFSchema;
use datafusion_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator};

use crate::decimals::operators::digits;

/// Digits behind the point that the product of two decimals of 38 digits may have: it has 16 before it then.
const PLACES_OF_PRODUCT: i8 = 22;

/// Digits before the point that the product of two decimals of 76 digits has at least.
const WHOLE_OF_PRODUCT: i8 = 26;

/// The product of two decimals that would have too few digits before the point, with more; `None` of others.
pub(crate) fn product(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let (l, r) = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
    if is_widened(left, &l, schema) && is_widened(right, &r, schema) {
        return None;
    }
    let constant = |side: &Expr| matches!(side, Expr::Literal(..));
    let (own, other) = factors(&l, &r, constant(left) && constant(right))?;
    let side = |side: &Expr, from: &DataType, to: DataType| {
        Box::new(if *from == to {
            side.clone()
        } else {
            Expr::Cast(Cast::new(Box::new(side.clone()), to))
        })
    };
    Some(Expr::BinaryExpr(BinaryExpr::new(
        side(left, &l, own),
        Operator::Multiply,
        side(right, &r, other),
    )))
}

/// Whether a factor of type `own` is one that was given digits for its product: a cast that keeps the digits behind the point.
fn is_widened(side: &Expr, own: &DataType, schema: &DFSchema) -> bool {
    let Expr::Cast(cast) = side else {
        return false;
    };
    match (own, cast.expr.get_type(schema)) {
        (
            DataType::Decimal256(DECIMAL256_MAX_PRECISION, places),
            Ok(DataType::Decimal128(_, before)),
        ) => *places == before,
        _ => false,
    }
}

/// The types that two factors need for their product to have enough digits; `None` if they have them. Constants have all the
/// digits of their types.
fn factors(left: &DataType, right: &DataType, constant: bool) -> Option<(DataType, DataType)> {
    let (first, places, _) = digits(left).filter(|(.., is_decimal)| *is_decimal)?;
    let (second, others, _) = digits(right).filter(|(.., is_decimal)| *is_decimal)?;
    let both = places.saturating_add(others);
    // The product has no more digits before the point than both factors.
    let whole = |all: u8, places: i8| i16::from(all) - i16::from(places);
    let before = whole(first, places) + whole(second, others);
    let before = before.clamp(1, WHOLE_OF_PRODUCT.into());
    let most = DECIMAL256_MAX_PRECISION as i8 - before as i8;
    match (left, right) {
        (DataType::Decimal128(..), DataType::Decimal128(..)) => {
            let all = first.saturating_add(second).saturating_add(1);
            let is_long = constant || both > PLACES_OF_PRODUCT;
            if !is_long || all <= DECIMAL128_MAX_PRECISION {
                return None;
            }
        }
        (DataType::Decimal256(..), DataType::Decimal256(..)) if both <= most => return None,
        // The planner would give both the same places.
        _ => {}
    }
    // Digits that are far behind the point are left out, of the factor that has more of them.
    let beyond = both.saturating_sub(most).max(0);
    let (places, others) = if places >= others {
        (places - beyond, others)
    } else {
        (places, others - beyond)
    };
    let wide = |own: &DataType, places: i8| match own {
        DataType::Decimal256(_, own_places) if *own_places == places => own.clone(),
        _ => DataType::Decimal256(DECIMAL256_MAX_PRECISION, places.max(0)),
    };
    Some((wide(left, places), wide(right, others)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_keep_digits_before_the_point() {
        let of = DataType::Decimal128;
        let wide = |scale| DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale);
        for (left, right, constant, wanted) in [
            (of(38, 10), of(38, 10), false, None),
            (of(10, 9), of(20, 18), false, None),
            (of(38, 20), of(12, 2), false, None),
            (of(38, 20), of(38, 20), false, Some((20, 20))),
            (of(25, 5), of(25, 5), false, None),
            (of(25, 5), of(25, 5), true, Some((5, 5))),
            (of(10, 5), of(10, 5), true, None),
            (wide(20), wide(20), false, None),
            (wide(40), wide(20), false, Some((30, 20))),
            (wide(10), of(38, 2), false, Some((10, 2))),
            (of(31, 30), of(31, 30), true, Some((30, 30))),
            (of(38, 37), of(38, 38), false, Some((37, 38))),
            (DataType::Int64, of(38, 30), false, None),
        ] {
            let wanted = wanted.map(|(own, other)| (wide(own), wide(other)));
            assert_eq!(factors(&left, &right, constant), wanted, "{left} {right}");
        }
    }
}
