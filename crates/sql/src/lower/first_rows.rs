//! Lowering of what keeps the first rows of groups: aggregates that take a value from the first row of an order, and
//! filters of `row_number()`, `rank()` or `dense_rank()` that keep the first few rows.

use arrow::datatypes::DataType;
use datafusion_expr::expr::{AggregateFunction, NullTreatment};
use datafusion_expr::{Expr as Sql, Filter, SortExpr};
use engine::{
    Error, Expr, Fold, Function, Key, Kind, Rel, Result, RowNumbers, RowOrder, Type, Var,
};

use crate::lower::call::failed;
use crate::lower::expr::Scope;
use crate::lower::lowering::{Lowered, Lowering, filtered, mapped, once, unsupported};
use crate::optimize::first_rows::numbered;

/// Most rows of a group that are kept without a sort: beyond, rows would be moved within long lists.
const MOST: usize = 1_000;

/// Vectors that an aggregation computes of its rows.
#[derive(Default)]
pub(super) struct Computed {
    pub exprs: Vec<(Var, Expr)>,
    /// What has been computed for the orders of rows. Functions of the same order share their rows, so that its keys
    /// must be the same vectors.
    known: Vec<(Sql, Var)>,
}

impl Lowering<'_> {
    /// The vector of `e`, which is computed once.
    fn known(&mut self, e: &Sql, scope: Scope<'_>, computed: &mut Computed) -> Result<Var> {
        if let Some((_, var)) = computed.known.iter().find(|(known, _)| known == e) {
            return Ok(*var);
        }
        let lowered = self.expr(e, scope)?;
        let var = self.var(lowered, e.to_string(), &mut computed.exprs);
        computed.known.push((e.clone(), var));
        Ok(var)
    }

    /// The function of an aggregate whose value is that of the first row in an order, and its argument; `None` for other
    /// aggregates. `groups` are the keys of the groups, which order no rows.
    pub(super) fn first(
        &mut self,
        e: &Sql,
        scope: Scope<'_>,
        groups: &[Var],
        computed: &mut Computed,
    ) -> Result<Option<(Function, Option<Var>)>> {
        let call = match e {
            Sql::Alias(alias) => return self.first(&alias.expr, scope, groups, computed),
            Sql::AggregateFunction(call) => call,
            _ => return Ok(None),
        };
        let params = &call.params;
        let (args, name) = (&params.args[..], call.func.name());
        let (arg, sorts, more) = match (name, args) {
            ("first_value", [arg]) => (arg, params.order_by.clone(), vec![]),
            // The last row of an order is the first of the reverse one.
            ("last_value", [arg]) => {
                let keys = params.order_by.iter().map(|key| SortExpr {
                    expr: key.expr.clone(),
                    asc: !key.asc,
                    nulls_first: !key.nulls_first,
                });
                (arg, keys.collect(), vec![])
            }
            // Of several values with the best key they take the least. Rows where either is NULL do not count.
            ("arg_min" | "arg_max", [arg, key]) if params.order_by.is_empty() => {
                let best = key.clone().sort(name == "arg_min", false);
                let sorts = vec![best, arg.clone().sort(true, false)];
                (arg, sorts, vec![arg, key])
            }
            _ => return Ok(None),
        };
        if params.distinct {
            return unsupported("the first of distinct values");
        }
        let only = self.only(call, more, scope, computed)?;
        let arg = self.known(arg, scope, computed)?;
        let mut keys = Vec::with_capacity(sorts.len());
        for sort in &sorts {
            let var = self.known(&sort.expr, scope, computed)?;
            if !groups.contains(&var) {
                keys.push(Key {
                    var,
                    descending: !sort.asc,
                    nulls_first: sort.nulls_first,
                });
            }
        }
        // With more keys than an order may have all rows of a group are kept.
        let order = RowOrder::new(&keys, only, 1);
        Ok(order.map(|order| (Function::First(order), Some(arg))))
    }

    /// The vector that says which rows count for an aggregate that takes a value from the first: those that pass its
    /// filter and have none of `present` NULL. `None` if all do.
    fn only<'e>(
        &mut self,
        call: &'e AggregateFunction,
        mut present: Vec<&'e Sql>,
        scope: Scope<'_>,
        computed: &mut Computed,
    ) -> Result<Option<Var>> {
        let params = &call.params;
        match params.null_treatment {
            Some(NullTreatment::IgnoreNulls) => present.extend(params.args.first()),
            Some(NullTreatment::RespectNulls) | None => {}
        }
        let mut parts = Vec::new();
        for value in present {
            let var = self.known(value, scope, computed)?;
            if self.query.ty(var).nullable {
                parts.push(engine::not(engine::is_null(self.query.expr(var))));
            }
        }
        let filter = match &params.filter {
            Some(filter) => Some(self.known(filter, scope, computed)?),
            None => None,
        };
        if filter.is_some_and(|filter| self.query.ty(filter).kind != Kind::Bool) {
            return unsupported("a filter that is no boolean");
        }
        if parts.is_empty() {
            return Ok(filter);
        }
        parts.extend(filter.map(|filter| self.query.expr(filter)));
        let all = engine::and(parts);
        Ok(Some(self.var(all, "rows that count", &mut computed.exprs)))
    }

    /// The rows of a filter that keeps the first rows of groups by their number or rank; `None` for other filters.
    pub(super) fn first_rows(&mut self, filter: &Filter) -> Result<Option<Lowered>> {
        let Some(numbered) = numbered(filter).map_err(failed)? else {
            return Ok(None);
        };
        let (window, params) = (numbered.window, &numbered.function.params);
        let most = usize::try_from(numbered.most).ok();
        let Some(most) = most.filter(|most| *most <= MOST) else {
            return Ok(None);
        };
        if params.order_by.len() > RowOrder::MOST_KEYS {
            return Ok(None);
        }
        let (rel, vars) = self.rel(&window.input)?;
        let scope = Scope {
            schema: window.input.schema(),
            vars: &vars,
        };
        let mut computed = Computed::default();
        let mut keys = Vec::with_capacity(params.partition_by.len());
        for key in &params.partition_by {
            keys.push(self.known(key, scope, &mut computed)?);
        }
        let keys = once(&keys);
        self.narrow(&keys);
        let mut sorts = Vec::with_capacity(params.order_by.len());
        for sort in &params.order_by {
            sorts.push(Key {
                var: self.known(&sort.expr, scope, &mut computed)?,
                descending: !sort.asc,
                nulls_first: sort.nulls_first,
            });
        }
        sorts.retain(|sort| !keys.contains(&sort.var));
        let order = RowOrder::new(&sorts, None, most);
        let order = order.map(|order| match numbered.numbers {
            RowNumbers::Rows => order,
            // The first of both ranks are the same rows.
            RowNumbers::DenseRanks if most > 1 => order.with_dense_ranks(),
            RowNumbers::Ranks | RowNumbers::DenseRanks => order.with_ties(),
        });
        let order = order.ok_or_else(|| Error::Unsupported("such an order of rows".into()))?;
        let (folds, out) = self.row_folds(&vars, &keys, order)?;
        let mut rel = Rel::Fold {
            input: Box::new(mapped(rel, computed.exprs)),
            keys,
            folds,
        };
        let scope = Scope {
            schema: &window.schema,
            vars: &out,
        };
        for other in &numbered.others {
            for predicate in self.conjuncts(other, scope)? {
                rel = filtered(rel, predicate);
            }
        }
        Ok(Some((rel, out)))
    }

    /// The functions that give the rows of an order with the vectors `vars` and their numbers, and the vectors of these.
    /// `keys` are those of the groups, which are the same in all rows.
    fn row_folds(
        &mut self,
        vars: &[Var],
        keys: &[Var],
        order: RowOrder,
    ) -> Result<(Vec<Fold>, Vec<Var>)> {
        let mut folds: Vec<Fold> = Vec::new();
        let mut out = Vec::with_capacity(vars.len() + 1);
        for var in vars {
            let known = folds.iter().find(|fold| fold.arg == Some(*var));
            let own = match known {
                Some(known) => known.var,
                None if keys.contains(var) => *var,
                None => {
                    let column = self.query.vars[*var].clone();
                    let own = self.query.add(column.name, column.ty);
                    folds.push(Fold {
                        var: own,
                        function: Function::First(order),
                        arg: Some(*var),
                    });
                    own
                }
            };
            out.push(own);
        }
        let number = Type::of(&DataType::UInt64, false);
        let number = number.ok_or_else(|| Error::Unsupported("numbers of rows".into()))?;
        let number = number.within((1, order.most() as i128));
        let number = self.query.add("row_number", number);
        folds.push(Fold {
            var: number,
            function: Function::RowNumber(order),
            arg: None,
        });
        out.push(number);
        Ok((folds, out))
    }
}
