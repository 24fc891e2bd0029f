//! Comparisons of rows, which stand for comparisons of their values.

use functions::lists::names::{DISTINCT, NOT_DISTINCT};
use messages::Error;
use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value};

/// What stands for an expression; none if it stays.
pub(super) type Rewritten = Result<Option<Expr>, Error>;

/// The constant NULL.
pub(super) fn null() -> Expr {
    Expr::value(Value::Null)
}

pub(super) fn unwrapped(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => unwrapped(inner),
        other => other,
    }
}

/// `(a, b) = (c, d)` is `a = c and b = d`, and `(a, b) < (c, d)` is `a < c or a = c and b < d`, also for NULL.
pub(super) fn compared(left: &Expr, op: &BinaryOperator, right: &Expr) -> Rewritten {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    // A row beside another value is a value itself.
    let (Expr::Tuple(left), Expr::Tuple(right)) = (unwrapped(left), unwrapped(right)) else {
        return Ok(None);
    };
    match op {
        Eq => equal(left, right).map(Some),
        NotEq => Ok(Some(not(equal(left, right)?))),
        Lt | LtEq | Gt | GtEq => ordered(left, op, right).map(Some),
        _ => Ok(None),
    }
}

/// `a is distinct from b`, or `is not` if `same`, as an operator whose sides are planned as those of `=` are. Of rows it is
/// that of their values.
pub(super) fn distinct(left: &Expr, right: &Expr, same: bool) -> Rewritten {
    let name = if same { NOT_DISTINCT } else { DISTINCT };
    if let (Expr::Tuple(left), Expr::Tuple(right)) = (unwrapped(left), unwrapped(right)) {
        alike(left, right)?;
        let pairs = left.iter().zip(right);
        let pairs = pairs.map(|(left, right)| named(left, NOT_DISTINCT, right));
        let all = Expr::Nested(Box::new(joined(pairs.collect(), &BinaryOperator::And)));
        return Ok(Some(if same { all } else { not(all) }));
    }
    Ok(Some(named(left, name, right)))
}

fn named(left: &Expr, op: &str, right: &Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(left.clone()),
        op: BinaryOperator::Custom(op.to_owned()),
        right: Box::new(right.clone()),
    }
}

fn ordered(left: &[Expr], op: &BinaryOperator, right: &[Expr]) -> Result<Expr, Error> {
    alike(left, right)?;
    let strict = match op {
        BinaryOperator::LtEq => BinaryOperator::Lt,
        BinaryOperator::GtEq => BinaryOperator::Gt,
        other => other.clone(),
    };
    let binary = |left: Expr, op: &BinaryOperator, right: Expr| {
        Expr::Nested(Box::new(Expr::BinaryOp {
            left: Box::new(left),
            op: op.clone(),
            right: Box::new(right),
        }))
    };
    let mut pairs = left.iter().zip(right).rev();
    let Some((last, other)) = pairs.next() else {
        return Ok(null());
    };
    let mut found = binary(last.clone(), op, other.clone());
    for (left, right) in pairs {
        let less = binary(left.clone(), &strict, right.clone());
        let same = binary(left.clone(), &BinaryOperator::Eq, right.clone());
        let same = binary(same, &BinaryOperator::And, found);
        found = binary(less, &BinaryOperator::Or, same);
    }
    Ok(found)
}

fn alike(left: &[Expr], right: &[Expr]) -> Result<(), Error> {
    if left.len() != right.len() || left.is_empty() {
        return Err(Error::coded(
            "42601",
            format!(
                "a row of {} values is compared with one of {}",
                left.len(),
                right.len()
            ),
        ));
    }
    Ok(())
}

fn equal(left: &[Expr], right: &[Expr]) -> Result<Expr, Error> {
    alike(left, right)?;
    let pairs = left.iter().zip(right).map(|(left, right)| Expr::BinaryOp {
        left: Box::new(left.clone()),
        op: BinaryOperator::Eq,
        right: Box::new(right.clone()),
    });
    let equal = joined(pairs.collect(), &BinaryOperator::And);
    Ok(Expr::Nested(Box::new(equal)))
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp {
        op: UnaryOperator::Not,
        expr: Box::new(Expr::Nested(Box::new(expr))),
    }
}

/// `(a, b) in ((1, 2), (3, 4))`.
pub(super) fn among(expr: &Expr, list: &[Expr], negated: bool) -> Rewritten {
    let Expr::Tuple(row) = unwrapped(expr) else {
        return Ok(None);
    };
    let mut equals = Vec::with_capacity(list.len());
    for item in list {
        let Expr::Tuple(item) = unwrapped(item) else {
            // Among values, it is one itself.
            return Ok(None);
        };
        equals.push(equal(row, item)?);
    }
    let found = Expr::Nested(Box::new(joined(equals, &BinaryOperator::Or)));
    Ok(Some(if negated { not(found) } else { found }))
}

/// `parts` with `op` between them, as a balanced tree.
fn joined(mut parts: Vec<Expr>, op: &BinaryOperator) -> Expr {
    if parts.len() > 1 {
        let right = parts.split_off(parts.len() / 2);
        return Expr::BinaryOp {
            left: Box::new(joined(parts, op)),
            op: op.clone(),
            right: Box::new(joined(right, op)),
        };
    }
    parts.pop().unwrap_or_else(null)
}
