//! Parts of queries over small relations of whole numbers.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use engine::{Expr, Fold, Function, Key, Literal, Output, Prepared, Query, Rel, Type};

pub fn int() -> Type {
    let ty = Type::of(&DataType::Int64, false).unwrap();
    ty.within((0, 1 << 22))
}

/// Of any size.
pub fn long() -> Type {
    Type::of(&DataType::Int64, false).unwrap()
}

pub fn number(value: i64) -> Expr {
    Expr::literal(Literal::Int(value), &DataType::Int64).unwrap()
}

/// Rows (i, i * 7919 % modulus) for i below `rows`.
pub fn rows(query: &mut Query, name: &str, rows: usize, modulus: i64) -> (Rel, usize, usize) {
    let numbers: Vec<i64> = (0..rows as i64).collect();
    let keys: Vec<i64> = numbers.iter().map(|i| i * 7919 % modulus).collect();
    let batch = RecordBatch::try_from_iter([
        ("i", Arc::new(Int64Array::from(numbers)) as _),
        ("k", Arc::new(Int64Array::from(keys)) as _),
    ])
    .unwrap();
    let i = query.add(format!("{name}.i"), int());
    let k = query.add(format!("{name}.k"), int());
    let vars = vec![i, k];
    (Rel::Values { vars, batch }, i, k)
}

pub fn prepared(query: Query, root: Rel, vars: Vec<usize>) -> Prepared {
    let fields: Vec<Field> = vars
        .iter()
        .map(|var| Field::new(format!("c{var}"), DataType::Int64, true))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    engine::prepare(query, root, Output { vars, schema }).unwrap()
}

#[derive(Clone, Copy, Debug)]
pub enum Join {
    Inner,
    Semi,
    Anti,
    Left,
    Full,
}

/// Joins `left` and `right` where vector `k` of the left equals `key` of the right. Returns the join, and its vectors
/// for `i` and `k` of the left.
pub fn joined(
    query: &mut Query,
    join: Join,
    left: Rel,
    right: Rel,
    (mut i, mut k, key): (usize, usize, usize),
) -> (Rel, usize, usize) {
    let (left, right) = (Box::new(left), Box::new(right));
    let (equal, residual) = (vec![(k, key)], vec![]);
    let rel = match join {
        Join::Inner => Rel::Join {
            inputs: vec![*left, *right],
            equal,
            residual,
        },
        Join::Semi | Join::Anti => Rel::Semi {
            input: left,
            other: right,
            equal,
            residual,
            anti: matches!(join, Join::Anti),
        },
        Join::Left => Rel::Left {
            left,
            right,
            equal,
            residual,
            outer: vec![],
        },
        Join::Full => {
            let ty = Type::of(&DataType::Int64, true)
                .unwrap()
                .within((0, 1 << 22));
            let outer = [
                query.add("i or NULL", ty.clone()),
                query.add("k or NULL", ty),
            ];
            let outer = vec![(i, outer[0]), (k, outer[1])];
            (i, k) = (outer[0].1, outer[1].1);
            Rel::Full {
                left,
                right,
                equal,
                residual,
                outer,
            }
        }
    };
    (rel, i, k)
}

/// `select k, count(*), sum(more) from rel group by k order by k`.
pub fn counted(mut query: Query, rel: Rel, k: usize, more: usize) -> Prepared {
    let vars = [query.add("count", long()), query.add("sum", long())];
    let folds = vec![
        Fold {
            var: vars[0],
            function: Function::Count,
            arg: None,
        },
        Fold {
            var: vars[1],
            function: Function::Sum,
            arg: Some(more),
        },
    ];
    let rel = Rel::Sort {
        input: Box::new(Rel::Fold {
            input: Box::new(rel),
            keys: vec![k],
            folds,
        }),
        keys: vec![Key {
            var: k,
            descending: false,
            nulls_first: true,
        }],
        skip: 0,
        fetch: None,
    };
    prepared(query, rel, vec![k, vars[0], vars[1]])
}
