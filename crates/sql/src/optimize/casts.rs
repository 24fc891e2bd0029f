//! PostgreSQL's meaning of casts: a cast to an integer rounds, half away from zero for decimals and to the even
//! neighbour for doubles; texts and dates become timestamps of any year, and
//! texts bytes as PostgreSQL writes them; timestamps lose digits by rounding; timestamps, times, intervals and doubles become the texts that PostgreSQL writes.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::expr::TryCast;
use datafusion_expr::{Cast, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion_optimizer::AnalyzerRule;

use crate::functions::intervals::time_of_day;
use crate::functions::temporal::local::Local;
use crate::functions::temporal::read::reads;
use crate::functions::temporal::{instants, moments};
use crate::functions::{bytes, casts, convert, decimals, rounding};
use crate::optimize::expressions::{is_text, rewritten};
use crate::optimize::losses;

/// The analyzer rule that gives casts PostgreSQL's meaning. It must come after type coercion, which adds casts.
#[derive(Debug)]
pub(crate) struct Casts;

impl AnalyzerRule for Casts {
    fn name(&self) -> &str {
        "casts"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let local = Local::of(config);
        rewritten(plan, |expr, schema| {
            let sum = sum_of_moments(&expr, schema, local);
            if let Some(found) = sum.or_else(|| cast_by_name(&expr, schema)) {
                return Ok(Transformed::yes(found));
            }
            let (expr, changed) = decimals::bare::as_cast(expr, schema)?;
            if let Some(kept) = losses::kept(&expr, schema)? {
                return Ok(Transformed::yes(kept));
            }
            let found = convert(expr, schema, local)?;
            Ok(if changed {
                Transformed::yes(found.data)
            } else {
                found
            })
        })
    }
}

/// Whether PostgreSQL writes values of this type in another way than a cast does.
fn is_written_otherwise(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Float32
            | DataType::Float64
            | DataType::Date32
            | DataType::Timestamp(..)
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Interval(_)
    )
}

/// The cast of a text or a double to a number that floats: one that is out of its range is refused.
fn float(value: &Expr, from: &DataType, to: &DataType, strict: bool) -> Option<Expr> {
    match (from, to) {
        (DataType::Null, _) => None,
        (text, DataType::Float32 | DataType::Float64) if is_text(text) => {
            Some(convert::read_as(value.clone(), to, strict))
        }
        (DataType::Float64, DataType::Float32) if strict => Some(casts::real(value.clone())),
        _ => None,
    }
}

/// A decimal rounded to a whole number.
fn rounded(value: &Expr, whole: DataType, strict: bool) -> Expr {
    let value = Box::new(value.clone());
    if strict {
        Expr::Cast(Cast::new(value, whole))
    } else {
        Expr::TryCast(TryCast::new(value, whole))
    }
}

/// A cast that DataFusion's functions for casts make of moments: the optimiser makes casts of them, which come too late for this
/// rule.
fn cast_by_name(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::ScalarFunction(function) = expr else {
        return None;
    };
    let strict = match function.func.name() {
        "arrow_cast" | "cast_to_type" => true,
        "arrow_try_cast" | "try_cast_to_type" => false,
        _ => return None,
    };
    let [value, _] = &function.args[..] else {
        return None;
    };
    let (from, to) = (value.get_type(schema).ok()?, expr.get_type(schema).ok()?);
    instants::recounts(&from, &to).then(|| convert::read_as(value.clone(), &to, strict))
}

/// The sum or difference of moments and intervals, by the clocks of the session; none of others.
fn sum_of_moments(expr: &Expr, schema: &DFSchema, local: Local) -> Option<Expr> {
    let Expr::BinaryExpr(binary) = expr else {
        return None;
    };
    if !matches!(binary.op, Operator::Plus | Operator::Minus) {
        return None;
    }
    if !local.is_utc()
        && let Some(later) = instants::later_than(binary, schema)
    {
        return Some(later);
    }
    let (left, right) = (
        binary.left.get_type(schema).ok()?,
        binary.right.get_type(schema).ok()?,
    );
    moments::guarded(binary, &left, &right)
}

fn convert(expr: Expr, schema: &DFSchema, local: Local) -> Result<Transformed<Expr>> {
    let (inner, to, strict) = match &expr {
        Expr::Cast(cast) => (&cast.expr, cast.field.data_type(), true),
        Expr::TryCast(cast) => (&cast.expr, cast.field.data_type(), false),
        _ => return Ok(Transformed::no(expr)),
    };
    let Ok(from) = inner.get_type(schema) else {
        return Ok(Transformed::no(expr));
    };
    use DataType::{
        Binary, BinaryView, Date32, Decimal128, Float16, Float32, Float64, LargeBinary, Timestamp,
    };
    if let Some(special) = convert::conversion((**inner).clone(), &from, to, strict)? {
        return Ok(Transformed::yes(special));
    }
    if let Some(own) = decimals::casts::cast_of(inner, &from, to, strict) {
        return Ok(Transformed::yes(own));
    }
    if is_text(to) && is_written_otherwise(&from) {
        return Ok(Transformed::yes(convert::written((**inner).clone(), to)));
    }
    if let Some(float) = float(inner, &from, to, strict) {
        return Ok(Transformed::yes(float));
    }
    let digits = rounding::digits;
    let crosses = !local.is_utc() && instants::crosses(&from, to);
    let better: Option<Expr> = match (&from, to) {
        (Float16 | Float32 | Float64, to) if to.is_integer() => {
            Some(casts::round_half_even((**inner).clone()))
        }
        (DataType::Interval(_), DataType::Time32(_) | DataType::Time64(_)) => Some(Expr::Cast(
            Cast::new(Box::new(time_of_day((**inner).clone())), to.clone()),
        )),
        (from @ Decimal128(..), to) if to.is_integer() => {
            convert::whole(from).map(|whole| rounded(inner, whole, strict))
        }
        (text, Timestamp(unit @ (TimeUnit::Second | TimeUnit::Millisecond), zone))
            if is_text(text) && *text != DataType::Null =>
        {
            let micros = Timestamp(TimeUnit::Microsecond, zone.clone());
            let read = convert::read_as((**inner).clone(), &micros, strict);
            Some(rounding::rounded(read, digits(*unit)))
        }
        (Timestamp(finer, _), Timestamp(unit, _)) if digits(*finer) > digits(*unit) => {
            Some(rounding::rounded((**inner).clone(), digits(*unit)))
        }
        (text, to) if is_text(text) && *text != DataType::Null && reads(to) => {
            let read = convert::read_as((**inner).clone(), to, strict);
            return Ok(Transformed::yes(read));
        }
        (text, Binary | LargeBinary | BinaryView) if is_text(text) && strict => {
            Some(bytes::read_bytes((**inner).clone()))
        }
        (Date32, to @ Timestamp(TimeUnit::Nanosecond, _)) if strict && !crosses => {
            let read = casts::date_to_nanoseconds((**inner).clone(), to);
            return Ok(Transformed::yes(read));
        }
        _ => None,
    };
    // What is infinite is not counted in another unit.
    let counted = better.is_some() && matches!(to, Timestamp(_, _));
    if crosses || counted || instants::recounts(&from, to) {
        let value = better.unwrap_or_else(|| (**inner).clone());
        return Ok(Transformed::yes(convert::read_as(value, to, strict)));
    }
    Ok(match better {
        Some(better) => Transformed::yes(of_another(expr, better)),
        None => Transformed::no(expr),
    })
}

/// The cast of another value.
fn of_another(cast: Expr, value: Expr) -> Expr {
    match cast {
        Expr::Cast(cast) => Expr::Cast(Cast::new_from_field(
            Box::new(value),
            Arc::clone(&cast.field),
        )),
        Expr::TryCast(cast) => Expr::TryCast(TryCast::new_from_field(
            Box::new(value),
            Arc::clone(&cast.field),
        )),
        other => other,
    }
}
