//! Comparisons that PostgreSQL has no operator for: of texts with dates, timestamps, times, intervals, truth values and numbers, which
//! the planner would compare as one of the two types, and that is a guess: `'05.03.2024'` is in May, or in March. And of numbers,
//! truth values, moments and intervals with each other, of which it would take some for numbers.

use arrow::datatypes::DataType;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result};
use datafusion_expr::expr::{Between, InList, InSubquery, SetComparison};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Subquery};
use datafusion_optimizer::AnalyzerRule;

use crate::error::Error;
use crate::messages::types::type_name;
use crate::optimize::expressions::{is_text, rewritten};

/// The analyzer rule that refuses them. It must come before type coercion.
#[derive(Debug)]
pub(crate) struct Undefined;

impl AnalyzerRule for Undefined {
    fn name(&self) -> &str {
        "undefined_comparisons"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        // The columns of `using` stand in no comparison.
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::Join(join) = node {
                for (left, right) in &join.on {
                    if let Some((left, right)) = apart(left, right, node.schema()) {
                        let message =
                            format!("JOIN/USING types {left} and {right} cannot be matched");
                        return Err(Error::coded("42804", message).into());
                    }
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        rewritten(plan, |expr, schema| {
            match &expr {
                Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => {
                    check(left, *op, right, schema)?;
                }
                Expr::Between(Between {
                    expr,
                    low,
                    high,
                    negated,
                }) => {
                    let (least, most) = if *negated {
                        (Operator::Lt, Operator::Gt)
                    } else {
                        (Operator::GtEq, Operator::LtEq)
                    };
                    check(expr, least, low, schema)?;
                    check(expr, most, high, schema)?;
                }
                Expr::InList(InList {
                    expr,
                    list,
                    negated,
                }) => {
                    let op = if *negated {
                        Operator::NotEq
                    } else {
                        Operator::Eq
                    };
                    for item in list {
                        check(expr, op, item, schema)?;
                    }
                }
                Expr::Case(case) => {
                    if let Some(operand) = &case.expr {
                        for (value, _) in &case.when_then_expr {
                            check(operand, Operator::Eq, value, schema)?;
                        }
                    }
                }
                Expr::InSubquery(InSubquery { expr, subquery, .. }) => {
                    check_all(expr, Operator::Eq, subquery, schema)?;
                }
                Expr::SetComparison(SetComparison {
                    expr, subquery, op, ..
                }) => check_all(expr, *op, subquery, schema)?,
                _ => {}
            }
            Ok(Transformed::no(expr))
        })
    }
}

/// The names of the types of two values if they are not compared.
fn apart(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<(String, String)> {
    let (l, r) = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
    apart_of((left, &l), (right, &r))
}

/// The same of values of these types.
pub(super) fn apart_of(
    (left, l): (&Expr, &DataType),
    (right, r): (&Expr, &DataType),
) -> Option<(String, String)> {
    let apart = match (is_text(l), is_text(r)) {
        (true, false) => is_apart(left, l, r),
        (false, true) => is_apart(right, r, l),
        (false, false) => matches!((kind(l), kind(r)), (Some(l), Some(r)) if l != r),
        _ => false,
    };
    apart.then(|| (named(l), named(r)))
}

/// Kinds of values of which those of one are not compared with those of another.
#[derive(PartialEq, Eq)]
enum Kind {
    Truth,
    Number,
    Moment,
    Span,
}

/// The kind that values of a type are of, if it is one of these.
fn kind(data_type: &DataType) -> Option<Kind> {
    match data_type {
        DataType::Boolean => Some(Kind::Truth),
        number if number.is_numeric() => Some(Kind::Number),
        DataType::Date32 | DataType::Timestamp(..) => Some(Kind::Moment),
        DataType::Interval(_) => Some(Kind::Span),
        _ => None,
    }
}

/// Refuses to compare a value with those of a subquery.
fn check_all(value: &Expr, op: Operator, of: &Subquery, schema: &DFSchema) -> Result<()> {
    let rows = of.subquery.schema();
    let (Ok(own), Some((table, field))) = (value.get_type(schema), rows.iter().next()) else {
        return Ok(());
    };
    let column = Expr::from((table, field));
    match apart_of((value, &own), (&column, field.data_type())) {
        Some((left, right)) => Err(refusal(&left, op, &right).into()),
        None => Ok(()),
    }
}

/// Refuses to compare a text with what is none, and values of other kinds.
fn check(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Result<()> {
    match apart(left, right, schema) {
        Some((left, right)) => Err(refusal(&left, op, &right).into()),
        None => Ok(()),
    }
}

/// The error of an operator that there is not.
pub(super) fn refusal(left: &str, op: Operator, right: &str) -> Error {
    let op = match op {
        Operator::NotEq => "<>".to_string(),
        Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => "=".to_string(),
        other => other.to_string(),
    };
    let message = format!("operator does not exist: {left} {op} {right}: cast one of them");
    Error::coded("42883", message)
}

/// Whether a text, of the type `own`, is not compared with values of the type `other`. A string literal is of no type yet,
/// and becomes one of it.
fn is_apart(text: &Expr, own: &DataType, other: &DataType) -> bool {
    match other {
        DataType::Boolean
        | DataType::Date32
        | DataType::Timestamp(..)
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Interval(_) => !is_open(text),
        // Names of types, functions and relations are texts here and numbers in PostgreSQL, which clients compare with
        // numbers: they are computed, or columns of the catalog, whose texts are no views.
        number if number.is_numeric() => {
            matches!(text, Expr::Column(_)) && *own == DataType::Utf8View
        }
        _ => false,
    }
}

/// Whether a text is a string literal, or a parameter.
pub(super) fn is_open(text: &Expr) -> bool {
    match text {
        Expr::Literal(..) | Expr::Placeholder(_) => true,
        Expr::Alias(alias) => is_open(&alias.expr),
        _ => false,
    }
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(
        op,
        Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom
    )
}

/// PostgreSQL's name of a type, as its messages have it.
pub(super) fn named(data_type: &DataType) -> String {
    match data_type {
        text if is_text(text) => "text".into(),
        DataType::Timestamp(_, None) => "timestamp without time zone".into(),
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone".into(),
        DataType::Time32(_) | DataType::Time64(_) => "time without time zone".into(),
        DataType::Float64 => "double precision".into(),
        DataType::Decimal128(..) | DataType::Decimal256(..) => "numeric".into(),
        other => type_name(other),
    }
}
