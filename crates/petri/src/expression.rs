//! Guards and inscriptions: what they say, and what they give.

use std::fmt;
use std::sync::Arc;

use crate::{Error, Result, Value};

/// A formula over named values, such as `u >= th_max and n_alloc < n_total`.
///
/// | from loose to tight | |
/// |---|---|
/// | `or`, `and`, `not` | of yes and no |
/// | `<` `<=` `>` `>=` | of numbers |
/// | `=` `!=` | of anything |
/// | `+` `-`, then `*` `/` | of numbers |
/// | `min(a, b)`, `max(a, b)` | of numbers |
/// | `70`, `0.5`, `'name'`, `true`, `false`, `()`, a name, parentheses | |
///
/// What has no value (a division by zero, `1 < 'a'`) is an error, not a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    text: Arc<str>,
    root: Term,
}

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

/// Where names get their values.
pub(crate) trait Names {
    fn value(&self, name: &str) -> Option<&Value>;
}

impl Expression {
    /// Reads a formula.
    ///
    /// # Errors
    ///
    /// [`Error::Expression`] with the place of what is wrong.
    ///
    /// ```
    /// use petri::Expression;
    ///
    /// assert!(Expression::parse("u >= 70 and not (n = 16)").is_ok());
    /// let error = Expression::parse("u >= ").unwrap_err();
    /// assert_eq!(error.to_string(), "'u >= ', character 6: a value is missing");
    /// ```
    pub fn parse(text: &str) -> Result<Expression> {
        Ok(Expression {
            text: text.into(),
            root: crate::parse::parse(text)?,
        })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name, where it is nothing but one.
    pub(crate) fn lone_name(&self) -> Option<&Arc<str>> {
        match &self.root {
            Term::Name(name) => Some(name),
            _ => None,
        }
    }

    /// All names in it.
    pub(crate) fn names(&self) -> Vec<&Arc<str>> {
        let mut names = Vec::new();
        let mut rest = vec![&self.root];
        while let Some(term) = rest.pop() {
            match term {
                Term::Value(_) => {}
                Term::Name(name) => names.push(name),
                Term::Not(of) | Term::Minus(of) => rest.push(of),
                Term::Two(_, a, b) => rest.extend([&**b, &**a]),
            }
        }
        names
    }

    /// What it gives.
    pub(crate) fn evaluate(&self, names: &impl Names) -> Result<Value> {
        evaluate(&self.root, names).map_err(|why| self.no_value(why))
    }

    /// What it gives, where that must be yes or no.
    pub(crate) fn holds(&self, names: &impl Names) -> Result<bool> {
        match self.evaluate(names)? {
            Value::Flag(flag) => Ok(flag),
            other => Err(self.no_value(format!("it gives {}, not yes or no", other.kind()))),
        }
    }

    fn no_value(&self, why: String) -> Error {
        Error::Evaluate {
            text: self.text.to_string(),
            why,
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

type Evaluated<T> = std::result::Result<T, String>;

fn evaluate(term: &Term, names: &impl Names) -> Evaluated<Value> {
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
