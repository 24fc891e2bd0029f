//! Windows whose frames DataFusion does not have: calls over them become [functions](Framed) that find the frames themselves.

use std::sync::Arc;

use crate::error::Error;
use crate::functions::windows::frame::{Bound, Exclude, Frame, Units, has_offset};
use crate::functions::windows::layout::{Inner, Layout};
use crate::functions::windows::{Framed, MARK};
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue, internal_err, plan_err};
use datafusion_expr::expr::{NullTreatment, Sort, WindowFunction, WindowFunctionParams};
use datafusion_expr::planner::{PlannerResult, RawWindowExpr};
use datafusion_expr::{
    Cast, Expr, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition,
    WindowUDF, lit, when,
};

/// Functions that depend on no frame.
const WITHOUT: [&str; 8] = [
    "cume_dist",
    "dense_rank",
    "lag",
    "lead",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
];

/// Aggregates and functions that DataFusion has over frames that move. It takes values that leave a frame away from the state of
/// others, which is inexact for floats (1e20 and 1 without 1e20 are 0), or does not have them at all.
const EXACT: [&str; 6] = [
    "count",
    "first_value",
    "last_value",
    "max",
    "min",
    "nth_value",
];

/// Aggregates whose value grows with its frame. DataFusion makes one for each row and does not ask whether there is memory
/// for all of them, so they are found here over any frame.
const GROWING: [&str; 2] = ["array_agg", "string_agg"];

fn grows(expr: &RawWindowExpr) -> bool {
    GROWING.contains(&expr.func_def.name())
}

/// The type of `row_number`, `rank` and their kin in PostgreSQL; in DataFusion it is unsigned.
fn number_of(name: &str) -> Option<DataType> {
    match name {
        "dense_rank" | "rank" | "row_number" => Some(DataType::Int64),
        "ntile" => Some(DataType::Int32),
        _ => None,
    }
}

/// The call over a frame that DataFusion does not have, and one whose value PostgreSQL gives another type.
///
/// # Errors
/// For frames that no window has, and for clauses that PostgreSQL does not have over a window.
pub(crate) fn planned(expr: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
    let expr = match framed(expr)? {
        PlannerResult::Original(expr) => expr,
        planned => return Ok(planned),
    };
    let Some(to) = number_of(expr.func_def.name()) else {
        return Ok(PlannerResult::Original(expr));
    };
    let number = Expr::from(WindowFunction {
        fun: expr.func_def,
        params: WindowFunctionParams {
            args: expr.args,
            partition_by: expr.partition_by,
            order_by: expr.order_by,
            window_frame: expr.window_frame,
            filter: expr.filter,
            null_treatment: expr.null_treatment,
            distinct: expr.distinct,
        },
    });
    let number = Expr::Cast(Cast::new(Box::new(number), to));
    Ok(PlannerResult::Planned(number))
}

fn framed(mut expr: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
    check_nth(&expr)?;
    let found = match taken(&mut expr.order_by)? {
        Some(found) => found,
        None => match moving(&expr) {
            Some(found) => found,
            None => return shifted(expr),
        },
    };
    let (frame, offsets) = found;
    frame.check(expr.order_by.len())?;
    let name = expr.func_def.name().to_string();
    if WITHOUT.contains(&name.as_str()) {
        expr.window_frame = WindowFrame::new((!expr.order_by.is_empty()).then_some(false));
        return shifted(expr);
    }
    if expr.distinct {
        return Err(
            Error::coded("0A000", "DISTINCT is not implemented for window functions").into(),
        );
    }
    if expr.null_treatment == Some(NullTreatment::IgnoreNulls) {
        only_there(&mut expr)?;
    }
    let inner = match (&name[..], &expr.func_def) {
        ("first_value", _) => Inner::First,
        ("last_value", _) => Inner::Last,
        ("nth_value", _) => Inner::Nth,
        (_, WindowFunctionDefinition::AggregateUDF(function)) => {
            Inner::Aggregate(Arc::clone(function))
        }
        _ => return plan_err!("not supported: {name} with this frame"),
    };
    let mut args: Vec<Expr> = expr.args.into_iter().map(without_star).collect();
    if args.is_empty() && name == "count" {
        args.push(lit(1i64));
    }
    let options = |key: &Sort| SortOptions {
        descending: !key.asc,
        nulls_first: key.nulls_first,
    };
    let layout = Layout {
        own: args.len(),
        filtered: expr.filter.is_some(),
        keys: expr.order_by.iter().map(options).collect(),
    };
    args.extend(expr.filter.map(|filter| *filter));
    args.extend(expr.order_by.iter().map(|key| key.expr.clone()));
    args.extend(offsets);
    let framed = WindowUDF::new_from_impl(Framed::new(&name, inner, frame, layout));
    Ok(PlannerResult::Planned(Expr::from(WindowFunction {
        fun: WindowFunctionDefinition::WindowUDF(Arc::new(framed)),
        params: WindowFunctionParams {
            args,
            partition_by: expr.partition_by,
            order_by: expr.order_by,
            // It sees the whole partition, and finds frames itself.
            window_frame: WindowFrame::new_bounds(
                WindowFrameUnits::Rows,
                WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
                WindowFrameBound::Following(ScalarValue::UInt64(None)),
            ),
            filter: None,
            null_treatment: None,
            distinct: false,
        },
    })))
}

/// `lag` and `lead` with a default that is computed, or may have another type than the value: it stands for what is NULL because
/// there is no such row.
fn shifted(mut expr: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
    let is_one = matches!(expr.func_def.name(), "lag" | "lead");
    if !is_one || expr.args.len() != 3 || expr.args.last().is_none_or(fits_any) {
        return Ok(PlannerResult::Original(expr));
    }
    let Some(default) = expr.args.pop() else {
        return internal_err!("a window function has lost its arguments");
    };
    let ignores = expr.null_treatment == Some(NullTreatment::IgnoreNulls);
    let call = |args: Vec<Expr>| {
        Expr::from(WindowFunction {
            fun: expr.func_def.clone(),
            params: WindowFunctionParams {
                args,
                partition_by: expr.partition_by.clone(),
                order_by: expr.order_by.clone(),
                window_frame: expr.window_frame.clone(),
                filter: expr.filter.clone(),
                null_treatment: expr.null_treatment,
                distinct: expr.distinct,
            },
        })
    };
    let own = call(expr.args.clone());
    let there = if ignores {
        own.clone()
    } else {
        // A value that no row has as NULL.
        let mut args = expr.args.clone();
        if let Some(value) = args.first_mut() {
            *value = lit(true);
        }
        call(args)
    };
    let found = when(there.is_null(), default).otherwise(own)?;
    Ok(PlannerResult::Planned(found))
}

/// Whether a default is a constant that has the type of any value that it can stand for.
fn fits_any(default: &Expr) -> bool {
    match default {
        Expr::Literal(value, _) => {
            let own = value.data_type();
            !own.is_floating() && !own.is_decimal()
        }
        _ => false,
    }
}

/// `ignore nulls`, as a filter where that says the same.
fn only_there(expr: &mut RawWindowExpr) -> Result<()> {
    let Some(value) = expr.args.first().filter(|_| grows(expr)) else {
        return plan_err!("not supported: ignore nulls with this frame");
    };
    let there = value.clone().is_not_null();
    let filter = match expr.filter.take() {
        Some(filter) => filter.and(there),
        None => there,
    };
    expr.filter = Some(Box::new(filter));
    Ok(())
}

/// That the constant of an `nth_value` is the number of a row.
fn check_nth(expr: &RawWindowExpr) -> Result<()> {
    if expr.func_def.name() == "nth_value"
        && let Some(Expr::Literal(nth, _)) = expr.args.get(1)
        && let Ok(ScalarValue::Int64(Some(..=0))) = nth.cast_to(&DataType::Int64)
    {
        let message = "argument of nth_value must be greater than zero";
        return Err(Error::coded("22016", message).into());
    }
    Ok(())
}

/// `*` counts rows, as a constant does.
#[expect(deprecated, reason = "the planner still makes it")]
fn without_star(arg: Expr) -> Expr {
    match arg {
        Expr::Wildcard { .. } => lit(1i64),
        arg => arg,
    }
}

/// The frame that is the last sort key, which is taken away, and its distances.
fn taken(keys: &mut Vec<Sort>) -> Result<Option<(Frame, Vec<Expr>)>> {
    let is_mark =
        |key: &mut Sort| matches!(&key.expr, Expr::ScalarFunction(call) if call.name() == MARK);
    let Some(Sort {
        expr: Expr::ScalarFunction(mut call),
        ..
    }) = keys.pop_if(is_mark)
    else {
        return Ok(None);
    };
    let text = match call.args.first() {
        Some(Expr::Literal(text, _)) => text.try_as_str().flatten(),
        _ => None,
    };
    let Some(frame) = text.and_then(Frame::of_text) else {
        return internal_err!("a frame of a window says nothing");
    };
    let mut offsets = call.args.split_off(1);
    for offset in &mut offsets {
        if offset.any_column_refs() {
            let units = frame.units.word().to_uppercase();
            let message = format!("argument of {units} must not contain variables");
            return Err(Error::coded("42P10", message).into());
        }
        if frame.units != Units::Range && matches!(offset, Expr::Literal(..)) {
            let own = std::mem::replace(offset, lit(0i64));
            *offset = Expr::Cast(Cast::new(Box::new(own), DataType::Int64));
        }
    }
    let wanted = [frame.start, frame.end]
        .into_iter()
        .filter(|bound| has_offset(*bound));
    if wanted.count() != offsets.len() {
        return internal_err!("a frame of a window lacks a distance");
    }
    Ok(Some((frame, offsets)))
}

/// A frame of rows that leaves rows behind, of a function that is to forget them exactly, and any frame of one whose value
/// [grows](GROWING).
fn moving(expr: &RawWindowExpr) -> Option<(Frame, Vec<Expr>)> {
    let WindowFrame {
        units,
        start_bound,
        end_bound,
        ..
    } = &expr.window_frame;
    let units = match units {
        WindowFrameUnits::Rows => Units::Rows,
        // Its bounds have no distances.
        WindowFrameUnits::Range => Units::Range,
        WindowFrameUnits::Groups => return None,
    };
    let aggregate = matches!(expr.func_def, WindowFunctionDefinition::AggregateUDF(_));
    let grows = grows(expr);
    let plain = grows || !expr.distinct && expr.null_treatment.is_none();
    if !plain || !aggregate || EXACT.contains(&expr.func_def.name()) {
        return None;
    }
    let (start, first) = bound(start_bound, true)?;
    let (end, last) = bound(end_bound, false)?;
    let kept = start == Bound::First && !grows;
    if kept || units == Units::Range && (has_offset(start) || has_offset(end)) {
        return None;
    }
    let frame = Frame {
        units,
        start,
        end,
        exclude: Exclude::None,
    };
    Some((frame, [first, last].into_iter().flatten().collect()))
}

fn bound(of: &WindowFrameBound, start: bool) -> Option<(Bound, Option<Expr>)> {
    let number = |value: &ScalarValue| match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(Some(number))) => Some(Some(lit(number))),
        _ => None,
    };
    Some(match of {
        WindowFrameBound::CurrentRow => (Bound::Current, None),
        WindowFrameBound::Preceding(value) if value.is_null() && start => (Bound::First, None),
        WindowFrameBound::Following(value) if value.is_null() && !start => (Bound::Last, None),
        WindowFrameBound::Preceding(value) => (Bound::Preceding, number(value)?),
        WindowFrameBound::Following(value) => (Bound::Following, number(value)?),
    })
}
