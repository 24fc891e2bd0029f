//! `grouping sets (rollup (a, b), cube (c))`: the sets that stand within others, written out, and so are those of a `rollup` or a
//! `cube` that the planner refuses. `group by ()` is one group of all rows.

use std::collections::HashSet;
use std::ops::ControlFlow;

use messages::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    Select, Value, Visitor, VisitorMut,
};

use crate::call;
use crate::flow::flow;
use crate::names::column_name;
use crate::rewrite::conditions;
use crate::walk::Walk;

/// Most sets of a `group by`, as in PostgreSQL.
const MAX_SETS: usize = 4_096;

/// Writes sets out that the planner does not know.
pub(super) struct Grouping;

impl VisitorMut for Grouping {
    type Break = Box<Error>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Box<Error>> {
        all_rows(select);
        one_group(select);
        let GroupByExpr::Expressions(keys, _) = &mut select.group_by else {
            return ControlFlow::Continue(());
        };
        flow(keys.iter_mut().try_for_each(|key| {
            let sets = match key {
                Expr::GroupingSets(sets) => return spread(sets),
                Expr::Rollup(keys) if is_refused(keys) => rolled_up(keys),
                Expr::Cube(keys) if is_refused(keys) => cubed(keys)?,
                _ => return Ok(()),
            };
            *key = Expr::GroupingSets(sets);
            Ok(())
        }))
    }
}

/// `()` among other keys is none. Alone it is a group of all rows, of which there is one even if there are no rows.
fn all_rows(select: &mut Select) {
    let GroupByExpr::Expressions(keys, _) = &mut select.group_by else {
        return;
    };
    let before = keys.len();
    keys.retain(|key| !matches!(key, Expr::Tuple(parts) if parts.is_empty()));
    if keys.is_empty() && before > 0 && select.having.is_none() {
        select.having = Some(some_rows());
    }
}

/// What is true of every group, and needs a group to be asked of.
fn some_rows() -> Expr {
    let count = call::plain_call("count", vec![Expr::value(Value::Number("1".into(), false))]);
    Expr::IsNotNull(Box::new(count))
}

/// Whether the planner refuses a `rollup` or a `cube` of these keys: some go together, or one is there twice.
fn is_refused(keys: &[Vec<Expr>]) -> bool {
    let name = |key: &Expr| match key {
        Expr::CompoundIdentifier(parts) => match parts.last() {
            Some(last) => Expr::Identifier(last.clone()),
            None => key.clone(),
        },
        key => key.clone(),
    };
    let mut seen = HashSet::new();
    keys.iter().any(|key| key.len() != 1)
        || keys.iter().flatten().any(|key| !seen.insert(name(key)))
}

/// `having` without `group by` is about one group of all rows, also where no aggregate says so: then an aggregate is added.
fn one_group(select: &mut Select) {
    let GroupByExpr::Expressions(keys, _) = &select.group_by else {
        return;
    };
    let calls = |expr: &Expr| expr.walk(&mut Calls).is_break();
    if keys.is_empty()
        && let Some(mut having) = select.having.take_if(|having| !calls(having))
    {
        // Beside another condition it would be an argument of AND.
        conditions::mark(&mut having, "HAVING");
        select.having = Some(Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(having))),
            op: BinaryOperator::And,
            right: Box::new(some_rows()),
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
    match name.as_str() {
        "rollup" => Ok(Some(rolled_up(&keys))),
        "cube" => cubed(&keys).map(Some),
        _ => Ok(None),
    }
}

/// The sets of a `rollup` of such keys.
fn rolled_up(keys: &[Vec<Expr>]) -> Vec<Vec<Expr>> {
    let counts = (0..=keys.len()).rev();
    counts.map(|count| chosen(keys, |at| at < count)).collect()
}

/// The sets of a `cube` of such keys.
///
/// # Errors
/// If there are too many.
fn cubed(keys: &[Vec<Expr>]) -> Result<Vec<Vec<Expr>>> {
    if keys.len() > MAX_SETS.ilog2() as usize {
        return Err(too_many());
    }
    let sets = (0..1_usize << keys.len()).rev();
    let last = keys.len();
    let sets = sets.map(|set| chosen(keys, |at| (set >> (last - 1 - at)) & 1 == 1));
    Ok(sets.collect())
}

/// The set of the keys in these places, each once.
fn chosen(keys: &[Vec<Expr>], is_chosen: impl Fn(usize) -> bool) -> Vec<Expr> {
    let mut set: Vec<Expr> = Vec::new();
    let own = keys.iter().enumerate().filter(|(at, _)| is_chosen(*at));
    for key in own.flat_map(|(_, key)| key) {
        if !set.contains(key) {
            set.push(key.clone());
        }
    }
    set
}
