//! Whether a condition can be true of any cell of a chunk, from the statistics of its attributes.

use crate::expr::bind::{Node, Typed};
use crate::expr::syntax::{BinaryOp, UnaryOp};
use crate::model::types::Scalar;
use crate::storage::record::Statistics;

/// Whether `condition` may be true of a cell; `statistics` has those of an attribute, or `None` if they are not known.
/// No is certain, yes is not.
pub(crate) fn may_hold(
    condition: &Typed,
    statistics: &dyn Fn(usize) -> Option<Statistics>,
) -> bool {
    match &condition.node {
        Node::Value(value) => matches!(value, Scalar::Bool(true)),
        Node::Binary(BinaryOp::And, a, b) => may_hold(a, statistics) && may_hold(b, statistics),
        Node::Binary(BinaryOp::Or, a, b) => may_hold(a, statistics) || may_hold(b, statistics),
        Node::Binary(op, a, b) if op.is_comparison() => {
            let (attribute, value, op) =
                match (attribute(a), constant(b), attribute(b), constant(a)) {
                    (Some(attribute), Some(value), _, _) => (attribute, value, *op),
                    (_, _, Some(attribute), Some(value)) => (attribute, value, mirrored(*op)),
                    _ => return true,
                };
            match statistics(attribute) {
                Some(known) => compares(op, value, &known),
                None => true,
            }
        }
        Node::Unary(UnaryOp::IsNull, a) => match attribute(a).and_then(statistics) {
            Some(known) => known.nulls > 0,
            None => true,
        },
        _ => true,
    }
}

/// The attribute that an operand is. A cast to a wider type does not change how values compare; one to a float may round.
fn attribute(of: &Typed) -> Option<usize> {
    match &of.node {
        Node::Attribute(number) => Some(*number),
        Node::Cast(inner) if of.of.is_integer() || inner.of.is_float() => match inner.node {
            Node::Attribute(number) if inner.of.width() <= of.of.width() => Some(number),
            _ => None,
        },
        _ => None,
    }
}

fn constant(of: &Typed) -> Option<Scalar> {
    match &of.node {
        Node::Value(value) => value.cast(of.of),
        Node::Cast(inner) => constant(inner).and_then(|value| value.cast(of.of)),
        _ => None,
    }
}

/// The operator with its operands exchanged.
fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        op => op,
    }
}

fn compares(op: BinaryOp, value: Scalar, known: &Statistics) -> bool {
    if value.is_null() || known.cells == known.nulls {
        return false;
    }
    if op == BinaryOp::Ne {
        // NaN is unequal to everything; otherwise all would have to be the value.
        let same = |end: Scalar| end.order(value).is_some_and(|order| order.is_eq());
        return known.nans > 0 || !(same(known.min) && same(known.max));
    }
    let (low, high) = (known.min.order(value), known.max.order(value));
    let (Some(low), Some(high)) = (low, high) else {
        return false;
    };
    match op {
        BinaryOp::Eq => low.is_le() && high.is_ge(),
        BinaryOp::Lt => low.is_lt(),
        BinaryOp::Le => low.is_le(),
        BinaryOp::Gt => high.is_gt(),
        _ => high.is_ge(),
    }
}
