//! Lowering of aggregates.

use arrow::datatypes::DataType;
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::{Aggregate, Expr as Sql};
use engine::{
    Error, Expr, Fold, Function, Kind, Literal, Node, PairFunction, Rel, Result, Type, Var,
};

use crate::lower::aggregate_call::{chosen, is_beyond_accumulators};
use crate::lower::expr::Scope;
use crate::lower::first_rows::Computed;
use crate::lower::lowering::{Lowered, Lowering, mapped, once, unsupported};
use crate::optimize::filtered::is_guarded;
use crate::optimize::keys;

impl Lowering<'_> {
    pub(super) fn aggregate(&mut self, aggregate: &Aggregate) -> Result<Lowered> {
        if let Some(known) = self.extremes(aggregate)? {
            return Ok(known);
        }
        if let Some(over) = self.each_time_below(aggregate)? {
            return self.aggregate(&over);
        }
        let (rel, vars) = self.rel(&aggregate.input)?;
        let scope = Scope {
            schema: aggregate.input.schema(),
            vars: &vars,
        };
        if let [Sql::GroupingSet(sets)] = &aggregate.group_expr[..] {
            return self.grouping_sets(aggregate, sets, rel, scope);
        }
        let fields = aggregate.schema.fields();
        // A key has one column, however often it is named.
        let keys = keys::once(&aggregate.group_expr);
        if fields.len() != keys.len() + aggregate.aggr_expr.len() {
            return unsupported("groups with other columns than their keys and functions");
        }
        let mut computed = Computed::default();
        let mut out = Vec::with_capacity(fields.len());
        for (e, field) in keys.iter().zip(fields) {
            if matches!(e, Sql::GroupingSet(_)) {
                return unsupported("grouping sets among other keys");
            }
            let e = self.expr(e, scope)?;
            out.push(self.var(e, field.name(), &mut computed.exprs));
        }
        let keys = once(&out);
        self.narrow(&keys);
        let folds = self.folds(aggregate, scope, &keys, &mut computed)?;
        out.extend(folds.iter().map(|fold| fold.var));
        let rel = Rel::Fold {
            input: Box::new(mapped(rel, computed.exprs)),
            keys,
            folds,
        };
        Ok((rel, out))
    }

    /// The functions of `aggregate`, with a new vector for the result of each. `computed` gets how to compute arguments
    /// that are no vectors yet. `keys` are those of the groups.
    pub(super) fn folds(
        &mut self,
        aggregate: &Aggregate,
        scope: Scope<'_>,
        keys: &[Var],
        computed: &mut Computed,
    ) -> Result<Vec<Fold>> {
        let calls = &aggregate.aggr_expr;
        let fields = aggregate.schema.fields();
        let fields = fields.iter().skip(fields.len() - calls.len());
        let mut folds = Vec::with_capacity(calls.len());
        for (e, field) in calls.iter().zip(fields) {
            let Some(ty) = Type::of(field.data_type(), true) else {
                return unsupported(format!("values of type {}", field.data_type()));
            };
            let (function, arg) = match self.first(e, scope, keys, computed)? {
                Some(found) => found,
                None => self.fold(e, scope, &mut computed.exprs, &ty)?,
            };
            let counts = matches!(
                function,
                Function::Count
                    | Function::CountDistinct
                    | Function::OfPairs {
                        function: PairFunction::Count,
                        ..
                    }
            );
            let ty = ty.nullable(!counts);
            let ty = match (function, arg) {
                (Function::Min | Function::Max, Some(arg)) => {
                    self.query.ty(arg).clone().nullable(true)
                }
                (Function::Sum | Function::SumDistinct, Some(arg)) => {
                    within_sums(ty, self.query.ty(arg).bounds)
                }
                // A group without keys may have no rows, and any group none that count.
                (Function::First(order), Some(arg)) => {
                    let own = self.query.ty(arg).clone();
                    let empty = keys.is_empty() || order.only().is_some();
                    let nullable = own.nullable || empty;
                    own.nullable(nullable)
                }
                _ if counts => ty.within((0, i64::MAX.into())),
                _ => ty,
            };
            let var = self.query.add(field.name(), ty);
            folds.push(Fold { var, function, arg });
        }
        Ok(folds)
    }

    /// Finds out between what values keys lie of which that is not known: groups of keys that are near each other are
    /// found without hashing.
    pub(super) fn narrow(&mut self, keys: &[Var]) {
        for key in keys {
            let (kind, bounds) = (self.query.ty(*key).kind, self.query.ty(*key).bounds);
            let Some((files, column)) = self.external.get(key) else {
                continue;
            };
            if kind == Kind::Int
                && bounds.1 - bounds.0 > i128::from(u16::MAX)
                && let Some(bounds) = files.looked_at(*column)
            {
                self.query.narrow(*key, bounds);
            }
        }
    }

    /// An aggregate with a result of type `result`: an accumulator of the engine, or a call of DataFusion's.
    fn fold(
        &mut self,
        e: &Sql,
        scope: Scope<'_>,
        exprs: &mut Vec<(Var, Expr)>,
        result: &Type,
    ) -> Result<(Function, Option<Var>)> {
        let call = match e {
            Sql::Alias(alias) => return self.fold(&alias.expr, scope, exprs, result),
            Sql::AggregateFunction(call) => call,
            other => return unsupported(format!("the aggregate {other}")),
        };
        if let Some(function) = pair_function(call.func.name())
            && let Some(found) = self.of_pairs(e, call, function, scope, exprs)?
        {
            return Ok(found);
        }
        let (own, otherwise) = listed(call.func.name());
        if let Some(own) = own {
            match self.accumulated_natively(e, call, own, scope, exprs) {
                Ok((function, _)) if is_beyond_accumulators(function, result) => {}
                Err(Error::Unsupported(_)) => {}
                done => return done,
            }
        }
        let has_plain_values = !call.params.distinct && call.params.null_treatment.is_none();
        match otherwise {
            Otherwise::Folded if has_plain_values => self.folded(call, scope, exprs, &result.data),
            Otherwise::Called | Otherwise::Folded => self.called(call, scope, exprs),
        }
    }

    /// A function of pairs of numbers, and its argument; `None` if the engine has no accumulator for it in this form.
    fn of_pairs(
        &mut self,
        e: &Sql,
        call: &AggregateFunction,
        function: PairFunction,
        scope: Scope<'_>,
        exprs: &mut Vec<(Var, Expr)>,
    ) -> Result<Option<(Function, Option<Var>)>> {
        let params = &call.params;
        let [y, x] = &params.args[..] else {
            return Ok(None);
        };
        if params.distinct || params.null_treatment.is_some() {
            return Ok(None);
        }
        let mut float = |e: &Sql| match self.expr(e, scope)? {
            e if e.ty.kind == Kind::Float => Ok(e),
            e => engine::cast(e, &DataType::Float64),
        };
        let (Ok(mut y), Ok(x)) = (float(y), float(x)) else {
            return Ok(None);
        };
        if let Some(filter) = params.filter.as_deref() {
            y = chosen(self.expr(filter, scope)?, y)?;
        }
        let x = self.var(x, format!("x of {e}"), exprs);
        let y = self.var(y, format!("y of {e}"), exprs);
        Ok(Some((Function::OfPairs { function, x }, Some(y))))
    }

    /// The engine's function for an aggregate, and its argument.
    fn accumulated_natively(
        &mut self,
        e: &Sql,
        call: &AggregateFunction,
        own: Function,
        scope: Scope<'_>,
        exprs: &mut Vec<(Var, Expr)>,
    ) -> Result<(Function, Option<Var>)> {
        let params = &call.params;
        if params.null_treatment.is_some() {
            return unsupported("`ignore nulls` in an aggregate");
        }
        let function = if params.distinct {
            of_distinct(own)?
        } else {
            own
        };
        let [arg] = &params.args[..] else {
            return unsupported("an aggregate of several values");
        };
        let constant = matches!(arg, Sql::Literal(value, _) if !value.is_null());
        let arg = match (function, constant, params.filter.as_deref()) {
            (Function::Count, true, None) => return Ok((function, None)),
            (Function::Count, true, Some(filter)) => {
                let one = Expr::literal(Literal::Int(1), &DataType::Int64)?;
                chosen(self.expr(filter, scope)?, one)?
            }
            (_, _, Some(filter)) if !is_guarded(arg, filter) => {
                let value = self.expr(arg, scope)?;
                chosen(self.expr(filter, scope)?, value)?
            }
            (Function::Avg, ..) => whole(self.expr(arg, scope)?),
            _ => self.expr(arg, scope)?,
        };
        check(function, &arg.ty)?;
        let arg = match (function, arg.ty.nullable) {
            // Without NULLs it counts rows.
            (Function::Count, false) => return Ok((function, None)),
            _ => arg,
        };
        Ok((function, Some(self.var(arg, e.to_string(), exprs))))
    }
}

/// The whole numbers of at most 32 bits that become the doubles `e`, if they are such: the average of both is the same, and sums of whole
/// numbers are exact.
fn whole(e: Expr) -> Expr {
    match e.node {
        Node::Float(inner, divisor) if divisor == 1.0 && is_short(&inner.ty) => *inner,
        node => Expr { node, ty: e.ty },
    }
}

fn is_short(ty: &Type) -> bool {
    let is_short = matches!(ty.data, DataType::Int8 | DataType::Int16 | DataType::Int32);
    is_short && ty.kind == Kind::Int
}

/// What there is of an aggregate where the engine has no accumulator for it, or none for its values.
#[derive(Clone, Copy)]
enum Otherwise {
    /// A call for all values of a group.
    Called,
    /// A call for some of the values of a group, and again for what it gave.
    Folded,
}

/// The aggregates of this name: the engine's function, if it has one, and what there is without. This is the only list
/// of them, but for those that take their value [from one row](super::first_rows). False is less than true.
fn listed(name: &str) -> (Option<Function>, Otherwise) {
    use Otherwise::{Called, Folded};
    match name {
        "count" => (Some(Function::Count), Called),
        "sum" => (Some(Function::Sum), Folded),
        "min" | "bool_and" => (Some(Function::Min), Folded),
        "max" | "bool_or" => (Some(Function::Max), Folded),
        "avg" => (Some(Function::Avg), Called),
        "var" => (Some(Function::VarSamp), Called),
        "var_pop" => (Some(Function::VarPop), Called),
        "stddev" => (Some(Function::StddevSamp), Called),
        "stddev_pop" => (Some(Function::StddevPop), Called),
        "bit_and" | "bit_or" | "bit_xor" => (None, Folded),
        // The exact number is the best one.
        "approx_distinct" => (Some(Function::CountDistinct), Called),
        _ => (None, Called),
    }
}

/// The engine's function of pairs for DataFusion's of this name.
fn pair_function(name: &str) -> Option<PairFunction> {
    Some(match name {
        "corr" => PairFunction::Correlation,
        "covar_pop" => PairFunction::CovarPop,
        "covar_samp" => PairFunction::CovarSamp,
        "regr_count" => PairFunction::Count,
        "regr_avgx" => PairFunction::MeanX,
        "regr_avgy" => PairFunction::MeanY,
        "regr_sxx" => PairFunction::SquaresX,
        "regr_syy" => PairFunction::SquaresY,
        "regr_sxy" => PairFunction::Products,
        "regr_slope" => PairFunction::Slope,
        "regr_intercept" => PairFunction::Intercept,
        "regr_r2" => PairFunction::Determination,
        _ => return None,
    })
}

/// The engine's function for DataFusion's of this name.
pub(super) fn aggregate_function(name: &str) -> Option<Function> {
    listed(name).0
}

/// The same function of the distinct values.
fn of_distinct(function: Function) -> Result<Function> {
    Ok(match function {
        Function::Count | Function::CountDistinct => Function::CountDistinct,
        Function::Sum => Function::SumDistinct,
        Function::Avg => Function::AvgDistinct,
        // The least and the greatest of the distinct values are those of all values.
        Function::Min | Function::Max => function,
        function => return unsupported(format!("{function:?} of distinct values")),
    })
}

/// That `function` can be computed of values of type `ty`.
pub(super) fn check(function: Function, ty: &Type) -> Result<()> {
    match function {
        Function::Count | Function::CountDistinct => Ok(()),
        Function::Min | Function::Max if ty.is_opaque() => {
            unsupported(format!("the least of values of type {}", ty.data))
        }
        Function::Min | Function::Max => Ok(()),
        Function::VarSamp | Function::VarPop | Function::StddevSamp | Function::StddevPop => {
            match ty.kind {
                Kind::Float => Ok(()),
                _ => unsupported("variances of other values than floats"),
            }
        }
        _ if matches!(ty.kind, Kind::Text | Kind::Code | Kind::Bool) => {
            unsupported("such an aggregate of texts")
        }
        _ => Ok(()),
    }
}

/// Refuses values that sums over windows, and sums of sums, are not there for.
pub(super) fn addable(ty: &Type) -> Result<()> {
    match ty.kind {
        Kind::Text | Kind::Code | Kind::Bool => unsupported("such an aggregate of texts"),
        Kind::Wide if !has_room(ty.bounds) => {
            unsupported("sums that may need more than 128 bits on their way")
        }
        _ => Ok(()),
    }
}

/// More rows than any table has.
const ROWS: i128 = 1 << 36;

/// Whether 128 bits hold every partial sum of numbers within `bounds`.
fn has_room(bounds: (i128, i128)) -> bool {
    let most = bounds.0.unsigned_abs().max(bounds.1.unsigned_abs());
    most < (1 << 127) / ROWS.unsigned_abs()
}

/// The type of a sum of numbers within `bounds`, of the same kind as `ty`: sums of such sums have room then.
fn within_sums(ty: Type, bounds: (i128, i128)) -> Type {
    let wide = ty.kind == Kind::Wide;
    // A wide number is one that may be out of 64 bits.
    let (low, high) = if wide {
        (i128::from(i64::MIN) * 2, i128::from(i64::MAX) * 2)
    } else {
        (0, 0)
    };
    match (bounds.0.checked_mul(ROWS), bounds.1.checked_mul(ROWS)) {
        (Some(least), Some(most)) => ty.within((least.min(low), most.max(high))),
        _ => ty,
    }
}
