//! Lowering of aggregates.

use arrow::datatypes::DataType;
use datafusion::logical_expr::{Aggregate, Expr as Sql};
use engine::{Expr, Fold, Function, Kind, Literal, Rel, Result, Type, Var};

use crate::lower::expr::Scope;
use crate::lower::first_rows::Computed;
use crate::lower::lowering::{Lowered, Lowering, mapped, once, unsupported};
use crate::optimize::filtered::is_guarded;
use crate::optimize::keys;

impl Lowering<'_> {
    pub(super) fn aggregate(&mut self, aggregate: &Aggregate) -> Result<Lowered> {
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
            let (function, arg) = match self.first(e, scope, keys, computed)? {
                Some(found) => found,
                None => self.fold(e, scope, &mut computed.exprs)?,
            };
            let counts = matches!(function, Function::Count | Function::CountDistinct);
            let Some(ty) = Type::of(field.data_type(), !counts) else {
                return unsupported(format!("values of type {}", field.data_type()));
            };
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

    fn fold(
        &mut self,
        e: &Sql,
        scope: Scope<'_>,
        exprs: &mut Vec<(Var, Expr)>,
    ) -> Result<(Function, Option<Var>)> {
        let call = match e {
            Sql::Alias(alias) => return self.fold(&alias.expr, scope, exprs),
            Sql::AggregateFunction(call) => call,
            other => return unsupported(format!("the aggregate {other}")),
        };
        let params = &call.params;
        if params.null_treatment.is_some() {
            return unsupported("`ignore nulls` in an aggregate");
        }
        let name = call.func.name();
        let function = match (aggregate_function(name), params.distinct) {
            (Some(function), false) => function,
            (Some(function), true) => of_distinct(function)?,
            (None, _) => return unsupported(format!("the aggregate {name}")),
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

/// The engine's function for DataFusion's of this name. False is less than true.
pub(super) fn aggregate_function(name: &str) -> Option<Function> {
    Some(match name {
        "count" => Function::Count,
        "sum" => Function::Sum,
        "min" | "bool_and" => Function::Min,
        "max" | "bool_or" => Function::Max,
        "avg" => Function::Avg,
        "var" => Function::VarSamp,
        "var_pop" => Function::VarPop,
        "stddev" => Function::StddevSamp,
        "stddev_pop" => Function::StddevPop,
        _ => return None,
    })
}

/// The same function of the distinct values.
fn of_distinct(function: Function) -> Result<Function> {
    Ok(match function {
        Function::Count => Function::CountDistinct,
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
        Function::Count | Function::CountDistinct | Function::Min | Function::Max => Ok(()),
        Function::VarSamp | Function::VarPop | Function::StddevSamp | Function::StddevPop => {
            match ty.kind {
                Kind::Float => Ok(()),
                _ => unsupported("variances of other values than floats"),
            }
        }
        _ => addable(ty),
    }
}

/// Refuses values that sums are not there for.
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

/// The value where `filter` is true, otherwise NULL, which functions ignore.
pub(super) fn chosen(filter: Expr, value: Expr) -> Result<Expr> {
    let data = value.ty.data.clone();
    let null = Expr::literal(Literal::Null, &data)?;
    engine::case(vec![(filter, value)], null, &data)
}
