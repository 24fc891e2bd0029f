//! How dates, timestamps, texts and intervals are compared, with PostgreSQL's meaning.
//!
//! Dates, timestamps and texts are compared without a detour by nanoseconds, which end in 2262, and intervals by their
//! length.

use std::sync::Arc;

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DFSchema, Result, ScalarValue, plan_err};
use datafusion_expr::expr::{Between, InList};
use datafusion_expr::simplify::SimplifyContext;
use datafusion_expr::utils::disjunction;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion_optimizer::AnalyzerRule;
use datafusion_optimizer::simplify_expressions::ExprSimplifier;
use table::Infinity;

use crate::functions::arguments::nanoseconds;
use crate::functions::intervals::has_length;
use crate::functions::{casts, intervals};
use crate::messages::types::type_name;
use crate::optimize::expressions::{cast, is_text, rewritten};

/// The type of intervals.
const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// The analyzer rule for comparisons. It must come before type coercion.
#[derive(Debug)]
pub(crate) struct Comparisons;

impl AnalyzerRule for Comparisons {
    fn name(&self) -> &str {
        "comparisons"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewritten(plan, compare)
    }
}

fn compare(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    check_kinds(&expr, schema)?;
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) => {
            Ok(compare_two(*left, op, *right, schema))
        }
        Expr::Between(between) => {
            let of = between.expr.get_type(schema);
            let bounds = [&between.low, &between.high].map(|e| e.get_type(schema));
            let (Ok(of), [Ok(low), Ok(high)]) = (of, bounds) else {
                return Ok(Transformed::no(Expr::Between(between)));
            };
            if !is_odd(&of, &low) && !is_odd(&of, &high) {
                return Ok(Transformed::no(Expr::Between(between)));
            }
            let Between {
                expr,
                negated,
                low,
                high,
            } = between;
            let least = compare_two((*expr).clone(), Operator::GtEq, *low, schema).data;
            let most = compare_two(*expr, Operator::LtEq, *high, schema).data;
            let inside = least.and(most);
            Ok(Transformed::yes(if negated {
                Expr::Not(Box::new(inside))
            } else {
                inside
            }))
        }
        Expr::InList(InList {
            expr,
            list,
            negated,
        }) => {
            if expr.get_type(schema).is_ok_and(|ty| has_length(&ty)) {
                let equals = list
                    .into_iter()
                    .map(|item| compare_two((*expr).clone(), Operator::Eq, item, schema).data);
                let found = disjunction(equals).unwrap_or_else(|| lit(false));
                return Ok(Transformed::yes(if negated { !found } else { found }));
            }
            let Ok(of @ DataType::Timestamp(_, _)) = expr.get_type(schema) else {
                return Ok(Transformed::no(Expr::InList(InList::new(
                    expr, list, negated,
                ))));
            };
            let item = |item: Expr| match item.get_type(schema) {
                Ok(ty) if is_text(&ty) || ty == DataType::Date32 => cast(item, of.clone()),
                _ => item,
            };
            let list = list.into_iter().map(item).collect();
            Ok(Transformed::yes(Expr::InList(InList::new(
                expr, list, negated,
            ))))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Refuses to mix dates and numbers: the planner would take a number for a count of days. That they are not compared is seen to
/// [before](crate::optimize::undefined).
fn check_kinds(expr: &Expr, schema: &DFSchema) -> Result<()> {
    let together: Vec<&Expr> = match expr {
        Expr::Case(case) => {
            let values = case.when_then_expr.iter().map(|(_, value)| &**value);
            values.chain(case.else_expr.as_deref()).collect()
        }
        Expr::WindowFunction(window) => match (window.fun.name(), &window.params.args[..]) {
            ("lag" | "lead", [value, _, default]) => vec![value, default],
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    let (mut number, mut moment) = (None, None);
    for expr in together {
        match expr.get_type(schema) {
            Ok(ty) if ty.is_numeric() => number = Some(ty),
            Ok(ty @ (DataType::Date32 | DataType::Timestamp(_, _))) => moment = Some(ty),
            _ => {}
        }
    }
    match (number, moment) {
        (Some(number), Some(moment)) => plan_err!(
            "{} and {} do not go together: cast one of them",
            type_name(&moment),
            type_name(&number)
        ),
        _ => Ok(()),
    }
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(
        op,
        Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom
    )
}

/// Whether values of these types are compared differently from how the planner would compare them.
fn is_odd(left: &DataType, right: &DataType) -> bool {
    use DataType::{Date32, Duration, Interval, Timestamp};
    match (left, right) {
        (Interval(_), Interval(_) | Duration(_)) | (Duration(_), Interval(_)) => true,
        (Interval(_), other) | (other, Interval(_)) if is_text(other) => true,
        (Timestamp(_, _), other) | (other, Timestamp(_, _)) if is_text(other) => true,
        (Timestamp(_, _), Date32) | (Date32, Timestamp(_, _)) => true,
        (Timestamp(a, _), Timestamp(b, _)) => a != b,
        (left, right) => has_length(left) && has_length(right),
    }
}

fn compare_two(left: Expr, op: Operator, right: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let whole = |left: Expr, op: Operator, right: Expr| {
        Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
    };
    let (Ok(l), Ok(r)) = (left.get_type(schema), right.get_type(schema)) else {
        return Transformed::no(whole(left, op, right));
    };
    if !is_odd(&l, &r) {
        return Transformed::no(whole(left, op, right));
    }
    // A constant that the other's unit can count, such as an infinite one, is counted in it.
    if let (DataType::Timestamp(_, _), DataType::Timestamp(_, _)) = (&l, &r) {
        if let Some(constant) = counted(&right, &l) {
            return Transformed::yes(whole(left, op, constant));
        }
        if let Some(constant) = counted(&left, &r) {
            return Transformed::yes(whole(constant, op, right));
        }
    }
    Transformed::yes(match (&l, &r) {
        (DataType::Interval(_), text) if is_text(text) => whole(
            intervals::span(left),
            op,
            intervals::span(cast(right, INTERVAL)),
        ),
        (text, DataType::Interval(_)) if is_text(text) => whole(
            intervals::span(cast(left, INTERVAL)),
            op,
            intervals::span(right),
        ),
        (DataType::Timestamp(_, _), text) if is_text(text) => whole(left, op, cast(right, l)),
        (text, DataType::Timestamp(_, _)) if is_text(text) => whole(cast(left, r), op, right),
        (DataType::Date32, DataType::Timestamp(_, _)) => compare_date(left, op, right, r),
        (DataType::Timestamp(_, _), DataType::Date32) => match op.swap() {
            Some(op) => compare_date(right, op, left, l),
            None => whole(left, op, cast(right, l)),
        },
        // A constant out of the range of nanoseconds is greater or less than all timestamps in nanoseconds.
        (DataType::Timestamp(TimeUnit::Nanosecond, _), coarse) if is_out_of_range(&right) => {
            whole(cast(left, coarse.clone()), op, right)
        }
        (coarse, DataType::Timestamp(TimeUnit::Nanosecond, _)) if is_out_of_range(&left) => {
            let right = cast(right, coarse.clone());
            whole(left, op, right)
        }
        // Otherwise the planner converts to the finer unit, which a constant fits.
        (DataType::Timestamp(_, _), DataType::Timestamp(_, _))
            if constant(&left).is_some() || constant(&right).is_some() =>
        {
            return Transformed::no(whole(left, op, right));
        }
        (DataType::Timestamp(TimeUnit::Nanosecond, _), DataType::Timestamp(_, _)) => {
            whole(left, op, casts::nanoseconds_or_end(right))
        }
        (DataType::Timestamp(_, _), DataType::Timestamp(TimeUnit::Nanosecond, _)) => {
            whole(casts::nanoseconds_or_end(left), op, right)
        }
        (DataType::Interval(_) | DataType::Duration(_), _) => {
            whole(intervals::span(left), op, intervals::span(right))
        }
        (l, r) if has_length(l) && has_length(r) => {
            whole(intervals::span(left), op, intervals::span(right))
        }
        _ => return Transformed::no(whole(left, op, right)),
    })
}

/// Compares a date with a timestamp. If the timestamp is a constant, both are compared as dates, which zone maps
/// understand; otherwise the date stands for its midnight.
fn compare_date(date: Expr, op: Operator, stamp: Expr, stamp_type: DataType) -> Expr {
    const DAY: i64 = 86_400_000_000;
    let whole = |date: Expr, op: Operator, stamp: Expr| {
        Expr::BinaryExpr(BinaryExpr::new(Box::new(date), op, Box::new(stamp)))
    };
    if let DataType::Timestamp(_, None) = stamp_type
        && let Some(micros) = constant_micros(&stamp)
        && let Some(day) = match Infinity::of_count(micros) {
            Some(infinity) => Some(infinity.day()),
            None => i32::try_from(micros.div_euclid(DAY)).ok(),
        }
    {
        let infinite = Infinity::of_day(day).is_some();
        let midnight = infinite || micros.rem_euclid(DAY) == 0;
        let op = match (op, midnight) {
            (op, true) => Some(op),
            (Operator::Lt | Operator::LtEq, false) => Some(Operator::LtEq),
            (Operator::Gt | Operator::GtEq, false) => Some(Operator::Gt),
            _ => None,
        };
        if let Some(op) = op {
            let day = Expr::Literal(ScalarValue::Date32(Some(day)), None);
            return whole(date, op, day);
        }
    }
    // Timestamps in nanoseconds do not reach all dates.
    let date = match stamp_type {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let micros = DataType::Timestamp(TimeUnit::Microsecond, zone);
            casts::nanoseconds_or_end(cast(date, micros))
        }
        other => cast(date, other),
    };
    whole(date, op, stamp)
}

/// The value of a constant timestamp without zone, if it is a whole number of microseconds.
fn constant_micros(expr: &Expr) -> Option<i64> {
    let (count, unit, zone) = parts(constant(expr)?)?;
    zone.is_none()
        .then(|| recounted(count, unit, TimeUnit::Microsecond))?
}

/// A constant timestamp of another unit as one of the type `of`, if that can count it.
fn counted(expr: &Expr, of: &DataType) -> Option<Expr> {
    let DataType::Timestamp(unit, zone) = of else {
        return None;
    };
    let (count, own, own_zone) = parts(constant(expr)?)?;
    if own == *unit || own_zone.is_some() != zone.is_some() {
        return None;
    }
    let count = recounted(count, own, *unit)?;
    let zone = zone.clone();
    let value = match unit {
        TimeUnit::Second => ScalarValue::TimestampSecond(Some(count), zone),
        TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(Some(count), zone),
        TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(Some(count), zone),
        TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(Some(count), zone),
    };
    Some(Expr::Literal(value, None))
}

/// A timestamp: its count, unit and zone.
fn parts(value: ScalarValue) -> Option<(i64, TimeUnit, Option<Arc<str>>)> {
    Some(match value {
        ScalarValue::TimestampSecond(Some(count), zone) => (count, TimeUnit::Second, zone),
        ScalarValue::TimestampMillisecond(Some(count), zone) => {
            (count, TimeUnit::Millisecond, zone)
        }
        ScalarValue::TimestampMicrosecond(Some(count), zone) => {
            (count, TimeUnit::Microsecond, zone)
        }
        ScalarValue::TimestampNanosecond(Some(count), zone) => (count, TimeUnit::Nanosecond, zone),
        _ => return None,
    })
}

/// A count of one unit in another; none if that is no whole number, or too many. What is infinite stays so.
fn recounted(count: i64, from: TimeUnit, to: TimeUnit) -> Option<i64> {
    if let Some(infinity) = Infinity::of_count(count) {
        return Some(infinity.count());
    }
    let (from, to) = (nanoseconds(from), nanoseconds(to));
    if from >= to {
        return count.checked_mul(from / to);
    }
    let scale = to / from;
    (count % scale == 0).then_some(count / scale)
}

fn constant(expr: &Expr) -> Option<ScalarValue> {
    if let Expr::Literal(value, _) = expr {
        return Some(value.clone());
    }
    let of_parts = |e: &Expr| {
        Ok(matches!(
            e,
            Expr::Column(Column { .. })
                | Expr::OuterReferenceColumn(_, _)
                | Expr::ScalarSubquery(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::Placeholder(_)
        ) || matches!(
            // What it is as another type depends on the zone of the session.
            e.get_type(&DFSchema::empty()),
            Ok(DataType::Timestamp(_, Some(_)))
        ))
    };
    if expr.exists(of_parts).unwrap_or(true) || expr.is_volatile() {
        return None;
    }
    let simplifier = ExprSimplifier::new(SimplifyContext::builder().build());
    let schema = DFSchema::empty();
    let coerced = simplifier.coerce(expr.clone(), &schema).ok()?;
    match simplifier.simplify(coerced).ok()? {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

/// Whether `expr` is a constant timestamp out of the range of nanoseconds.
fn is_out_of_range(expr: &Expr) -> bool {
    let (value, in_unit) = match constant(expr) {
        Some(ScalarValue::TimestampSecond(Some(v), _)) => (v, 1_000_000_000),
        Some(ScalarValue::TimestampMillisecond(Some(v), _)) => (v, 1_000_000),
        Some(ScalarValue::TimestampMicrosecond(Some(v), _)) => (v, 1_000),
        _ => return false,
    };
    value.checked_mul(in_unit).is_none()
}
