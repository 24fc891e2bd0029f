//! The syntax tree of an expression, and its evaluation.

use std::sync::Arc;

use crate::value::Value;

/// A node of the tree. The parser limits its depth, so recursion over it is safe.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Term {
    Value(Value),
    Name(Arc<str>),
    Not(Box<Term>),
    Minus(Box<Term>),
    Two(Operator, Box<Term>, Box<Term>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Less,
    AtMost,
    More,
    AtLeast,
    Same,
    Differs,
    Plus,
    Minus,
    Times,
    Over,
    Least,
    Most,
}

/// An environment: the values of names.
pub(crate) trait Names {
    fn value(&self, name: &str) -> Option<&Value>;
}

type Evaluated<T> = std::result::Result<T, String>;

/// The value of a formula.
///
/// # Errors
///
/// Why it has none, as half a sentence.
pub(crate) fn evaluate(term: &Term, names: &impl Names) -> Evaluated<Value> {
    match term {
        Term::Value(value) => Ok(value.clone()),
        Term::Name(name) => {
            let value = names.value(name).cloned();
            value.ok_or_else(|| format!("nothing is named {name}"))
        }
        Term::Not(of) => Ok(Value::Flag(!flag(evaluate(of, names)?)?)),
        Term::Minus(of) => finite(-number(&evaluate(of, names)?)?),
        // The second part may have no value where the first decides.
        Term::Two(Operator::Or, a, b) if !flag(evaluate(a, names)?)? => whole(evaluate(b, names)?),
        Term::Two(Operator::Or, ..) => Ok(Value::Flag(true)),
        Term::Two(Operator::And, a, b) if flag(evaluate(a, names)?)? => whole(evaluate(b, names)?),
        Term::Two(Operator::And, ..) => Ok(Value::Flag(false)),
        Term::Two(operator, a, b) => two(*operator, &evaluate(a, names)?, &evaluate(b, names)?),
    }
}

fn two(operator: Operator, a: &Value, b: &Value) -> Evaluated<Value> {
    let (x, y) = match operator {
        Operator::Same => return Ok(Value::Flag(a == b)),
        Operator::Differs => return Ok(Value::Flag(a != b)),
        _ => (number(a)?, number(b)?),
    };
    match operator {
        Operator::Less => Ok(Value::Flag(x < y)),
        Operator::AtMost => Ok(Value::Flag(x <= y)),
        Operator::More => Ok(Value::Flag(x > y)),
        Operator::AtLeast => Ok(Value::Flag(x >= y)),
        Operator::Plus => finite(x + y),
        Operator::Minus => finite(x - y),
        Operator::Times => finite(x * y),
        Operator::Over if y == 0.0 => Err("it divides by zero".to_owned()),
        Operator::Over => finite(x / y),
        Operator::Least => finite(x.min(y)),
        Operator::Most => finite(x.max(y)),
        // Taken care of above.
        Operator::Or | Operator::And | Operator::Same | Operator::Differs => {
            Err("it compares what is not a number".to_owned())
        }
    }
}

fn number(value: &Value) -> Evaluated<f64> {
    let number = value.as_number();
    number.ok_or_else(|| format!("a number is wanted, and {value} is {}", value.kind()))
}

fn flag(value: Value) -> Evaluated<bool> {
    match value {
        Value::Flag(flag) => Ok(flag),
        other => Err(format!(
            "a yes or no is wanted, and {other} is {}",
            other.kind()
        )),
    }
}

fn whole(value: Value) -> Evaluated<Value> {
    flag(value).map(Value::Flag)
}

fn finite(number: f64) -> Evaluated<Value> {
    Value::number(number).ok_or_else(|| "it is too large".to_owned())
}
