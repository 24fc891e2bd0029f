//! Sums of a column plus constants: `sum(x + 1)` is `sum(x)` and once the number of values. So many such sums, which programs write,
//! are one sum and one count.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::expr::arithmetic::arithmetic;
use crate::expr::{Arithmetic, Expr, Literal, Node};
use crate::logical::parts::{counts, within_sums};
use crate::logical::relation::{Fold, Function, Query, Rel};
use crate::vector::value::{Kind, Var};

/// More rows than any table has.
const ROWS: i128 = 1 << 36;

/// A column and what is added to it.
type Shifted = (Var, i64);

/// The functions to compute of `input` instead of `folds`, and how those of `folds` that are not among them follow from them.
pub(crate) fn as_one_sum(
    query: &mut Query,
    input: &Rel,
    folds: Vec<Fold>,
) -> (Vec<Fold>, Vec<(Var, Expr)>) {
    let mut shifted = BTreeMap::new();
    note_shifted(input, &mut shifted);
    let of = |fold: &Fold| match (fold.function, fold.arg) {
        (Function::Sum, Some(arg)) => Some(shifted.get(&arg).copied().unwrap_or((arg, 0))),
        _ => None,
    };
    let sums = |column: Var| {
        let of_column = |fold: &&Fold| of(fold).is_some_and(|(own, _)| own == column);
        folds.iter().filter(of_column).count()
    };
    let is_shared = |(column, plus): &Shifted| *plus != 0 && sums(*column) > 1;
    let places: Vec<Option<Shifted>> = folds
        .iter()
        .map(|fold| of(fold).filter(is_shared))
        .collect();
    if places.iter().all(Option::is_none) {
        return (folds, vec![]);
    }
    let mut kept: Vec<Fold> = Vec::new();
    let mut left: Vec<(Fold, Shifted)> = Vec::new();
    for (fold, place) in folds.into_iter().zip(places) {
        match place {
            None => kept.push(fold),
            Some(own) => left.push((fold, own)),
        }
    }
    let mut results = Vec::new();
    for (fold, own) in left {
        match result(query, &mut kept, &fold, own) {
            Ok(expr) => results.push((fold.var, expr)),
            Err(_) => kept.push(fold),
        }
    }
    (kept, results)
}

/// Notes the vectors that are computed right below as a column and a constant.
fn note_shifted(rel: &Rel, shifted: &mut BTreeMap<Var, Shifted>) {
    match rel {
        Rel::Filter { input, .. } => note_shifted(input, shifted),
        Rel::Map { input, exprs } => {
            note_shifted(input, shifted);
            let own = exprs
                .iter()
                .filter_map(|(var, expr)| Some((*var, plus(expr)?)));
            shifted.extend(own);
        }
        _ => {}
    }
}

/// The column and the constant whose sum an expression is, without overflow.
fn plus(expr: &Expr) -> Option<Shifted> {
    let Node::Arithmetic(op, a, b) = &expr.node else {
        return None;
    };
    let whole = |e: &Expr| e.ty.kind == Kind::Int && e.ty.data.is_integer();
    if !(whole(expr) && whole(a) && whole(b)) {
        return None;
    }
    let constant = |e: &Expr| match e.constant() {
        Some(Literal::Int(value)) => Some(*value),
        _ => None,
    };
    match op {
        Arithmetic::Add => {
            let pair = a.as_var().zip(constant(b));
            pair.or_else(|| b.as_var().zip(constant(a)))
        }
        Arithmetic::Sub => a.as_var().zip(constant(b)?.checked_neg()),
        _ => None,
    }
}

/// How the sum of a column and a constant follows from the sum and the number of its values, which are added to `kept` if they are
/// not there.
///
/// # Errors
/// [`Error::Unsupported`] if some of that might not fit in 64 bits, or is of another type.
fn result(
    query: &mut Query,
    kept: &mut Vec<Fold>,
    fold: &Fold,
    (column, plus): Shifted,
) -> Result<Expr> {
    let own = query.ty(column).clone();
    let result = query.ty(fold.var).clone();
    let bounds = within_sums(own.bounds);
    if bounds.0 < i64::MIN.into() || bounds.1 > i64::MAX.into() {
        return Err(Error::unsupported("sums of more than 64 bits"));
    }
    let total = result.clone().within(bounds);
    let count = counts()?.within((0, ROWS));
    let counted = Expr::var(0, count.clone());
    let constant = Expr::literal(Literal::Int(plus), &count.data)?;
    let more = arithmetic(Arithmetic::Mul, counted, constant, &count.data)?;
    let all = Expr::var(0, total.clone());
    let sum = arithmetic(Arithmetic::Add, all, more, &result.data)?;
    if [&sum.ty, &total, &result]
        .iter()
        .any(|ty| ty.kind != Kind::Int)
    {
        return Err(Error::unsupported("sums of more than 64 bits"));
    }
    let mut place = |function, arg, name: &str, ty| {
        let known = kept
            .iter()
            .find(|own| (own.function, own.arg) == (function, arg));
        let known = known.map(|own| own.var);
        known.unwrap_or_else(|| {
            let var = query.add(name, ty);
            kept.push(Fold { var, function, arg });
            var
        })
    };
    let sums = place(Function::Sum, Some(column), "sum", total);
    // Without NULLs it counts rows.
    let counted = Some(column).filter(|_| own.nullable);
    let counts = place(Function::Count, counted, "count", count);
    let mut reads = [sums, counts].into_iter();
    let mut expr = sum;
    expr.each_mut(&mut |e| {
        if let Node::Var(var) = &mut e.node {
            *var = reads.next().unwrap_or(*var);
        }
    });
    expr.ty = result;
    Ok(expr)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::value::Type;
    use arrow::datatypes::DataType;

    fn of(data: &DataType, nullable: bool) -> Type {
        Type::of(data, nullable).unwrap()
    }

    /// A query of a column, with these sums of it and a constant, or of it alone; the results are the vectors behind it.
    fn sums(column: Type, all: &[Option<i64>]) -> (Query, Rel, Vec<Fold>) {
        let mut query = Query::default();
        let mut exprs = vec![];
        let x = query.add("x", column.clone());
        let mut folds = vec![];
        for plus in all {
            let mut arg = x;
            if let Some(plus) = plus {
                let one = Expr::literal(Literal::Int(*plus), &DataType::Int32).unwrap();
                let x = Expr::var(x, column.clone());
                let expr = arithmetic(Arithmetic::Add, x, one, &DataType::Int32).unwrap();
                arg = query.add("x plus", expr.ty.clone());
                exprs.push((arg, expr));
            }
            let ty = of(&DataType::Int64, true);
            let var = query.add("sum", ty.within((-(1 << 62), 1 << 62)));
            folds.push(Fold {
                var,
                function: Function::Sum,
                arg: Some(arg),
            });
        }
        let batch = arrow::array::RecordBatch::new_empty(arrow::datatypes::Schema::empty().into());
        let values = Rel::Values {
            vars: vec![],
            batch,
        };
        let input = Rel::Map {
            input: Box::new(values),
            exprs,
        };
        (query, input, folds)
    }

    #[test]
    fn sums_of_a_column_and_constants_are_one() {
        for nullable in [true, false] {
            let (mut query, input, folds) =
                sums(of(&DataType::Int16, nullable), &[None, Some(1), Some(-7)]);
            let vars: Vec<Var> = folds.iter().map(|fold| fold.var).collect();
            let (kept, results) = as_one_sum(&mut query, &input, folds);
            let count = Some(0).filter(|_| nullable);
            let functions: Vec<_> = kept.iter().map(|own| (own.function, own.arg)).collect();
            assert_eq!(
                functions,
                [(Function::Sum, Some(0)), (Function::Count, count)]
            );
            let made: Vec<Var> = results.iter().map(|(var, _)| *var).collect();
            assert_eq!(made, vars[1..]);
            for (_, expr) in &results {
                let mut reads = vec![];
                expr.each_var(&mut |var| reads.push(var));
                assert_eq!(reads, [kept[0].var, kept[1].var]);
            }
        }
    }

    #[test]
    fn others_stay() {
        // One alone, one without a constant twice, and numbers whose sums might not fit.
        let short = of(&DataType::Int16, true);
        let long = of(&DataType::Int32, true).within((0, 1 << 29));
        for (column, all) in [
            (short.clone(), vec![Some(1)]),
            (short, vec![None, None]),
            (long, vec![Some(1), Some(2)]),
        ] {
            let (mut query, input, folds) = sums(column, &all);
            let (kept, results) = as_one_sum(&mut query, &input, folds.clone());
            assert_eq!((kept.len(), results.len()), (folds.len(), 0));
        }
    }
}
