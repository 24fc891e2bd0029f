//! `rank(3) within group (order by x)` and its kin: the place that a row would have among others. They are counts of the rows
//! that come before it.

use messages::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, DataType, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, OrderByExpr, UnaryOperator, Value,
};

use crate::call::plain_call;
use crate::rewrite::operators::cast;

/// The functions of which there are such.
const NAMES: [&str; 4] = ["rank", "dense_rank", "percent_rank", "cume_dist"];

/// What such a call, with these arguments if it has no others, stands for; none if it is another.
///
/// # Errors
/// For values that are no constants, and for another number of them than of sort keys.
pub(super) fn placed(
    name: &str,
    function: &Function,
    args: Option<Vec<Expr>>,
) -> Result<Option<Expr>> {
    let keys = &function.within_group;
    if keys.is_empty() || !NAMES.contains(&name) {
        return Ok(None);
    }
    let args = args
        .filter(|_| function.over.is_none() && function.null_treatment.is_none())
        .ok_or_else(|| {
            Error::unsupported(format!(
                "`{name}(...) within group (...)` takes values alone, and no `over`"
            ))
        })?;
    if args.len() != keys.len() {
        return Err(Error::coded(
            "42883",
            format!(
                "{name} within group takes as many values as it has sort keys: {} for {}",
                args.len(),
                keys.len()
            ),
        ));
    }
    if !args.iter().all(is_constant) {
        return Err(Error::unsupported(format!(
            "`{name}(...) within group (...)` takes constants that are not NULL"
        )));
    }
    let filter = function.filter.as_deref();
    let before = before(&args, keys);
    let same = args.iter().zip(keys).map(|(value, key)| same(value, key));
    let all = count(None, filter.cloned());
    let ahead = count(None, both(filter, before.clone()));
    let one = || whole("1");
    Ok(Some(nested(match name {
        "rank" => binary(ahead, BinaryOperator::Plus, one()),
        "dense_rank" => return dense(&keys[0], keys.len(), filter, before).map(Some),
        "percent_rank" => {
            let share = binary(double(ahead), BinaryOperator::Divide, double(guarded(all)));
            // Of no rows, the first place.
            coalesced(share)
        }
        _ => {
            let same = same.reduce(|left, right| binary(left, BinaryOperator::And, right));
            let within = match same {
                Some(same) => binary(before, BinaryOperator::Or, same),
                None => before,
            };
            let within = count(None, both(filter, within));
            let within = binary(within, BinaryOperator::Plus, one());
            let all = binary(all, BinaryOperator::Plus, one());
            binary(double(within), BinaryOperator::Divide, double(all))
        }
    })))
}

/// How many different values come before, and one; NULL is a value.
fn dense(key: &OrderByExpr, keys: usize, filter: Option<&Expr>, before: Expr) -> Result<Expr> {
    if keys > 1 {
        return Err(Error::unsupported(
            "`dense_rank(...) within group (...)` takes one value and one sort key",
        ));
    }
    let values = count(Some(key.expr.clone()), both(filter, before));
    let mut places = binary(values, BinaryOperator::Plus, whole("1"));
    if nulls_first(key) {
        let nulls = both(filter, Expr::IsNull(Box::new(nested(key.expr.clone()))));
        let nulls = plain_call("least", vec![count(None, nulls), whole("1")]);
        places = binary(places, BinaryOperator::Plus, nulls);
    }
    Ok(nested(places))
}

/// Whether a value is written out, and not NULL.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => !matches!(value.value, Value::Null | Value::Placeholder(_)),
        Expr::TypedString(_) => true,
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => is_constant(inner),
        Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr: inner,
        } => is_constant(inner),
        _ => false,
    }
}

fn nulls_first(key: &OrderByExpr) -> bool {
    let descending = key.options.asc == Some(false);
    key.options.nulls_first.unwrap_or(descending)
}

/// Whether a row comes before one of these values.
fn before(values: &[Expr], keys: &[OrderByExpr]) -> Expr {
    let mut found: Option<Expr> = None;
    let mut equal: Option<Expr> = None;
    for (value, key) in values.iter().zip(keys) {
        let op = match key.options.asc {
            Some(false) => BinaryOperator::Gt,
            _ => BinaryOperator::Lt,
        };
        let mut less = binary(key.expr.clone(), op, value.clone());
        if nulls_first(key) {
            let null = Expr::IsNull(Box::new(nested(key.expr.clone())));
            less = binary(less, BinaryOperator::Or, null);
        }
        let own = match &equal {
            Some(equal) => binary(equal.clone(), BinaryOperator::And, less),
            None => less,
        };
        found = Some(match found {
            Some(found) => binary(found, BinaryOperator::Or, own),
            None => own,
        });
        let same = same(value, key);
        equal = Some(match equal {
            Some(equal) => binary(equal, BinaryOperator::And, same),
            None => same,
        });
    }
    found.unwrap_or_else(|| Expr::value(Value::Boolean(false)))
}

fn same(value: &Expr, key: &OrderByExpr) -> Expr {
    binary(key.expr.clone(), BinaryOperator::Eq, value.clone())
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(nested(left)),
        op,
        right: Box::new(nested(right)),
    }
}

fn both(filter: Option<&Expr>, condition: Expr) -> Option<Expr> {
    Some(match filter {
        Some(filter) => binary(filter.clone(), BinaryOperator::And, condition),
        None => condition,
    })
}

fn whole(number: &str) -> Expr {
    Expr::value(Value::Number(number.into(), false))
}

fn double(expr: Expr) -> Expr {
    cast(nested(expr), DataType::DoublePrecision)
}

/// NULL in the place of zero.
fn guarded(expr: Expr) -> Expr {
    plain_call("nullif", vec![expr, whole("0")])
}

fn coalesced(expr: Expr) -> Expr {
    plain_call("coalesce", vec![expr, double(whole("0"))])
}

/// `count(*)`, or `count(distinct value)`.
fn count(value: Option<Expr>, filter: Option<Expr>) -> Expr {
    let (distinct, arg) = match value {
        None => (None, FunctionArgExpr::Wildcard),
        Some(value) => (
            Some(DuplicateTreatment::Distinct),
            FunctionArgExpr::Expr(value),
        ),
    };
    let args = FunctionArgumentList {
        duplicate_treatment: distinct,
        args: vec![FunctionArg::Unnamed(arg)],
        clauses: vec![],
    };
    let mut count = plain_call("count", vec![]);
    if let Expr::Function(function) = &mut count {
        function.args = FunctionArguments::List(args);
        function.filter = filter.map(Box::new);
    }
    count
}
