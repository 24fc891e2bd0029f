//! `grouping sets (rollup (a, b), cube (c))`: the sets that stand within others, written out.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    Select, Value, Visitor, VisitorMut,
};

use crate::error::{Error, Result};
use crate::frontend::call;
use crate::frontend::flow::flow;
use crate::frontend::walk::Walk;
use crate::names::column_name;

/// Most sets of a `group by`, as in PostgreSQL.
const MAX_SETS: usize = 4_096;

/// Writes the sets of `rollup` and `cube` within `grouping sets` out.
pub(super) struct Grouping;

impl VisitorMut for Grouping {
    type Break = Box<Error>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Box<Error>> {
        one_group(select);
        let GroupByExpr::Expressions(keys, _) = &mut select.group_by else {
            return ControlFlow::Continue(());
        };
        let mut sets = keys.iter_mut().filter_map(|key| match key {
            Expr::GroupingSets(sets) => Some(sets),
            _ => None,
        });
        flow(sets.try_for_each(spread))
    }
}

/// `having` without `group by` is about one group of all rows, also where no aggregate says so: then an aggregate is added.
fn one_group(select: &mut Select) {
    let GroupByExpr::Expressions(keys, _) = &select.group_by else {
        return;
    };
    let calls = |expr: &Expr| expr.walk(&mut Calls).is_break();
    if keys.is_empty()
        && let Some(having) = select.having.take_if(|having| !calls(having))
    {
        let count = call::plain_call("count", vec![Expr::value(Value::Number("1".into(), false))]);
        let some = Expr::IsNotNull(Box::new(count));
        select.having = Some(Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(having))),
            op: BinaryOperator::And,
            right: Box::new(some),
        });
    }
}

/// Breaks off at a call, which may be of an aggregate.
struct Calls;

impl Visitor for Calls {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn spread(sets: &mut Vec<Vec<Expr>>) -> Result<()> {
    let mut all = Vec::with_capacity(sets.len());
    for set in std::mem::take(sets) {
        match &set[..] {
            [Expr::Function(function)] => match within(function)? {
                Some(own) => all.extend(own),
                None => all.push(set),
            },
            _ => all.push(set),
        }
        if all.len() > MAX_SETS {
            return Err(too_many());
        }
    }
    *sets = all;
    Ok(())
}

fn too_many() -> Error {
    Error::coded(
        "54011",
        format!("too many grouping sets present (maximum {MAX_SETS})"),
    )
}

/// The name and the arguments of a call without anything else.
fn plain_call(function: &Function) -> Option<(String, Vec<Expr>)> {
    let [part] = &function.name.0[..] else {
        return None;
    };
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let args = list.args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    let plain = function.filter.is_none() && function.over.is_none() && list.clauses.is_empty();
    let args = args.collect::<Option<Vec<Expr>>>().filter(|_| plain)?;
    Some((part.as_ident().map(column_name)?, args))
}

/// The sets of `rollup (...)` or `cube (...)`; none if it is another function.
fn within(function: &Function) -> Result<Option<Vec<Vec<Expr>>>> {
    let Some((name, args)) = plain_call(function) else {
        return Ok(None);
    };
    // Keys in parentheses go together.
    let keys = args.into_iter().map(|arg| match arg {
        Expr::Tuple(keys) => keys,
        Expr::Nested(key) => vec![*key],
        key => vec![key],
    });
    let keys: Vec<Vec<Expr>> = keys.collect();
    let of = |chosen: &dyn Fn(usize) -> bool| {
        let chosen = keys.iter().enumerate().filter(|(at, _)| chosen(*at));
        chosen
            .flat_map(|(_, key)| key.clone())
            .collect::<Vec<Expr>>()
    };
    match name.as_str() {
        "rollup" => {
            let counts = (0..=keys.len()).rev();
            Ok(Some(counts.map(|count| of(&|at| at < count)).collect()))
        }
        "cube" => {
            if keys.len() > MAX_SETS.ilog2() as usize {
                return Err(too_many());
            }
            let sets = (0..1_usize << keys.len()).rev();
            let last = keys.len();
            let sets = sets.map(|set| of(&|at| (set >> (last - 1 - at)) & 1 == 1));
            Ok(Some(sets.collect()))
        }
        _ => Ok(None),
    }
}
