//! Conditions on decimals of more than 38 digits, as ranges that they imply.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{
    BinaryExpr, Column, InListExpr, IsNotNullExpr, Literal,
};

use crate::scan::ranges::{Ranges, union};

/// The column and ranges that `expr` implies, if it compares a column of wide decimals with constants. The zones of such
/// columns, and the ends of these ranges, are the nearest numbers of 128 bits.
pub(super) fn ranges(expr: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<(usize, Ranges)> {
    let column = |expr: &Arc<dyn PhysicalExpr>| {
        let column = expr.downcast_ref::<Column>()?;
        let of = schema.field(column.index()).data_type();
        matches!(of, DataType::Decimal256(..)).then(|| column.index())
    };
    let nearest = |expr: &Arc<dyn PhysicalExpr>, column: usize| {
        let literal = expr.downcast_ref::<Literal>()?.value();
        match literal {
            ScalarValue::Decimal256(Some(value), _, _)
                if literal.data_type() == *schema.field(column).data_type() =>
            {
                let outside = if value.is_negative() {
                    i128::MIN
                } else {
                    i128::MAX
                };
                Some(value.to_i128().unwrap_or(outside))
            }
            _ => None,
        }
    };
    if let Some(test) = expr.downcast_ref::<IsNotNullExpr>() {
        return Some((column(test.arg())?, vec![(i128::MIN, i128::MAX)]));
    }
    if let Some(list) = expr.downcast_ref::<InListExpr>() {
        let column = column(list.expr()).filter(|_| !list.negated())?;
        let values = list.list().iter().map(|item| nearest(item, column));
        let points = values.map(|value| value.map(|value| (value, value)));
        let points = points.collect::<Option<Ranges>>()?;
        return Some((column, union(&points, &[])));
    }
    let binary = expr.downcast_ref::<BinaryExpr>()?;
    let (column, value, op) = match column(binary.left()) {
        Some(column) => (column, nearest(binary.right(), column)?, *binary.op()),
        None => {
            let column = column(binary.right())?;
            (column, nearest(binary.left(), column)?, binary.op().swap()?)
        }
    };
    let range = match op {
        Operator::Eq => (value, value),
        Operator::Lt | Operator::LtEq => (i128::MIN, value),
        Operator::Gt | Operator::GtEq => (value, i128::MAX),
        _ => return None,
    };
    Some((column, vec![range]))
}
