//! What the conditions of a join compute of one of its relations alone: computed for each row of that relation, and not for each
//! pair of rows.

use crate::expr::{Expr, Node, is_fallible};
use crate::logical::relation::{Query, Rel};
use crate::physical::explain::named;
use crate::physical::statistics::expected;
use crate::vector::value::Var;

/// `inputs` of a join, which has `keys` or not, with the vectors that stand for what `conditions` compute of one of them. Where rows
/// are found by keys, there may be fewer pairs than rows of the largest relation, of which nothing is computed before then.
pub(crate) fn computed_before(
    query: &mut Query,
    inputs: Vec<Rel>,
    conditions: &mut [Expr],
    keys: bool,
) -> Vec<Rel> {
    let mut exprs: Vec<Vec<(Var, Expr)>> = vec![Vec::new(); inputs.len()];
    let rows = |input: &usize| {
        inputs
            .get(*input)
            .map_or(0.0, |input| expected(query, input).1)
    };
    let largest = (0..inputs.len()).max_by(|a, b| rows(a).total_cmp(&rows(b)));
    for condition in conditions {
        let Node::Compare(_, a, b) = &mut condition.node else {
            continue;
        };
        for side in [a, b] {
            let vars = side.vars();
            let own = |input: &Rel| vars.iter().all(|var| input.gives(*var));
            let Some(input) = inputs.iter().position(own) else {
                continue;
            };
            let is_late = keys && Some(input) == largest;
            if vars.is_empty() || is_late || is_at_hand(side) || is_fallible(side) {
                continue;
            }
            let name = named(&side.to_string(), &query.vars);
            let var = query.add(name, side.ty.clone());
            let of = Expr::var(var, side.ty.clone());
            exprs[input].push((var, std::mem::replace(&mut **side, of)));
        }
    }
    let both = inputs.into_iter().zip(exprs);
    let mapped = |(input, exprs): (Rel, Vec<(Var, Expr)>)| {
        if exprs.is_empty() {
            return input;
        }
        Rel::Map {
            input: Box::new(input),
            exprs,
        }
    };
    both.map(mapped).collect()
}

/// Whether an expression is a vector, or a sum that a [band](crate::physical::band) reads as one.
fn is_at_hand(e: &Expr) -> bool {
    match &e.node {
        Node::Var(_) => true,
        Node::Ranged(ranged) => ranged.sum().is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use algebra::filter::Op as Compare;
    use arrow::array::RecordBatch;
    use arrow::datatypes::{DataType, Schema};

    use super::*;
    use crate::expr::WholeFunction;
    use crate::expr::build::compare;
    use crate::expr::ranged::ranged;
    use crate::vector::value::Type;

    fn values(vars: &[Var]) -> Rel {
        Rel::Values {
            vars: vars.to_vec(),
            batch: RecordBatch::new_empty(Schema::empty().into()),
        }
    }

    #[test]
    fn what_is_of_one_side_is_computed_there() {
        let mut query = Query::default();
        let ty = Type::of(&DataType::Int64, false).unwrap();
        let ty = ty.within((0, 1_000));
        let [a, b] = ["a", "b"].map(|name| query.add(name, ty.clone()));
        let kernel = |function, e: Expr| {
            ranged(function, e, (0, 1_000), &DataType::Int64, || unreachable!()).unwrap()
        };
        let half = kernel(WholeFunction::Floor(2), query.expr(b));
        let sum = kernel(WholeFunction::Plus(3), query.expr(b));
        let conditions = [
            compare(Compare::Lt, query.expr(a), half).unwrap(),
            compare(Compare::Gt, query.expr(a), sum).unwrap(),
        ];
        let mut all = conditions.clone();
        let found = computed_before(
            &mut query,
            vec![values(&[a]), values(&[b])],
            &mut all,
            false,
        );
        assert!(matches!(&found[0], Rel::Values { .. }));
        let Rel::Map { exprs, .. } = &found[1] else {
            panic!("{found:?}");
        };
        let [(made, _)] = &exprs[..] else {
            panic!("{exprs:?}");
        };
        assert_eq!(all[0].vars(), [a, *made]);
        // Bands are of sums.
        assert_eq!(all[1].vars(), [a, b]);
    }
}
