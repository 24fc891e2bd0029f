//! Terms as expressions of the engine.

use std::sync::Arc;

use arrow::datatypes::DataType;
use engine::{Arithmetic, Compare, Error, Expr, Kind, Literal as Value, Result};
use regex::Regex;

use crate::check::element::{self, Class, class, whole};
use crate::lower::call::{
    BitFunction, ChooseText, CompareStrings, FloatFunction, Substring, TextTest,
};
use crate::lower::lowering::{Frame, Lowering};
use crate::space::TermId;
use crate::syntax::{Function, Sign};
use crate::term::{Literal, Op, Term};

fn lost() -> Error {
    Error::Internal("a term that reads what was not joined".into())
}

impl Lowering<'_> {
    /// `term` over the vectors of `frame`.
    pub fn expr(&mut self, term: TermId, frame: &Frame) -> Result<Expr> {
        let terms = self.terms;
        let var = match terms.get(term) {
            Term::Column(instance, column) => frame.columns.get(&(*instance, *column)),
            Term::Aggregate(instance, n) => frame.aggregates.get(&(*instance, *n)),
            Term::Label(position) => frame.labels.get(*position),
            Term::Scalar(fold, n) => match frame.scalars.get(&(*fold, *n)) {
                None => return self.parameter(*fold, *n),
                found => found,
            },
            Term::Literal(value) => return literal(value),
            Term::Apply(op, args) => return self.apply(op, args, terms.data(term), frame),
            Term::Exists(instance) => {
                let found = frame.exists.get(instance).ok_or_else(lost)?;
                return Ok(engine::not(engine::is_null(self.query.expr(*found))));
            }
            Term::Present(_) | Term::Absent(_) => None,
        };
        Ok(self.query.expr(*var.ok_or_else(lost)?))
    }

    fn apply(&mut self, op: &Op, args: &[TermId], data: &DataType, frame: &Frame) -> Result<Expr> {
        let mut all = Vec::with_capacity(args.len());
        for arg in args {
            all.push(self.expr(*arg, frame)?);
        }
        let boolean = DataType::Boolean;
        match op {
            Op::Sign(Sign::And) => return Ok(engine::and(all)),
            Op::Sign(Sign::Or) => return Ok(engine::or(all)),
            Op::Case => return case(all, data),
            Op::In => return among(all),
            _ => {}
        }
        let mut rest = all.into_iter();
        let (Some(a), b) = (rest.next(), rest.next()) else {
            return Err(lost());
        };
        match (op, b) {
            (Op::Sign(sign), Some(b)) => binary(*sign, a, b, data),
            (Op::Not, _) => Ok(engine::not(a)),
            (Op::IsNull, _) => Ok(engine::is_null(a)),
            (Op::Flip, _) => engine::call(vec![a], Arc::new(BitFunction(None)), data),
            (Op::Match(pattern), _) => engine::call(
                vec![a],
                Arc::new(TextTest::Match(regex(pattern)?)),
                &boolean,
            ),
            (Op::Function(Function::Year), _) => engine::year(a, data),
            (Op::Function(Function::Substring), Some(b)) => {
                let args = [a, b].into_iter().chain(rest).collect();
                engine::call(args, Arc::new(Substring), data)
            }
            (Op::Function(function), b) => {
                let mut args = vec![float(a)?];
                args.extend(b.map(float).transpose()?);
                engine::call(args, Arc::new(FloatFunction(*function)), data)
            }
            _ => Err(lost()),
        }
    }
}

/// A pattern that was tried when the program was checked.
pub(crate) fn regex(pattern: &str) -> Result<Regex> {
    Regex::new(&whole(pattern)).map_err(|e| Error::Internal(e.to_string()))
}

fn literal(value: &Literal) -> Result<Expr> {
    match value {
        Literal::Number(digits, scale) => {
            Expr::literal(Value::Wide(*digits), &element::number(*scale))
        }
        Literal::Float(bits) => {
            Expr::literal(Value::Float(f64::from_bits(*bits)), &DataType::Float64)
        }
        Literal::Text(text) => Expr::literal(Value::Text(text.clone()), &DataType::Utf8View),
        Literal::Typed(value, data) => Expr::literal(Value::Int(*value), data),
        Literal::Truth(truth) => Expr::literal(Value::Bool(*truth), &DataType::Boolean),
        Literal::Null(data) => Expr::literal(Value::Null, data),
    }
}

fn float(e: Expr) -> Result<Expr> {
    engine::cast(e, &DataType::Float64)
}

fn comparison(sign: Sign) -> Option<Compare> {
    Some(match sign {
        Sign::Eq => Compare::Eq,
        Sign::Ne => Compare::Ne,
        Sign::Lt => Compare::Lt,
        Sign::Le => Compare::Le,
        Sign::Gt => Compare::Gt,
        Sign::Ge => Compare::Ge,
        _ => return None,
    })
}

fn binary(sign: Sign, a: Expr, b: Expr, data: &DataType) -> Result<Expr> {
    if let Some(op) = comparison(sign) {
        return compare(sign, op, a, b);
    }
    let op = match sign {
        Sign::Add => Arithmetic::Add,
        Sign::Sub => Arithmetic::Sub,
        Sign::Mul => Arithmetic::Mul,
        Sign::Div => Arithmetic::Div,
        bits => return engine::call(vec![a, b], Arc::new(BitFunction(Some(bits))), data),
    };
    match class(data) {
        Class::Float => engine::arithmetic(op, float(a)?, float(b)?, data),
        _ => engine::arithmetic(op, a, b, data),
    }
}

fn compare(sign: Sign, op: Compare, a: Expr, b: Expr) -> Result<Expr> {
    let text = |e: &Expr| matches!(e.ty.kind, Kind::Text | Kind::Code);
    if text(&a) || text(&b) {
        let test: Arc<dyn engine::Call> = match b.constant() {
            Some(Value::Text(with)) => Arc::new(TextTest::Compare(sign, with.clone())),
            _ => {
                return engine::call(
                    vec![a, b],
                    Arc::new(CompareStrings(sign)),
                    &DataType::Boolean,
                );
            }
        };
        return engine::call(vec![a], test, &DataType::Boolean);
    }
    if a.ty.kind == Kind::Float || b.ty.kind == Kind::Float {
        engine::compare(op, float(a)?, float(b)?)
    } else {
        engine::compare(op, a, b)
    }
}

/// Condition, value, condition, value, ..., last value.
fn case(mut all: Vec<Expr>, data: &DataType) -> Result<Expr> {
    if class(data) == Class::Text {
        return engine::call(all, Arc::new(ChooseText), data);
    }
    let last = engine::cast(all.pop().ok_or_else(lost)?, data)?;
    let mut branches = Vec::with_capacity(all.len() / 2);
    let mut rest = all.into_iter();
    while let (Some(when), Some(then)) = (rest.next(), rest.next()) {
        branches.push((when, engine::cast(then, data)?));
    }
    engine::case(branches, last, data)
}

/// The first is one of the others.
fn among(all: Vec<Expr>) -> Result<Expr> {
    let mut rest = all.into_iter();
    let of = rest.next().ok_or_else(lost)?;
    if matches!(of.ty.kind, Kind::Text | Kind::Code) {
        let texts = rest.filter_map(|e| match e.constant() {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        });
        let test = TextTest::In(texts.collect());
        return engine::call(vec![of], Arc::new(test), &DataType::Boolean);
    }
    let mut set = Vec::new();
    let mut others = Vec::new();
    for one in rest {
        let (same, value) = engine::alike(of.clone(), one.clone()).unwrap_or((of.clone(), one));
        match value.constant() {
            // In the scale of the vector, and so in its numbers.
            Some(Value::Int(number))
                if same.ty.scale() == of.ty.scale() && of.ty.kind == Kind::Int =>
            {
                set.push(*number);
            }
            _ => others.push(compare(Sign::Eq, Compare::Eq, of.clone(), value)?),
        }
    }
    if !set.is_empty() {
        others.push(engine::in_set(of, set)?);
    }
    match others.len() {
        1 => Ok(others.remove(0)),
        _ => Ok(engine::or(others)),
    }
}
