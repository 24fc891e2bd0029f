//! Evaluation of expressions over the vectors of a batch.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use algebra::filter::{self, Op};
use algebra::lift;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{cast, concat};
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::expr::arithmetic::without_zero;
use crate::expr::expression::{INFINITE, may_be_infinite};
use crate::expr::{Arithmetic, Expr, Extreme, Literal, Node, PerLabel, Ranged};
use crate::vector::batch::Batch;
use crate::vector::strings::Strings;
use crate::vector::value::{Kind, Type, Values, Vector};

/// What expressions read: the vectors of a batch, and the values of scalar subqueries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub batch: &'a Batch,
    pub parameters: &'a [Option<Vector>],
}

impl<'a> Context<'a> {
    /// Evaluates `e`: one value per row.
    pub fn eval(&self, e: &Expr) -> Result<Cow<'a, Vector>> {
        match &e.node {
            Node::Var(var) => Ok(Cow::Borrowed(self.batch.get(*var)?)),
            _ => Ok(Cow::Owned(self.compute(e)?)),
        }
    }

    /// The rows for which `e` is true; false and NULL both exclude a row.
    pub fn mask(&self, e: &Expr) -> Result<Vec<bool>> {
        let vector = self.eval(e)?.into_owned();
        let Values::Bool(mut mask) = vector.values else {
            return Err(Error::internal("a predicate that is no truth value"));
        };
        if let Some(valid) = vector.valid {
            mask.iter_mut()
                .zip(valid)
                .for_each(|(hit, valid)| *hit &= valid);
        }
        Ok(mask)
    }

    fn compute(&self, e: &Expr) -> Result<Vector> {
        let rows = self.batch.rows;
        match &e.node {
            Node::Var(var) => Ok(self.batch.get(*var)?.clone()),
            Node::Literal(literal) => repeat(literal, e.ty.kind, rows),
            Node::Parameter(number) => {
                let value = self.parameters.get(*number).and_then(Option::as_ref);
                let value = value.ok_or_else(|| Error::internal("a subquery that did not run"))?;
                value.at(&vec![0; rows])
            }
            Node::Arithmetic(op, a, b) => self.arithmetic(*op, a, b, &e.ty),
            Node::Compare(op, a, b) => self.compare(*op, a, b),
            Node::Extreme(which, a, b) => self.extreme(*which, a, b),
            Node::And(all) => self.logic(all, true),
            Node::Or(all) => self.logic(all, false),
            Node::Not(inner) => {
                let mut vector = self.eval(inner)?.into_owned();
                if let Values::Bool(mask) = &mut vector.values {
                    mask.iter_mut().for_each(|v| *v = !*v);
                }
                Ok(vector)
            }
            Node::IsNull(inner) => {
                let nulls = match &self.eval(inner)?.valid {
                    Some(valid) => valid.iter().map(|v| !v).collect(),
                    None => vec![false; rows],
                };
                Ok(Vector::new(Values::Bool(nulls)))
            }
            Node::Case(branches, last) => self.case(branches, last, e.ty.kind),
            Node::In(inner, set) => {
                let vector = self.eval(inner)?;
                let mut out = Vec::new();
                filter::in_set_i64(ints(&vector)?, set, &mut out);
                Ok(with(Values::Bool(out), &vector))
            }
            Node::Widen(inner) => {
                let vector = self.eval(inner)?;
                let wide = ints(&vector)?.iter().map(|v| i128::from(*v)).collect();
                Ok(with(Values::Wide(wide), &vector))
            }
            Node::Scale(inner, factor) => self.scale(inner, *factor),
            Node::Float(inner, divisor) => self.float(inner, *divisor),
            Node::Year(inner) => {
                let vector = self.eval(inner)?;
                check_finite(inner, &vector)?;
                let mut out = Vec::new();
                lift::year_of_day(ints(&vector)?, &mut out);
                without_zero(&mut out);
                Ok(with(Values::Int(out), &vector))
            }
            Node::Ranged(ranged) => self.ranged(ranged),
            Node::Labels(inner, per) => self.labels(inner, per, &e.ty),
            Node::Call(args, call) => {
                let mut arrays = Vec::with_capacity(args.len());
                for arg in args {
                    arrays.push(self.eval(arg)?.decoded(&arg.ty)?);
                }
                let array = call.call(&arrays, rows).map_err(Error::Call)?;
                Vector::from_arrow(&array, &e.ty)
            }
        }
    }

    fn ranged(&self, ranged: &Ranged) -> Result<Vector> {
        let vector = self.eval(&ranged.of)?;
        let proven = ranged.otherwise.is_none();
        match (ranged.kernel.apply(&vector, proven)?, &ranged.otherwise) {
            (Some(found), _) => Ok(found),
            (None, Some(otherwise)) => self.compute(otherwise),
            (None, None) => Err(Error::internal("numbers beside their bounds")),
        }
    }

    fn arithmetic(&self, op: Arithmetic, a: &Expr, b: &Expr, ty: &Type) -> Result<Vector> {
        if let (
            Arithmetic::Sub | Arithmetic::Add | Arithmetic::Mul,
            Some(Literal::Int(constant)),
            Kind::Int,
        ) = (op, a.constant(), ty.kind)
        {
            let b = self.eval(b)?;
            let mut out = Vec::new();
            let values = ints(&b)?;
            match op {
                Arithmetic::Add => lift::add_i64_const(values, *constant, &mut out),
                Arithmetic::Sub => lift::rsub_i64_const(*constant, values, &mut out),
                _ => lift::mul_i64_const(values, *constant, &mut out),
            }
            return Ok(with(Values::Int(out), &b));
        }
        if let Some(Literal::Float(constant)) = b.constant() {
            return self.float_and_constant(op, a, *constant);
        }
        let (a, b) = (self.eval(a)?, self.eval(b)?);
        let values = match (&a.values, &b.values) {
            (Values::Int(x), Values::Int(y)) => {
                let mut out = Vec::with_capacity(x.len());
                match op {
                    Arithmetic::Add => lift::add_i64(x, y, &mut out),
                    Arithmetic::Sub => lift::sub_i64(x, y, &mut out),
                    _ => lift::mul_i64(x, y, &mut out),
                }
                Values::Int(out)
            }
            (Values::Float(x), Values::Float(y)) => {
                let mut out = Vec::new();
                match op {
                    Arithmetic::Add => lift::add_f64(x, y, &mut out),
                    Arithmetic::Sub => lift::sub_f64(x, y, &mut out),
                    Arithmetic::Mul => lift::mul_f64(x, y, &mut out),
                    Arithmetic::Div => lift::div_f64(x, y, &mut out),
                }
                Values::Float(out)
            }
            (Values::Wide(x), Values::Wide(y)) => {
                Values::Wide(wide(op, x, y, both(&a, &b).as_deref(), ty)?)
            }
            _ => return Err(Error::internal("arithmetic of different kinds")),
        };
        Ok(Vector {
            values,
            valid: both(&a, &b),
        })
    }

    /// Whole numbers as floats, divided by a power of ten.
    fn float(&self, inner: &Expr, divisor: f64) -> Result<Vector> {
        let vector = self.eval(inner)?;
        let mut out = Vec::new();
        match &vector.values {
            Values::Int(v) if divisor == 1.0 => lift::to_f64(v, &mut out),
            Values::Int(v) => out.extend(v.iter().map(|v| *v as f64 / divisor)),
            Values::Wide(v) => out.extend(v.iter().map(|v| *v as f64 / divisor)),
            _ => return Err(Error::internal("a float of such a value")),
        }
        Ok(with(Values::Float(out), &vector))
    }

    fn float_and_constant(&self, op: Arithmetic, a: &Expr, constant: f64) -> Result<Vector> {
        let a = self.eval(a)?;
        let Values::Float(values) = &a.values else {
            return Err(Error::internal("arithmetic of different kinds"));
        };
        let mut out = Vec::new();
        match op {
            Arithmetic::Add => lift::add_f64_const(values, constant, &mut out),
            Arithmetic::Sub => lift::sub_f64_const(values, constant, &mut out),
            Arithmetic::Mul => lift::mul_f64_const(values, constant, &mut out),
            Arithmetic::Div => lift::div_f64_const(values, constant, &mut out),
        }
        Ok(with(Values::Float(out), &a))
    }

    fn extreme(&self, which: Extreme, a: &Expr, b: &Expr) -> Result<Vector> {
        let a = self.eval(a)?;
        let found = b.constant().and_then(|b| which.of_constant(&a, b));
        match found {
            Some(found) => Ok(found),
            None => which.of_vectors(&a, self.eval(b)?.as_ref()),
        }
    }

    fn compare(&self, op: Op, a: &Expr, b: &Expr) -> Result<Vector> {
        let mut out = Vec::new();
        let left = self.eval(a)?;
        if let (Values::Int(x), Some(Literal::Int(y))) = (&left.values, b.constant()) {
            filter::compare_i64_const(op, x, *y, &mut out);
            return Ok(with(Values::Bool(out), &left));
        }
        let right = self.eval(b)?;
        match (&left.values, &right.values) {
            (Values::Int(x), Values::Int(y)) => filter::compare_i64(op, x, y, &mut out),
            (Values::Wide(x), Values::Wide(y)) => filter::compare_i128(op, x, y, &mut out),
            (Values::Float(x), Values::Float(y)) => filter::compare_f64(op, x, y, &mut out),
            (Values::Bool(x), Values::Bool(y)) => {
                out.extend(x.iter().zip(y).map(|(x, y)| holds(op, x.cmp(y))));
            }
            (Values::Text(_) | Values::Code(_), Values::Text(_) | Values::Code(_)) => {
                out = compare_texts(op, (&left, &a.ty), (&right, &b.ty))?;
            }
            _ => return Err(Error::internal("comparing different kinds")),
        }
        Ok(Vector {
            values: Values::Bool(out),
            valid: both(&left, &right),
        })
    }

    /// Evaluates a conjunction (`all`) or a disjunction, with three-valued logic.
    fn logic(&self, parts: &[Expr], all: bool) -> Result<Vector> {
        let rows = self.batch.rows;
        let mut value = vec![all; rows];
        let mut valid: Option<Vec<bool>> = None;
        for part in parts {
            let vector = self.eval(part)?;
            let Values::Bool(next) = &vector.values else {
                return Err(Error::internal("logic of no truth values"));
            };
            if valid.is_some() || vector.valid.is_some() {
                let known = valid.get_or_insert_with(|| vec![true; rows]);
                for row in 0..rows {
                    let there = vector.valid.as_ref().is_none_or(|v| v[row]);
                    // Decided if one side has the deciding value; known if it is decided, or both sides are known.
                    let settled = known[row] && value[row] != all || there && next[row] != all;
                    known[row] = settled || known[row] && there;
                    value[row] = if settled { !all } else { all };
                }
            } else if all {
                value.iter_mut().zip(next).for_each(|(v, n)| *v &= n);
            } else {
                value.iter_mut().zip(next).for_each(|(v, n)| *v |= n);
            }
        }
        Ok(Vector {
            values: Values::Bool(value),
            valid,
        })
    }

    fn case(&self, branches: &[(Expr, Expr)], last: &Expr, kind: Kind) -> Result<Vector> {
        if let (Kind::Text | Kind::Code, [(when, then)]) = (kind, branches) {
            // A string or NULL.
            let (mask, mut vector) = (self.mask(when)?, self.eval(then)?.into_owned());
            match &mut vector.valid {
                Some(valid) => valid.iter_mut().zip(mask).for_each(|(v, hit)| *v &= hit),
                None => vector.valid = Some(mask),
            }
            return Ok(vector);
        }
        let mut result = self.branch(last, kind)?;
        for (when, then) in branches.iter().rev() {
            let mask = self.mask(when)?;
            let then = self.branch(then, kind)?;
            macro_rules! chosen {
                ($a:ident, $b:ident) => {
                    $a.iter_mut()
                        .zip($b)
                        .zip(&mask)
                        .for_each(|((a, b), hit)| *a = if *hit { *b } else { *a })
                };
            }
            if result.valid.is_some() || then.valid.is_some() {
                let rows = mask.len();
                let valid = result.valid.get_or_insert_with(|| vec![true; rows]);
                for row in (0..rows).filter(|row| mask[*row]) {
                    valid[row] = then.valid.as_ref().is_none_or(|v| v[row]);
                }
            }
            match (&mut result.values, &then.values) {
                (Values::Int(a), Values::Int(b)) => chosen!(a, b),
                (Values::Wide(a), Values::Wide(b)) => chosen!(a, b),
                (Values::Float(a), Values::Float(b)) => chosen!(a, b),
                (Values::Bool(a), Values::Bool(b)) => chosen!(a, b),
                _ => return Err(Error::internal("branches of different kinds")),
            }
        }
        Ok(result)
    }

    fn branch(&self, e: &Expr, kind: Kind) -> Result<Vector> {
        match e.constant() {
            Some(Literal::Null) => Ok(Vector::nulls(kind, self.batch.rows)),
            _ => Ok(self.eval(e)?.into_owned()),
        }
    }

    fn scale(&self, inner: &Expr, factor: i128) -> Result<Vector> {
        let vector = self.eval(inner)?;
        let values = match &vector.values {
            Values::Int(v) => {
                Values::Int(v.iter().map(|v| v.wrapping_mul(factor as i64)).collect())
            }
            Values::Wide(v) => {
                let valid = vector.valid.as_deref();
                let factors = vec![factor; v.len()];
                Values::Wide(checked(v, &factors, valid, i128::checked_mul, i128::MAX)?)
            }
            _ => return Err(Error::internal("a scale of such a value")),
        };
        Ok(with(values, &vector))
    }

    fn labels(&self, inner: &Expr, per: &PerLabel, ty: &Type) -> Result<Vector> {
        let codes = self.eval(inner)?;
        let answers = answers(inner, per, ty)?;
        let Values::Code(list) = &codes.values else {
            return Err(Error::internal("labels of no codes"));
        };
        let null = answers.len() as u32 - 1;
        let coded: Cow<'_, [u32]> = match &codes.valid {
            None => Cow::Borrowed(list),
            Some(valid) => list
                .iter()
                .zip(valid)
                .map(|(c, v)| if *v { *c } else { null })
                .collect(),
        };
        answers.at(&coded)
    }
}

/// The function's value for each label, and last for NULL.
fn answers<'p>(arg: &Expr, per: &'p PerLabel, ty: &Type) -> Result<&'p Vector> {
    if let Some(found) = per.values.get() {
        return Ok(found);
    }
    let Some(labels) = &arg.ty.labels else {
        return Err(Error::internal("codes without labels"));
    };
    let null = arrow::array::new_null_array(labels.labels().data_type(), 1);
    let all: ArrayRef = concat(&[labels.labels().as_ref(), null.as_ref()])?;
    let all = match &arg.ty.data {
        DataType::Utf8View => all,
        other => cast(&all, other)?,
    };
    let array = per
        .call
        .call(std::slice::from_ref(&all), all.len())
        .map_err(Error::Call)?;
    let vector = Vector::from_arrow(&array, ty)?;
    Ok(per.values.get_or_init(|| vector))
}

pub(crate) fn ints(vector: &Vector) -> Result<&[i64]> {
    match &vector.values {
        Values::Int(v) => Ok(v),
        _ => Err(Error::internal("expected whole numbers of 64 bits")),
    }
}

fn holds(op: Op, order: Ordering) -> bool {
    match op {
        Op::Eq => order.is_eq(),
        Op::Ne => order.is_ne(),
        Op::Lt => order.is_lt(),
        Op::Le => order.is_le(),
        Op::Gt => order.is_gt(),
        Op::Ge => order.is_ge(),
    }
}

/// Compares texts by their bytes. What comes of a NULL is arbitrary.
///
/// # Errors
/// Those of [`Vector::to_arrow`].
fn compare_texts(op: Op, a: (&Vector, &Type), b: (&Vector, &Type)) -> Result<Vec<bool>> {
    if let (Values::Code(x), Values::Code(y), Op::Eq | Op::Ne) = (&a.0.values, &b.0.values, op)
        && a.1.represents_as(b.1)
    {
        let pairs = x.iter().zip(y);
        return Ok(pairs.map(|(x, y)| holds(op, x.cmp(y))).collect());
    }
    let texts = |(vector, ty): (&Vector, &Type)| {
        vector.to_arrow(&Type {
            data: DataType::Utf8View,
            ..ty.clone()
        })
    };
    let (x, y) = (texts(a)?, texts(b)?);
    let (x, y) = (x.as_string_view(), y.as_string_view());
    let rows = 0..x.len().min(y.len());
    Ok(rows
        .map(|row| holds(op, x.value(row).cmp(y.value(row))))
        .collect())
}

/// `values`, NULL where `like` is NULL.
fn with(values: Values, like: &Vector) -> Vector {
    Vector {
        values,
        valid: like.valid.clone(),
    }
}

/// The validity of a result that is NULL if either operand is.
fn both(a: &Vector, b: &Vector) -> Option<Vec<bool>> {
    match (&a.valid, &b.valid) {
        (None, None) => None,
        (Some(v), None) | (None, Some(v)) => Some(v.clone()),
        (Some(a), Some(b)) => Some(a.iter().zip(b).map(|(a, b)| a & b).collect()),
    }
}

fn wide(
    op: Arithmetic,
    a: &[i128],
    b: &[i128],
    valid: Option<&[bool]>,
    ty: &Type,
) -> Result<Vec<i128>> {
    let f = match op {
        Arithmetic::Add => i128::checked_add,
        Arithmetic::Sub => i128::checked_sub,
        Arithmetic::Mul => i128::checked_mul,
        Arithmetic::Div => return Err(Error::internal("division of whole numbers")),
    };
    checked(a, b, valid, f, ty.bounds.1)
}

fn checked(
    a: &[i128],
    b: &[i128],
    valid: Option<&[bool]>,
    f: fn(i128, i128) -> Option<i128>,
    most: i128,
) -> Result<Vec<i128>> {
    let mut out = Vec::with_capacity(a.len());
    for (row, (x, y)) in a.iter().zip(b).enumerate() {
        match f(*x, *y) {
            Some(v) if v.unsigned_abs() <= most.unsigned_abs() => out.push(v),
            _ if valid.is_some_and(|valid| !valid[row]) => out.push(0),
            _ => {
                return Err(Error::Overflow {
                    what: "the result of an arithmetic operation".into(),
                });
            }
        }
    }
    Ok(out)
}

/// A vector of so many times the same value.
///
/// # Errors
/// None.
pub(crate) fn repeat(literal: &Literal, kind: Kind, rows: usize) -> Result<Vector> {
    Ok(Vector::new(match literal {
        Literal::Null => return Ok(Vector::nulls(kind, rows)),
        Literal::Int(v) => Values::Int(vec![*v; rows]),
        Literal::Wide(v) => Values::Wide(vec![*v; rows]),
        Literal::Float(v) => Values::Float(vec![*v; rows]),
        Literal::Bool(v) => Values::Bool(vec![*v; rows]),
        Literal::Text(v) => {
            let one: ArrayRef = Arc::new(arrow::array::StringViewArray::from_iter_values([v]));
            Values::Text(Strings::new(one).at(&vec![0; rows]))
        }
    }))
}

/// That none of the values of `e`, which are dates, is infinite: of such there is no year.
///
/// # Errors
/// [`Error::Overflow`] if one is.
fn check_finite(e: &Expr, dates: &Vector) -> Result<()> {
    if may_be_infinite(e) && any_infinite(ints(dates)?, dates.valid.as_deref()) {
        return Err(Error::Overflow {
            what: "the year of an infinite date".into(),
        });
    }
    Ok(())
}

/// Whether one of these days is infinite, and not NULL.
fn any_infinite(days: &[i64], valid: Option<&[bool]>) -> bool {
    let is_infinite = |day: i64| (day >= INFINITE[0]) | (day <= INFINITE[1]);
    // All are looked at, which takes no branches.
    if !days.iter().fold(false, |any, day| any | is_infinite(*day)) {
        return false;
    }
    let mut rows = days.iter().enumerate();
    rows.any(|(row, day)| is_infinite(*day) && valid.is_none_or(|valid| valid[row]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_infinite_dates_there_is_no_year() {
        let end = i64::from(i32::MAX);
        assert!(!any_infinite(&[1, end - 1, 1 - end], None));
        assert!(any_infinite(&[1, end], None));
        assert!(any_infinite(&[1, -end], None));
        assert!(any_infinite(&[1, -end - 1], Some(&[true, true])));
        assert!(!any_infinite(&[1, end], Some(&[true, false])));
    }
}
