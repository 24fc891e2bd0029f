//! What an aggregate makes of the matches that the rows of a join have: whether it reads each of them, only their number, or
//! nothing of them.
//!
//! A relation of which a join reads nothing but the keys multiplies rows: each comes out once for each of its matches. `min(x)`,
//! `count(distinct x)` and `distinct` do not change by that, so a row need only have a match (a semi join). `count(*)` needs their
//! number: the relation is grouped by its keys first, and a row comes out once, with the product of the numbers of its matches. So
//! what counts the rows of a join of many relations that have many matches with each other takes time for the rows of the
//! relations, not for those of the join.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::Int64Type;

use crate::error::{Error, Result};
use crate::expr::{Call, Expr};
use crate::logical::parts::counts;
use crate::logical::relation::{Fold, Function, Query};
use crate::physical::program::{Operator, Pipeline, Required, Sink, Source, Stage, pipeline, then};
use crate::vector::value::{Kind, Var};

/// What becomes of several matches of one row of a join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Copies {
    /// A row for each.
    #[default]
    Kept,
    /// One row may stand for all.
    Ignored,
    /// One row may stand for all, if a vector says for how many.
    Counted,
}

impl Copies {
    /// What these functions read of equal rows.
    pub fn of(folds: &[Fold]) -> Copies {
        let is_count = |fold: &Fold| fold.function == Function::Count && fold.arg.is_none();
        let is_of_set = |fold: &Fold| {
            matches!(
                fold.function,
                Function::Min
                    | Function::Max
                    | Function::CountDistinct
                    | Function::SumDistinct
                    | Function::AvgDistinct
            )
        };
        if folds.iter().all(is_of_set) {
            Copies::Ignored
        } else if folds.iter().all(|fold| is_count(fold) || is_of_set(fold)) {
            Copies::Counted
        } else {
            Copies::Kept
        }
    }
}

/// Makes the counts of `folds` totals of `numbers`: for how many rows each row stands.
pub(crate) fn count_copies(folds: &mut [Fold], numbers: Var) {
    for fold in folds.iter_mut() {
        if fold.function == Function::Count {
            fold.function = Function::CountTotal;
            fold.arg = Some(numbers);
        }
    }
}

/// Whether rows can be grouped by these keys of a join. Without any there would be a group of no rows.
pub(crate) fn can_group(query: &Query, keys: &[Var]) -> bool {
    let is_exact = |key: &Var| query.ty(*key).kind != Kind::Float;
    !keys.is_empty() && keys.iter().all(is_exact)
}

/// Groups the rows of `pipelines` by `keys`. Returns a pipeline of the groups, and the vector of the numbers of their rows, where
/// `numbers` says for how many each row stands.
pub(crate) fn grouped(
    (query, stages): (&mut Query, &mut Vec<Stage>),
    pipelines: Vec<Pipeline>,
    keys: &[Var],
    numbers: Option<Var>,
) -> Result<(Vec<Pipeline>, Var)> {
    let var = query.add("copies", counts()?);
    let function = match numbers {
        Some(_) => Function::CountTotal,
        None => Function::Count,
    };
    let count = Fold {
        var,
        function,
        arg: numbers,
    };
    let keys: Required = keys.iter().copied().collect();
    let sink = Sink::Fold {
        keys: keys.into_iter().collect(),
        folds: vec![count],
        group_join: None,
        first: None,
    };
    stages.push(Stage { pipelines, sink });
    Ok((vec![pipeline(Source::Rows(stages.len() - 1))], var))
}

/// Adds the product of two numbers of copies to the rows of `pipelines`; its vector.
pub(crate) fn product(
    query: &mut Query,
    pipelines: Vec<Pipeline>,
    (a, b): (Var, Var),
) -> Result<(Vec<Pipeline>, Var)> {
    let ty = counts()?;
    let args = [a, b].map(|var| Expr::var(var, ty.clone()));
    let mut product = crate::expr::build::call(args.into(), Arc::new(Product), &ty.data)?;
    product.ty = ty.clone();
    let var = query.add("copies", ty);
    Ok((then(pipelines, Operator::Map(var, product)), var))
}

/// The product of two whole numbers.
#[derive(Debug)]
struct Product;

impl Call for Product {
    fn call(
        &self,
        args: &[ArrayRef],
        _rows: usize,
    ) -> std::result::Result<ArrayRef, Box<dyn std::error::Error + Send + Sync>> {
        let [a, b] = args else {
            return Err("a product is of two numbers".into());
        };
        let numbers = |array: &ArrayRef| array.as_primitive_opt::<Int64Type>().cloned();
        let (Some(a), Some(b)) = (numbers(a), numbers(b)) else {
            return Err("a product is of two numbers".into());
        };
        let product = |(a, b): (&i64, &i64)| {
            let product = a.checked_mul(*b);
            product.ok_or_else(|| Error::Overflow {
                what: "the number of rows of a join".into(),
            })
        };
        let products = a.values().iter().zip(b.values()).map(product);
        let products: std::result::Result<Vec<i64>, Error> = products.collect();
        Ok(Arc::new(Int64Array::from(products?)))
    }

    fn name(&self) -> String {
        "product".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &[(Function, Option<Var>)]) -> Copies {
        let fold = |(function, arg): &(Function, Option<Var>)| Fold {
            var: 9,
            function: *function,
            arg: *arg,
        };
        Copies::of(&all.iter().map(fold).collect::<Vec<_>>())
    }

    #[test]
    fn only_what_no_copy_changes_ignores_them() {
        use Function::{Avg, Count, CountDistinct, Max, Min, Sum, VarPop};
        assert_eq!(of(&[]), Copies::Ignored);
        assert_eq!(of(&[(Min, Some(0)), (Max, Some(1))]), Copies::Ignored);
        assert_eq!(of(&[(CountDistinct, Some(1))]), Copies::Ignored);
        assert_eq!(of(&[(Count, None), (Min, Some(0))]), Copies::Counted);
        // NULLs are not counted, so that the number of rows is not the count.
        assert_eq!(of(&[(Count, Some(1))]), Copies::Kept);
        for function in [Sum, Avg, VarPop] {
            assert_eq!(of(&[(function, Some(0)), (Min, Some(0))]), Copies::Kept);
        }
    }

    #[test]
    fn products_beyond_64_bits_are_an_error() {
        let array = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let found = Product
            .call(&[array(vec![3, 0]), array(vec![4, 5])], 2)
            .unwrap();
        assert_eq!(found.as_primitive::<Int64Type>().values(), &[12, 0]);
        let error = Product.call(&[array(vec![1 << 40]), array(vec![1 << 40])], 1);
        assert!(error.unwrap_err().to_string().contains("does not fit"));
    }
}
