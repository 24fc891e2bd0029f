//! PostgreSQL's meaning of types, operators and casts, where DataFusion has another.
//!
//! * [`Types`]: a `timestamp` counts microseconds, so that years 1 to 294,246 fit; `float` has 64 bits.
//! * [`Operators`]: `^` is the power; a date plus an interval is a timestamp.
//! * [`Comparisons`]: dates, timestamps and texts are compared without a detour by nanoseconds, which end in 2262, and
//!   intervals by their length.
//! * [`Casts`]: a cast to an integer rounds, half away from zero for decimals and to the even neighbour for doubles.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::datatype::DataTypeExt;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::{Between, InList, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, TypePlanner};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, ExactNumberInfo, TimezoneInfo,
};

use crate::functions;
use crate::types::MICROS;

/// Types that the planner knows otherwise or not at all.
#[derive(Debug)]
pub(crate) struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        let data_type = match sql_type {
            SqlType::Timestamp(digits, zone) => {
                let zone = matches!(zone, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone);
                timestamp(*digits, zone)?
            }
            SqlType::Datetime(digits) => timestamp(*digits, false)?,
            SqlType::Float(digits) => match digits {
                ExactNumberInfo::Precision(1..=24) => DataType::Float32,
                ExactNumberInfo::None | ExactNumberInfo::Precision(25..=53) => DataType::Float64,
                _ => return plan_err!("float(n) takes 1 to 53 bits"),
            },
            SqlType::Character(_)
            | SqlType::CharacterVarying(_)
            | SqlType::CharVarying(_)
            | SqlType::Nvarchar(_) => DataType::Utf8View,
            SqlType::Dec(digits) => match *digits {
                ExactNumberInfo::None => DataType::Decimal128(38, 10),
                ExactNumberInfo::Precision(precision) => decimal(precision, 0)?,
                ExactNumberInfo::PrecisionAndScale(precision, scale) => decimal(precision, scale)?,
            },
            SqlType::Blob(_) | SqlType::Varbinary(_) | SqlType::Binary(_) => DataType::Binary,
            _ => return Ok(None),
        };
        Ok(Some(data_type.into_nullable_field_ref()))
    }
}

fn decimal(precision: u64, scale: i64) -> Result<DataType> {
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(p @ 1..=38), Ok(s @ 0..)) if s as u8 <= p => Ok(DataType::Decimal128(p, s)),
        _ => plan_err!(
            "dec({precision}, {scale}) is not supported: it takes up to 38 digits, no more of them after the point than in all"
        ),
    }
}

fn timestamp(digits: Option<u64>, zone: bool) -> Result<DataType> {
    let unit = match digits {
        Some(0) => TimeUnit::Second,
        Some(3) => TimeUnit::Millisecond,
        None | Some(6) => TimeUnit::Microsecond,
        Some(9) => TimeUnit::Nanosecond,
        Some(n) => {
            return plan_err!("timestamp({n}) is not supported: it takes 0, 3, 6 or 9 digits");
        }
    };
    Ok(DataType::Timestamp(
        unit,
        zone.then(|| functions::UTC.into()),
    ))
}

/// Operators that the planner knows otherwise.
#[derive(Debug)]
pub(crate) struct Operators;

impl ExprPlanner for Operators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = expr;
        Ok(match op {
            BinaryOperator::BitwiseXor | BinaryOperator::PGExp => {
                PlannerResult::Planned(datafusion::functions::math::power().call(vec![left, right]))
            }
            BinaryOperator::Plus | BinaryOperator::Minus => {
                let widened = |date: Expr| Expr::Cast(Cast::new(Box::new(date), MICROS));
                // The right side first: in a long sum it is the short one.
                let (left, right) = match kind(&right, schema) {
                    Kind::Interval if kind(&left, schema) == Kind::Date => (widened(left), right),
                    Kind::Date
                        if op == BinaryOperator::Plus && kind(&left, schema) == Kind::Interval =>
                    {
                        (left, widened(right))
                    }
                    _ => (left, right),
                };
                PlannerResult::Original(RawBinaryExpr { op, left, right })
            }
            BinaryOperator::Multiply => match kind(&right, schema) {
                Kind::Number if kind(&left, schema) == Kind::Interval => {
                    PlannerResult::Planned(functions::interval_times(left, right))
                }
                Kind::Interval if kind(&left, schema) == Kind::Number => {
                    PlannerResult::Planned(functions::interval_times(right, left))
                }
                _ => PlannerResult::Original(RawBinaryExpr { op, left, right }),
            },
            op => PlannerResult::Original(RawBinaryExpr { op, left, right }),
        })
    }
}

/// What operators of dates and intervals ask of an operand.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Date,
    Interval,
    Number,
    Other,
}

fn kind(expr: &Expr, schema: &DFSchema) -> Kind {
    match expr.get_type(schema) {
        Ok(DataType::Date32) => Kind::Date,
        Ok(DataType::Interval(_)) => Kind::Interval,
        Ok(ty) if ty.is_numeric() => Kind::Number,
        _ => Kind::Other,
    }
}

/// Rewrites the expressions of a plan and of the queries in it, each with the columns that it sees.
pub(crate) fn rewritten(
    plan: LogicalPlan,
    rewrite: fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    let node = |plan: LogicalPlan| {
        let mut schema = merge_schema(&plan.inputs());
        if let LogicalPlan::TableScan(scan) = &plan {
            schema.merge(&DFSchema::try_from_qualified_schema(
                scan.table_name.clone(),
                &scan.source.schema(),
            )?);
        }
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|expr| rewrite(expr, &schema))?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })
    };
    Ok(plan.transform_up_with_subqueries(node)?.data)
}

/// The rule that decides how dates, timestamps and texts are compared; it must come before types are made to agree.
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
            Ok(Transformed::yes(match negated {
                true => Expr::Not(Box::new(inside)),
                false => inside,
            }))
        }
        Expr::InList(InList {
            expr,
            list,
            negated,
        }) => {
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

/// Refuses dates where numbers stand, and the reverse: the planner would take the one for days of the other.
fn check_kinds(expr: &Expr, schema: &DFSchema) -> Result<()> {
    let together: Vec<&Expr> = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => vec![left, right],
        Expr::Between(between) => vec![&between.expr, &between.low, &between.high],
        Expr::InList(list) => std::iter::once(&*list.expr).chain(&list.list).collect(),
        Expr::Case(case) => {
            let values = case.when_then_expr.iter().map(|(_, value)| &**value);
            values.chain(case.else_expr.as_deref()).collect()
        }
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
            crate::types::type_name(&moment),
            crate::types::type_name(&number)
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

fn is_text(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// Whether values of these types are compared otherwise than the planner would.
fn is_odd(left: &DataType, right: &DataType) -> bool {
    use DataType::{Date32, Duration, Interval, Timestamp};
    match (left, right) {
        (Interval(_), Interval(_) | Duration(_)) | (Duration(_), Interval(_)) => true,
        (Timestamp(_, _), other) | (other, Timestamp(_, _)) if is_text(other) => true,
        (Timestamp(_, _), Date32) | (Date32, Timestamp(_, _)) => true,
        (Timestamp(a, _), Timestamp(b, _)) => a != b,
        _ => false,
    }
}

fn cast(expr: Expr, to: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), to))
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
    Transformed::yes(match (&l, &r) {
        (DataType::Timestamp(_, _), text) if is_text(text) => whole(left, op, cast(right, l)),
        (text, DataType::Timestamp(_, _)) if is_text(text) => whole(cast(left, r), op, right),
        (DataType::Date32, DataType::Timestamp(_, _)) => compare_date(left, op, right, r),
        (DataType::Timestamp(_, _), DataType::Date32) => match op.swap() {
            Some(op) => compare_date(right, op, left, l),
            None => whole(left, op, cast(right, l)),
        },
        // A constant that nanoseconds cannot count is greater or less than all that they can.
        (DataType::Timestamp(TimeUnit::Nanosecond, _), coarse) if is_out_of_range(&right) => {
            whole(cast(left, coarse.clone()), op, right)
        }
        (coarse, DataType::Timestamp(TimeUnit::Nanosecond, _)) if is_out_of_range(&left) => {
            let right = cast(right, coarse.clone());
            whole(left, op, right)
        }
        // Between other units the coarser is made the finer, which constants reach.
        (DataType::Timestamp(_, _), DataType::Timestamp(_, _))
            if constant(&left).is_some() || constant(&right).is_some() =>
        {
            return Transformed::no(whole(left, op, right));
        }
        (DataType::Timestamp(TimeUnit::Nanosecond, _), DataType::Timestamp(_, _)) => {
            whole(left, op, functions::nanoseconds_or_end(right))
        }
        (DataType::Timestamp(_, _), DataType::Timestamp(TimeUnit::Nanosecond, _)) => {
            whole(functions::nanoseconds_or_end(left), op, right)
        }
        (DataType::Interval(_) | DataType::Duration(_), _) => {
            whole(functions::span(left), op, functions::span(right))
        }
        _ => return Transformed::no(whole(left, op, right)),
    })
}

/// A date and a timestamp: as dates where the timestamp is a constant, as a date may be looked up in zones; otherwise
/// the date begins at midnight.
fn compare_date(date: Expr, op: Operator, stamp: Expr, stamp_type: DataType) -> Expr {
    const DAY: i64 = 86_400_000_000;
    let whole = |date: Expr, op: Operator, stamp: Expr| {
        Expr::BinaryExpr(BinaryExpr::new(Box::new(date), op, Box::new(stamp)))
    };
    if let DataType::Timestamp(_, None) = stamp_type
        && let Some(micros) = constant_micros(&stamp)
        && let Ok(day) = i32::try_from(micros.div_euclid(DAY))
    {
        let midnight = micros.rem_euclid(DAY) == 0;
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
    // Nanoseconds do not hold all dates.
    let date = match stamp_type {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let micros = DataType::Timestamp(TimeUnit::Microsecond, zone);
            functions::nanoseconds_or_end(cast(date, micros))
        }
        other => cast(date, other),
    };
    whole(date, op, stamp)
}

/// The value of a constant expression, if it is a timestamp of whole microseconds.
fn constant_micros(expr: &Expr) -> Option<i64> {
    match constant(expr)? {
        ScalarValue::TimestampSecond(Some(v), None) => v.checked_mul(1_000_000),
        ScalarValue::TimestampMillisecond(Some(v), None) => v.checked_mul(1_000),
        ScalarValue::TimestampMicrosecond(Some(v), None) => Some(v),
        ScalarValue::TimestampNanosecond(Some(v), None) if v % 1_000 == 0 => Some(v / 1_000),
        _ => None,
    }
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

/// Whether `expr` is a constant timestamp that nanoseconds from 1970 on do not reach.
fn is_out_of_range(expr: &Expr) -> bool {
    let (value, in_unit) = match constant(expr) {
        Some(ScalarValue::TimestampSecond(Some(v), _)) => (v, 1_000_000_000),
        Some(ScalarValue::TimestampMillisecond(Some(v), _)) => (v, 1_000_000),
        Some(ScalarValue::TimestampMicrosecond(Some(v), _)) => (v, 1_000),
        _ => return false,
    };
    value.checked_mul(in_unit).is_none()
}

/// The rule that makes casts what PostgreSQL means; it must come after types are made to agree, which adds casts.
#[derive(Debug)]
pub(crate) struct Casts;

impl AnalyzerRule for Casts {
    fn name(&self) -> &str {
        "casts"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewritten(plan, convert)
    }
}

fn convert(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (inner, to, strict) = match &expr {
        Expr::Cast(cast) => (&cast.expr, cast.field.data_type(), true),
        Expr::TryCast(cast) => (&cast.expr, cast.field.data_type(), false),
        _ => return Ok(Transformed::no(expr)),
    };
    let Ok(from) = inner.get_type(schema) else {
        return Ok(Transformed::no(expr));
    };
    use DataType::{Date32, Decimal128, Float16, Float32, Float64, Timestamp};
    let better: Option<Expr> = match (&from, to) {
        (Float16 | Float32 | Float64, to) if to.is_integer() => {
            Some(functions::round_half_even((**inner).clone()))
        }
        (Decimal128(precision, scale), to) if to.is_integer() && *scale > 0 => {
            // One digit more, as 9.5 becomes 10.
            let digits = (i16::from(*precision) - i16::from(*scale) + 1).clamp(1, 38) as u8;
            let whole = Decimal128(digits, 0);
            let inner = inner.clone();
            Some(match strict {
                true => Expr::Cast(Cast::new(inner, whole)),
                false => Expr::TryCast(TryCast::new(inner, whole)),
            })
        }
        (text, to @ Timestamp(_, _)) if is_text(text) => {
            let read = functions::read_timestamp((**inner).clone(), to, strict);
            return Ok(Transformed::yes(read));
        }
        (Date32, to @ Timestamp(TimeUnit::Nanosecond, _)) if strict => {
            let read = functions::date_to_nanoseconds((**inner).clone(), to);
            return Ok(Transformed::yes(read));
        }
        _ => None,
    };
    Ok(match (better, expr) {
        (Some(better), Expr::Cast(cast)) => Transformed::yes(Expr::Cast(Cast::new_from_field(
            Box::new(better),
            Arc::clone(&cast.field),
        ))),
        (Some(better), Expr::TryCast(cast)) => Transformed::yes(Expr::TryCast(
            TryCast::new_from_field(Box::new(better), Arc::clone(&cast.field)),
        )),
        (_, expr) => Transformed::no(expr),
    })
}
