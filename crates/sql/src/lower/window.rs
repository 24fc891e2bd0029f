//! Lowering of windows.

use std::collections::HashMap;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{NullTreatment, WindowFunction as Call, WindowFunctionParams};
use datafusion::logical_expr::expr_rewriter::unalias;
use datafusion::logical_expr::{
    Expr as Sql, ExprSchemable, Window, WindowFrame, WindowFrameBound, WindowFrameUnits,
    WindowFunctionDefinition,
};
use engine::{
    Expr, FrameBounds, FrameEdge, Function, Key, Kind, Literal, Rel, Result, Type, Var, WindowFold,
    WindowFunction,
};

use crate::functions::one_zero;
use crate::functions::windows::Framed;
use crate::functions::windows::frame::{Bound, Exclude, Units, has_offset};
use crate::functions::windows::layout::Inner;
use crate::lower::aggregate::addable;
use crate::lower::call::failed;
use crate::lower::expr::{Scope, literal};
use crate::lower::lowering::{Lowered, Lowering, mapped, unsupported};

/// More rows than any relation has: numbers of rows are below.
const ROWS: i128 = 1 << 48;

/// Functions over the same partitions in the same order.
struct Group {
    partition: Vec<Var>,
    order: Vec<Key>,
    functions: Vec<WindowFold>,
}

/// What the functions of a node read.
struct Inputs<'s> {
    scope: Scope<'s>,
    /// What has to be computed below them.
    exprs: Vec<(Var, Expr)>,
    /// The vectors of expressions, and whether texts of them are decoded.
    known: HashMap<(Sql, bool), Var>,
}

impl Lowering<'_> {
    pub(super) fn window(&mut self, window: &Window) -> Result<Lowered> {
        let (rel, mut vars) = self.rel(&window.input)?;
        let before = vars.len();
        if window.schema.fields().len() != before + window.window_expr.len() {
            return unsupported("windows with other columns than their functions");
        }
        let below = vars.clone();
        let mut inputs = Inputs {
            scope: Scope {
                schema: window.input.schema(),
                vars: &below,
            },
            exprs: Vec::new(),
            known: HashMap::new(),
        };
        let mut groups: Vec<Group> = Vec::new();
        let fields = window.schema.fields().iter().skip(before);
        for (expr, field) in window.window_expr.iter().zip(fields) {
            let Sql::WindowFunction(call) = unalias(expr.clone()) else {
                return unsupported(format!("the window {expr}"));
            };
            let partition = self.partition(&call.params, &mut inputs)?;
            let order = self.order(&call.params, &mut inputs)?;
            let (function, arg, ty) = self.function_over(&call, field.data_type(), &mut inputs)?;
            let var = self.query.add(field.name(), ty);
            let fold = WindowFold { var, function, arg };
            vars.push(var);
            let same = |group: &&mut Group| group.partition == partition && group.order == order;
            match groups.iter_mut().find(same) {
                Some(group) => group.functions.push(fold),
                None => groups.push(Group {
                    partition,
                    order,
                    functions: vec![fold],
                }),
            }
        }
        let mut rel = mapped(rel, inputs.exprs);
        for group in groups {
            rel = Rel::Window {
                input: Box::new(rel),
                partition: group.partition,
                order: group.order,
                functions: group.functions,
            };
        }
        Ok((rel, vars))
    }

    /// The vector of an expression; decoded if it is a coded text and `decoded` asks for that.
    fn read(&mut self, e: &Sql, decoded: bool, inputs: &mut Inputs<'_>) -> Result<Var> {
        let key = (e.clone(), decoded);
        if let Some(var) = inputs.known.get(&key) {
            return Ok(*var);
        }
        let mut lowered = self.expr(e, inputs.scope)?;
        if decoded {
            lowered = self.text(lowered)?;
        }
        let var = self.var(lowered, e.to_string(), &mut inputs.exprs);
        inputs.known.insert(key, var);
        Ok(var)
    }

    /// The vector of a key. Floats get one zero and one NaN, if they have not yet.
    fn key(&mut self, e: &Sql, inputs: &mut Inputs<'_>) -> Result<Var> {
        let ty = e.get_type(inputs.scope.schema).map_err(failed)?;
        if ty.is_floating() && !one_zero::is_level(e) {
            self.read(&one_zero::level(e.clone()), false, inputs)
        } else {
            self.read(e, false, inputs)
        }
    }

    fn partition(
        &mut self,
        params: &WindowFunctionParams,
        inputs: &mut Inputs<'_>,
    ) -> Result<Vec<Var>> {
        let keys = params.partition_by.iter();
        keys.map(|e| self.key(e, inputs)).collect()
    }

    fn order(
        &mut self,
        params: &WindowFunctionParams,
        inputs: &mut Inputs<'_>,
    ) -> Result<Vec<Key>> {
        let keys = params.order_by.iter().map(|sort| {
            Ok(Key {
                var: self.key(&sort.expr, inputs)?,
                descending: !sort.asc,
                nulls_first: sort.nulls_first,
            })
        });
        keys.collect()
    }

    /// A call as a function, its argument, and the type of its result, which is `data` in the plan.
    fn function_over(
        &mut self,
        call: &Call,
        data: &DataType,
        inputs: &mut Inputs<'_>,
    ) -> Result<(WindowFunction, Option<Var>, Type)> {
        let params = &call.params;
        if params.filter.is_some() || params.distinct {
            return unsupported("`filter` and `distinct` of a window");
        }
        if params.null_treatment == Some(NullTreatment::IgnoreNulls) {
            return unsupported("`ignore nulls` of a window");
        }
        let args = &params.args[..];
        match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) => {
                let frame = frame(&params.window_frame)?;
                self.aggregate_over(function.name(), args, frame, data, inputs)
            }
            WindowFunctionDefinition::WindowUDF(function) => {
                match function.inner().downcast_ref::<Framed>() {
                    Some(framed) => self.framed(framed, args, data, inputs),
                    None => {
                        let frame = || frame(&params.window_frame);
                        match numbered(function.name(), args, data)? {
                            Some((function, ty)) => Ok((function, None, ty)),
                            None => self.value_of(function.name(), args, &frame, data, inputs),
                        }
                    }
                }
            }
        }
    }

    /// A function that picks the value of a row.
    fn value_of(
        &mut self,
        name: &str,
        args: &[Sql],
        frame: &dyn Fn() -> Result<FrameBounds>,
        data: &DataType,
        inputs: &mut Inputs<'_>,
    ) -> Result<(WindowFunction, Option<Var>, Type)> {
        let (function, value) = match (name, args) {
            ("lag" | "lead", [value, rest @ ..]) => {
                return self.shifted(name == "lead", value, rest, data, inputs);
            }
            ("first_value", [value]) => (WindowFunction::FirstValue(frame()?), value),
            ("last_value", [value]) => (WindowFunction::LastValue(frame()?), value),
            ("nth_value", [value, nth]) => (nth_value(frame()?, nth)?, value),
            _ => return unsupported(format!("the function {name} over a window")),
        };
        let (arg, ty) = self.picked(value, false, data, inputs)?;
        Ok((function, Some(arg), ty))
    }

    /// An argument whose values are picked, and the type of what is.
    fn picked(
        &mut self,
        value: &Sql,
        decoded: bool,
        data: &DataType,
        inputs: &mut Inputs<'_>,
    ) -> Result<(Var, Type)> {
        let own = value.get_type(inputs.scope.schema).map_err(failed)?;
        if own != *data {
            return unsupported("a window that gives another type than its argument");
        }
        let arg = self.read(value, decoded, inputs)?;
        // A cast that changes no value leaves the vector what it was.
        let ty = Type {
            data: own,
            nullable: true,
            ..self.query.ty(arg).clone()
        };
        Ok((arg, ty))
    }

    /// `lag`, or `lead`.
    fn shifted(
        &mut self,
        leads: bool,
        value: &Sql,
        rest: &[Sql],
        data: &DataType,
        inputs: &mut Inputs<'_>,
    ) -> Result<(WindowFunction, Option<Var>, Type)> {
        let (by, default) = match rest {
            [] => (Some(1), None),
            [by] => (number(by), None),
            [by, Sql::Literal(default, _)] => (number(by), Some(default)),
            _ => return unsupported("such a default"),
        };
        let by = by.and_then(|by| if leads { by.checked_neg() } else { Some(by) });
        let Some(rows) = by else {
            return unsupported("such a distance");
        };
        let default = default.filter(|default| !default.is_null());
        let (arg, mut ty) = self.picked(value, default.is_some(), data, inputs)?;
        let default = match default {
            None => Literal::Null,
            Some(default) => {
                let default = default.cast_to(&ty.data).map_err(failed)?;
                of_kind(&literal(&default)?, &mut ty)?
            }
        };
        Ok((WindowFunction::Shift { rows, default }, Some(arg), ty))
    }

    fn aggregate_over(
        &mut self,
        name: &str,
        args: &[Sql],
        frame: FrameBounds,
        data: &DataType,
        inputs: &mut Inputs<'_>,
    ) -> Result<(WindowFunction, Option<Var>, Type)> {
        let function = match name {
            "count" => Function::Count,
            "sum" => Function::Sum,
            "min" => Function::Min,
            "max" => Function::Max,
            "avg" => Function::Avg,
            other => return unsupported(format!("the aggregate {other} over a window")),
        };
        let over = WindowFunction::Aggregate(function, frame);
        let [arg] = args else {
            return unsupported("an aggregate of several values");
        };
        if function == Function::Count {
            let Some(ty) = Type::of(data, false) else {
                return unsupported(format!("values of type {data}"));
            };
            let ty = ty.within((0, i64::MAX.into()));
            if matches!(arg, Sql::Literal(value, _) if !value.is_null()) {
                return Ok((over, None, ty));
            }
            let arg = self.read(arg, false, inputs)?;
            // Without NULLs it counts rows.
            let arg = self.query.ty(arg).nullable.then_some(arg);
            return Ok((over, arg, ty));
        }
        if matches!(function, Function::Min | Function::Max) {
            let (arg, ty) = self.picked(arg, false, data, inputs)?;
            return Ok((over, Some(arg), ty));
        }
        let arg = self.read(arg, false, inputs)?;
        addable(self.query.ty(arg))?;
        let Some(ty) = Type::of(data, true) else {
            return unsupported(format!("values of type {data}"));
        };
        Ok((over, Some(arg), ty))
    }

    /// A call over a frame that the plan finds itself.
    fn framed(
        &mut self,
        framed: &Framed,
        args: &[Sql],
        data: &DataType,
        inputs: &mut Inputs<'_>,
    ) -> Result<(WindowFunction, Option<Var>, Type)> {
        let (inner, frame, layout) = framed.parts();
        if layout.filtered || frame.exclude != Exclude::None {
            return unsupported("a frame with exceptions");
        }
        let (Some(own), Some(offsets)) =
            (args.get(..layout.own), args.get(layout.first_offset()..))
        else {
            return unsupported("a frame without distances");
        };
        let mut offsets = offsets.iter();
        let mut edge = |bound: Bound| -> Result<FrameEdge> {
            let distance = if has_offset(bound) {
                let distance = offsets.next().and_then(number);
                match distance.map(u64::try_from) {
                    Some(Ok(distance)) if frame.units == Units::Rows => distance,
                    _ => return unsupported("frames of such distances"),
                }
            } else {
                0
            };
            Ok(match bound {
                Bound::First => FrameEdge::First,
                Bound::Preceding => FrameEdge::Preceding(distance),
                Bound::Current => FrameEdge::Current,
                Bound::Following => FrameEdge::Following(distance),
                Bound::Last => FrameEdge::Last,
            })
        };
        let frame = FrameBounds {
            peers: frame.units != Units::Rows,
            start: edge(frame.start)?,
            end: edge(frame.end)?,
        };
        match inner {
            Inner::First => self.value_of("first_value", own, &|| Ok(frame), data, inputs),
            Inner::Last => self.value_of("last_value", own, &|| Ok(frame), data, inputs),
            Inner::Nth => self.value_of("nth_value", own, &|| Ok(frame), data, inputs),
            Inner::Aggregate(function) => {
                self.aggregate_over(function.name(), own, frame, data, inputs)
            }
        }
    }
}

/// A function of the place of a row, and its type.
fn numbered(name: &str, args: &[Sql], data: &DataType) -> Result<Option<(WindowFunction, Type)>> {
    let (function, most) = match (name, args) {
        ("row_number", []) => (WindowFunction::RowNumber, ROWS),
        ("rank", []) => (WindowFunction::Rank, ROWS),
        ("dense_rank", []) => (WindowFunction::DenseRank, ROWS),
        ("percent_rank", []) => (WindowFunction::PercentRank, 0),
        ("cume_dist", []) => (WindowFunction::CumeDist, 0),
        ("ntile", [buckets]) => match number(buckets).map(u64::try_from) {
            Some(Ok(buckets @ 1..)) => (WindowFunction::Ntile(buckets), buckets.into()),
            _ => return unsupported("such an `ntile`"),
        },
        _ => return Ok(None),
    };
    let Some(ty) = Type::of(data, false) else {
        return unsupported(format!("values of type {data}"));
    };
    Ok(Some((function, ty.within((1, most.max(1))))))
}

fn nth_value(frame: FrameBounds, nth: &Sql) -> Result<WindowFunction> {
    match number(nth).map(u64::try_from) {
        Some(Ok(nth @ 1..)) => Ok(WindowFunction::NthValue(frame, nth)),
        _ => unsupported("such an `nth_value`"),
    }
}

/// A whole number that stands in the statement.
fn number(e: &Sql) -> Option<i64> {
    let Sql::Literal(value, _) = e else {
        return None;
    };
    let whole = value
        .data_type()
        .is_integer()
        .then(|| value.cast_to(&DataType::Int64));
    match whole? {
        Ok(ScalarValue::Int64(number)) => number,
        _ => None,
    }
}

/// A frame of DataFusion's.
fn frame(frame: &WindowFrame) -> Result<FrameBounds> {
    let peers = frame.units != WindowFrameUnits::Rows;
    let distance = |value: &ScalarValue| {
        let number = number(&Sql::Literal(value.clone(), None)).map(u64::try_from);
        match number {
            Some(Ok(distance)) if !peers => Ok(distance),
            _ => unsupported("frames of such distances"),
        }
    };
    let edge = |bound: &WindowFrameBound| -> Result<FrameEdge> {
        Ok(match bound {
            WindowFrameBound::Preceding(value) if value.is_null() => FrameEdge::First,
            WindowFrameBound::Preceding(value) => FrameEdge::Preceding(distance(value)?),
            WindowFrameBound::CurrentRow => FrameEdge::Current,
            WindowFrameBound::Following(value) if value.is_null() => FrameEdge::Last,
            WindowFrameBound::Following(value) => FrameEdge::Following(distance(value)?),
        })
    };
    Ok(FrameBounds {
        peers,
        start: edge(&frame.start_bound)?,
        end: edge(&frame.end_bound)?,
    })
}

/// A constant as values of type `ty` are represented, whose bounds then include it.
fn of_kind(e: &Expr, ty: &mut Type) -> Result<Literal> {
    let whole = match (e.constant(), ty.kind) {
        (Some(Literal::Int(v)), Kind::Int | Kind::Wide) => Some(i128::from(*v)),
        (Some(Literal::Wide(v)), Kind::Int | Kind::Wide) => Some(*v),
        _ => None,
    };
    if let Some(v) = whole {
        ty.bounds = (ty.bounds.0.min(v), ty.bounds.1.max(v));
        return match (ty.kind, i64::try_from(v)) {
            (Kind::Int, Ok(v)) => Ok(Literal::Int(v)),
            (Kind::Wide, _) => Ok(Literal::Wide(v)),
            _ => unsupported("such a default"),
        };
    }
    match (e.constant(), ty.kind) {
        (Some(own @ Literal::Float(_)), Kind::Float)
        | (Some(own @ Literal::Bool(_)), Kind::Bool)
        | (Some(own @ Literal::Text(_)), Kind::Text) => Ok(own.clone()),
        _ => unsupported("such a default"),
    }
}
