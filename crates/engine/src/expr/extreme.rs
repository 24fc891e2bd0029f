//! The least and the greatest of two numbers, of which NULLs are none.

use std::borrow::Cow;

use algebra::lift;
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::expr::{Expr, Extreme, Literal, Node};
use crate::vector::value::{Kind, Type, Values, Vector};

/// The least or the greatest of `a` and `b`, both of type `data`: the other one where one is NULL.
///
/// # Errors
/// [`Error::Unsupported`] for other types than those of floats and of what is counted in 64 bits.
pub fn extreme(which: Extreme, a: Expr, b: Expr, data: &DataType) -> Result<Expr> {
    let unfit = || Error::unsupported(format!("the {which} of {} and {}", a.ty.data, b.ty.data));
    let ty = Type::of(data, a.ty.nullable && b.ty.nullable).ok_or_else(unfit)?;
    let kind = a.ty.kind;
    let is_same = a.ty.data == *data && b.ty.data == *data && b.ty.kind == kind;
    if !is_same || !matches!(kind, Kind::Int | Kind::Float) {
        return Err(unfit());
    }
    let ty = match kind {
        Kind::Int => ty.within(which.bounds(&a.ty, &b.ty)),
        _ => ty,
    };
    if ty.kind != kind {
        return Err(unfit());
    }
    // There are kernels for a constant behind.
    let is_behind = a.constant().is_none();
    let (a, b) = if is_behind { (a, b) } else { (b, a) };
    Ok(Expr {
        node: Node::Extreme(which, Box::new(a), Box::new(b)),
        ty,
    })
}

/// `own`, and where it is NULL `other`.
fn filled<'v, T: Copy>(own: &'v [T], valid: Option<&[bool]>, other: &[T]) -> Cow<'v, [T]> {
    match valid {
        None => Cow::Borrowed(own),
        Some(valid) => {
            let mut out = Vec::new();
            lift::select(valid, own, other, &mut out);
            Cow::Owned(out)
        }
    }
}

impl Extreme {
    /// The least and the greatest result for numbers of these types.
    fn bounds(self, a: &Type, b: &Type) -> (i128, i128) {
        // What is never NULL bounds the result on one side alone.
        let end =
            |x: i128, y: i128, one: fn(i128, i128) -> i128, other: fn(i128, i128) -> i128| match (
                a.nullable, b.nullable,
            ) {
                (false, false) => one(x, y),
                (false, true) => x,
                (true, false) => y,
                (true, true) => other(x, y),
            };
        let (low, high) = ((a.bounds.0, b.bounds.0), (a.bounds.1, b.bounds.1));
        match self {
            Extreme::Least => (low.0.min(low.1), end(high.0, high.1, i128::min, i128::max)),
            Extreme::Greatest => (end(low.0, low.1, i128::max, i128::min), high.0.max(high.1)),
        }
    }

    /// The least or the greatest of the values of each row.
    ///
    /// # Errors
    /// An internal error for values of other kinds.
    pub(super) fn of_vectors(self, a: &Vector, b: &Vector) -> Result<Vector> {
        let (own, other) = (a.valid.as_deref(), b.valid.as_deref());
        let values = match (&a.values, &b.values) {
            (Values::Int(x), Values::Int(y)) => {
                Values::Int(self.ints(&filled(x, own, y), &filled(y, other, x)))
            }
            (Values::Float(x), Values::Float(y)) => {
                Values::Float(self.floats(&filled(x, own, y), &filled(y, other, x)))
            }
            _ => return Err(Error::internal("extremes of different kinds")),
        };
        let valid = own.zip(other).map(|(a, b)| {
            let rows = a.iter().zip(b);
            rows.map(|(a, b)| a | b).collect()
        });
        Ok(Vector { values, valid })
    }

    /// The least or the greatest of each value and a constant; `None` if that is none of the same kind.
    pub(super) fn of_constant(self, a: &Vector, constant: &Literal) -> Option<Vector> {
        let valid = a.valid.as_deref();
        Some(Vector::new(match (&a.values, constant) {
            (Values::Int(values), Literal::Int(constant)) => {
                let mut out = Vec::new();
                match self {
                    Extreme::Least => lift::least_i64_const(values, *constant, &mut out),
                    Extreme::Greatest => lift::greatest_i64_const(values, *constant, &mut out),
                }
                if let Some(valid) = valid {
                    lift::blank(&mut out, valid, *constant);
                }
                Values::Int(out)
            }
            (Values::Float(values), Literal::Float(constant)) => {
                let mut out = Vec::new();
                match self {
                    Extreme::Least => lift::least_f64_const(values, *constant, &mut out),
                    Extreme::Greatest => lift::greatest_f64_const(values, *constant, &mut out),
                }
                if let Some(valid) = valid {
                    lift::blank(&mut out, valid, *constant);
                }
                Values::Float(out)
            }
            _ => return None,
        }))
    }

    fn ints(self, a: &[i64], b: &[i64]) -> Vec<i64> {
        let mut out = Vec::new();
        match self {
            Extreme::Least => lift::least_i64(a, b, &mut out),
            Extreme::Greatest => lift::greatest_i64(a, b, &mut out),
        }
        out
    }

    fn floats(self, a: &[f64], b: &[f64]) -> Vec<f64> {
        let mut out = Vec::new();
        match self {
            Extreme::Least => lift::least_f64(a, b, &mut out),
            Extreme::Greatest => lift::greatest_f64(a, b, &mut out),
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(values: &[Option<i64>]) -> Vector {
        Vector {
            values: Values::Int(values.iter().map(|value| value.unwrap_or(77)).collect()),
            valid: Some(values.iter().map(Option::is_some).collect()),
        }
    }

    fn found(vector: &Vector) -> Vec<Option<i64>> {
        let Values::Int(values) = &vector.values else {
            panic!("{vector:?}")
        };
        let is_valid = |row: usize| vector.valid.as_ref().is_none_or(|valid| valid[row]);
        let rows = values.iter().enumerate();
        rows.map(|(row, value)| is_valid(row).then_some(*value))
            .collect()
    }

    #[test]
    fn nulls_are_none_of_the_numbers() {
        let a = numbers(&[Some(1), None, Some(3), None]);
        let b = numbers(&[Some(2), Some(-5), None, None]);
        let least = Extreme::Least.of_vectors(&a, &b).unwrap();
        assert_eq!(found(&least), [Some(1), Some(-5), Some(3), None]);
        let greatest = Extreme::Greatest.of_vectors(&a, &b).unwrap();
        assert_eq!(found(&greatest), [Some(2), Some(-5), Some(3), None]);
        let least = Extreme::Least.of_constant(&a, &Literal::Int(2)).unwrap();
        assert_eq!(found(&least), [Some(1), Some(2), Some(2), Some(2)]);
        assert!(Extreme::Least.of_constant(&a, &Literal::Null).is_none());
        let known = Vector::new(Values::Int(vec![0, 1, 2, 3]));
        let greatest = Extreme::Greatest.of_vectors(&known, &b).unwrap();
        assert_eq!(found(&greatest), [Some(2), Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn bounds_are_those_of_what_is_never_null() {
        let number = |bounds: (i128, i128), nullable: bool| {
            let ty = Type::of(&DataType::Int64, nullable).unwrap();
            Expr::var(0, ty.within(bounds))
        };
        for (a, b, least, greatest) in [
            (false, false, (0, 5), (3, 9)),
            (true, false, (0, 5), (3, 9)),
            (false, true, (0, 9), (0, 9)),
            (true, true, (0, 9), (0, 9)),
        ] {
            for (which, wanted) in [(Extreme::Least, least), (Extreme::Greatest, greatest)] {
                let (a, b) = (number((0, 9), a), number((3, 5), b));
                let nullable = a.ty.nullable && b.ty.nullable;
                let made = extreme(which, a, b, &DataType::Int64).unwrap();
                assert_eq!((made.ty.bounds, made.ty.nullable), (wanted, nullable));
            }
        }
        let (a, b) = (number((0, 9), false), number((3, 5), false));
        assert!(extreme(Extreme::Least, a, b, &DataType::Int32).is_err());
    }
}
