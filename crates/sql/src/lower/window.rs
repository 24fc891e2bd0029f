//! Lowering of windows.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_expr::expr::{
    AggregateFunction, AggregateFunctionParams, NullTreatment, WindowFunction as Call,
    WindowFunctionParams,
};
use datafusion_expr::expr_rewriter::unalias;
use datafusion_expr::{AggregateUDF, Expr as Sql, ExprSchemable, Window, WindowFunctionDefinition};
use engine::{
    Expr, FrameBounds, FrameRow, Function, Key, Kind, Literal, Rel, Result, Type, Var, WindowFold,
    WindowFunction,
};

use crate::functions::one_zero;
use crate::functions::windows::Framed;
use crate::functions::windows::layout::Inner;
use crate::lower::aggregate::{addable, aggregate_function, check};
use crate::lower::aggregate_call::chosen;
use crate::lower::call::failed;
use crate::lower::expr::{Scope, literal};
use crate::lower::frames::{self, number};
use crate::lower::lowering::{Lowered, Lowering, mapped, unsupported};

/// More rows than any relation has: numbers of rows are below.
const ROWS: i128 = 1 << 48;

/// A function, its argument, and the type of its result.
type OverWindow = (WindowFunction, Option<Var>, Type);

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
        let each_time = Lowering::each_time_within(window)?;
        let (input, calls) = match &each_time {
            Some((input, calls)) => (input, calls),
            None => (&window.input, &window.window_expr),
        };
        let (rel, below) = self.rel(input)?;
        let before = window.input.schema().fields().len();
        let mut vars = below[..before].to_vec();
        if window.schema.fields().len() != before + window.window_expr.len() {
            return unsupported("windows with other columns than their functions");
        }
        let mut inputs = Inputs {
            scope: Scope {
                schema: input.schema(),
                vars: &below,
            },
            exprs: Vec::new(),
            known: HashMap::new(),
        };
        let mut groups: Vec<Group> = Vec::new();
        let fields = window.schema.fields().iter().skip(before);
        for (expr, field) in calls.iter().zip(fields) {
            let Sql::WindowFunction(call) = unalias(expr.clone()) else {
                return unsupported(format!("the window {expr}"));
            };
            let partition = self.partition(&call.params, &mut inputs)?;
            let order = self.order(&call.params, &mut inputs)?;
            let over = (&*call, &order[..]);
            let (function, arg, ty) = self.function_over(over, field.data_type(), &mut inputs)?;
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
        let mut rel = mapped_below(rel, inputs.exprs);
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

    /// A call over rows in this order as a function, its argument, and the type of its result, which is `data` in the plan.
    fn function_over(
        &mut self,
        (call, order): (&Call, &[Key]),
        data: &DataType,
        inputs: &mut Inputs<'_>,
    ) -> Result<OverWindow> {
        let params = &call.params;
        if params.distinct {
            return unsupported("`distinct` of a window");
        }
        let ignore_nulls = params.null_treatment == Some(NullTreatment::IgnoreNulls);
        let args = &params.args[..];
        match &call.fun {
            WindowFunctionDefinition::AggregateUDF(_) if ignore_nulls => {
                unsupported("`ignore nulls` of an aggregate over a window")
            }
            WindowFunctionDefinition::AggregateUDF(function) => {
                let frame = frames::of_datafusion(&params.window_frame)?;
                let filter = params.filter.as_deref();
                self.aggregate_over((function, args, filter), frame, data, inputs)
            }
            WindowFunctionDefinition::WindowUDF(_) if params.filter.is_some() => {
                unsupported("`filter` of a window function")
            }
            WindowFunctionDefinition::WindowUDF(function) => {
                if let Some(framed) = function.inner().downcast_ref::<Framed>() {
                    return self.framed(framed, (args, order), data, inputs);
                }
                if let Some((function, ty)) = numbered(function.name(), args, data)? {
                    return Ok((function, None, ty));
                }
                let frame = || frames::of_datafusion(&params.window_frame);
                let over = (function.name(), args, ignore_nulls);
                self.value_of(over, &frame, data, inputs)
            }
        }
    }

    /// A function that picks the value of a row.
    fn value_of(
        &mut self,
        (name, args, ignore_nulls): (&str, &[Sql], bool),
        frame: &dyn Fn() -> Result<FrameBounds>,
        data: &DataType,
        inputs: &mut Inputs<'_>,
    ) -> Result<OverWindow> {
        let (row, value) = match (name, args) {
            ("lag" | "lead", [value, rest @ ..]) => {
                let way = (name == "lead", ignore_nulls);
                return self.shifted(way, value, rest, data, inputs);
            }
            ("first_value", [value]) => (FrameRow::First, value),
            ("last_value", [value]) => (FrameRow::Last, value),
            ("nth_value", [value, nth]) => (nth_row(nth)?, value),
            _ => return unsupported(format!("the function {name} over a window")),
        };
        let (arg, ty) = self.picked(value, false, data, inputs)?;
        let function = WindowFunction::Value {
            row,
            frame: frame()?,
            ignore_nulls,
        };
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
        (leads, ignore_nulls): (bool, bool),
        value: &Sql,
        rest: &[Sql],
        data: &DataType,
        inputs: &mut Inputs<'_>,
    ) -> Result<OverWindow> {
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
        let function = WindowFunction::Shift {
            rows,
            default,
            ignore_nulls,
        };
        Ok((function, Some(arg), ty))
    }

    /// An aggregate of the rows of a frame, or of those of them that pass a filter.
    fn aggregate_over(
        &mut self,
        (call, args, filter): (&Arc<AggregateUDF>, &[Sql], Option<&Sql>),
        frame: FrameBounds,
        data: &DataType,
        inputs: &mut Inputs<'_>,
    ) -> Result<OverWindow> {
        let name = call.name();
        let known = aggregate_function(name).filter(|known| *known != Function::CountDistinct);
        let Some(function) = known else {
            return self.called_over((call, args, filter), frame, data, inputs);
        };
        let over = WindowFunction::Aggregate(function, frame);
        let [arg] = args else {
            return self.called_over((call, args, filter), frame, data, inputs);
        };
        if function == Function::Count {
            let Some(ty) = Type::of(data, false) else {
                return unsupported(format!("values of type {data}"));
            };
            let ty = ty.within((0, i64::MAX.into()));
            let is_constant = matches!(arg, Sql::Literal(value, _) if !value.is_null());
            let arg = match (is_constant, filter) {
                (true, None) => return Ok((over, None, ty)),
                (true, Some(filter)) => {
                    let one = Expr::literal(Literal::Int(1), &DataType::Int64)?;
                    self.passing(one, filter, inputs)?
                }
                (false, filter) => self.argument(arg, filter, inputs)?,
            };
            // Without NULLs it counts rows.
            let arg = self.query.ty(arg).nullable.then_some(arg);
            return Ok((over, arg, ty));
        }
        if matches!(function, Function::Min | Function::Max) {
            let own = arg.get_type(inputs.scope.schema).map_err(failed)?;
            if own != *data {
                return unsupported("an extreme of another type than its argument");
            }
            let arg = self.argument(arg, filter, inputs)?;
            let ty = self.query.ty(arg).clone();
            let ty = Type { data: own, ..ty }.nullable(true);
            return Ok((over, Some(arg), ty));
        }
        let own = self.argument(arg, filter, inputs)?;
        let own_type = self.query.ty(own);
        let sums = matches!(function, Function::Sum | Function::Avg);
        if check(function, own_type).is_err() || sums && addable(own_type).is_err() {
            return self.called_over((call, args, filter), frame, data, inputs);
        }
        let arg = own;
        let Some(ty) = Type::of(data, true) else {
            return unsupported(format!("values of type {data}"));
        };
        Ok((over, Some(arg), ty))
    }

    /// An aggregate of the rows of a frame by a call for the values of each frame.
    fn called_over(
        &mut self,
        (call, args, filter): (&Arc<AggregateUDF>, &[Sql], Option<&Sql>),
        frame: FrameBounds,
        data: &DataType,
        inputs: &mut Inputs<'_>,
    ) -> Result<OverWindow> {
        let call = AggregateFunction {
            func: Arc::clone(call),
            params: AggregateFunctionParams {
                args: args.to_vec(),
                distinct: false,
                filter: filter.map(|filter| Box::new(filter.clone())),
                order_by: vec![],
                null_treatment: None,
            },
        };
        let (function, arg) = self.called(&call, inputs.scope, &mut inputs.exprs)?;
        let Some(ty) = Type::of(data, true) else {
            return unsupported(format!("values of type {data}"));
        };
        Ok((WindowFunction::Aggregate(function, frame), arg, ty))
    }

    /// The vector of an argument, which is NULL in rows that do not pass the filter.
    fn argument(
        &mut self,
        arg: &Sql,
        filter: Option<&Sql>,
        inputs: &mut Inputs<'_>,
    ) -> Result<Var> {
        match filter {
            None => self.read(arg, false, inputs),
            Some(filter) => {
                let value = self.expr(arg, inputs.scope)?;
                self.passing(value, filter, inputs)
            }
        }
    }

    /// The vector of a value, which is NULL in rows that do not pass the filter.
    fn passing(&mut self, value: Expr, filter: &Sql, inputs: &mut Inputs<'_>) -> Result<Var> {
        let filter = self.expr(filter, inputs.scope)?;
        if filter.ty.kind != Kind::Bool {
            return unsupported("a filter that is no boolean");
        }
        let value = chosen(filter, value)?;
        Ok(self.var(value, "filtered", &mut inputs.exprs))
    }

    /// A call over a frame that the plan finds itself.
    fn framed(
        &mut self,
        framed: &Framed,
        (args, order): (&[Sql], &[Key]),
        data: &DataType,
        inputs: &mut Inputs<'_>,
    ) -> Result<OverWindow> {
        let (inner, frame, layout) = framed.parts();
        let (Some(own), Some(offsets)) =
            (args.get(..layout.own), args.get(layout.first_offset()..))
        else {
            return unsupported("a frame without distances");
        };
        let filter = args.get(layout.own).filter(|_| layout.filtered);
        let key = match order {
            [key] => Some(self.query.ty(key.var)),
            _ => None,
        };
        let frame = frames::of_own(frame, offsets, key)?;
        let name = match inner {
            Inner::First => "first_value",
            Inner::Last => "last_value",
            Inner::Nth => "nth_value",
            Inner::Aggregate(function) => {
                return self.aggregate_over((function, own, filter), frame, data, inputs);
            }
        };
        if filter.is_some() {
            return unsupported("`filter` of a window function");
        }
        self.value_of((name, own, false), &|| Ok(frame), data, inputs)
    }
}

/// `rel` with the vectors that `exprs` compute: below the windows that it consists of, if they read nothing of what those
/// give. Windows right above each other may share a sort.
fn mapped_below(rel: Rel, exprs: Vec<(Var, Expr)>) -> Rel {
    let mut given = BTreeSet::new();
    let mut layer = &rel;
    while let Rel::Window {
        input, functions, ..
    } = layer
    {
        given.extend(functions.iter().map(|fold| fold.var));
        layer = input;
    }
    let mut reads = false;
    for (_, e) in &exprs {
        e.each_var(&mut |var| reads |= given.contains(&var));
    }
    if reads {
        mapped(rel, exprs)
    } else {
        below(rel, exprs)
    }
}

fn below(rel: Rel, exprs: Vec<(Var, Expr)>) -> Rel {
    match rel {
        Rel::Window {
            input,
            partition,
            order,
            functions,
        } => Rel::Window {
            input: Box::new(below(*input, exprs)),
            partition,
            order,
            functions,
        },
        rel => mapped(rel, exprs),
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
            Some(_) => {
                let message = "argument of ntile must be greater than zero";
                return frames::wrong("22014", message.into());
            }
            None => return unsupported("such an `ntile`"),
        },
        _ => return Ok(None),
    };
    let Some(ty) = Type::of(data, false) else {
        return unsupported(format!("values of type {data}"));
    };
    Ok(Some((function, ty.within((1, most.max(1))))))
}

fn nth_row(nth: &Sql) -> Result<FrameRow> {
    match number(nth).map(u64::try_from) {
        Some(Ok(nth @ 1..)) => Ok(FrameRow::Nth(nth)),
        Some(_) => frames::wrong(
            "22016",
            "argument of nth_value must be greater than zero".into(),
        ),
        None => unsupported("such an `nth_value`"),
    }
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
