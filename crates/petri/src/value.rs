//! What a token carries.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A finite number. There is one zero, so that equal numbers are the same token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number(f64);

impl Number {
    /// `None` for NaN and infinities.
    pub fn new(number: f64) -> Option<Number> {
        // Adding zero turns the negative one into the other.
        number.is_finite().then_some(Number(number + 0.0))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Eq for Number {}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// What a token carries, and what an expression gives.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// Nothing: the token of an ordinary place/transition net.
    Unit,
    /// Yes or no.
    Flag(bool),
    /// A number.
    Number(Number),
    /// A name.
    Text(Arc<str>),
}

impl Value {
    /// A number; `None` for NaN and infinities.
    pub fn number(number: f64) -> Option<Value> {
        Number::new(number).map(Value::Number)
    }

    /// The number, where it is one.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(number.get()),
            _ => None,
        }
    }

    /// What it is, in a word.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Unit => "the plain token",
            Value::Flag(_) => "a yes or no",
            Value::Number(_) => "a number",
            Value::Text(_) => "a name",
        }
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value::Number(Number(f64::from(number)))
    }
}

/// As it is written in an expression.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unit => write!(f, "()"),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Number(number) => write!(f, "{}", number.0),
            Value::Text(text) => write!(f, "'{text}'"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_one_token() {
        assert_eq!(Value::number(0.0), Value::number(-0.0));
        assert_eq!(
            Number::new(-0.0).unwrap().cmp(&Number::new(0.0).unwrap()),
            Ordering::Equal
        );
        for none in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Value::number(none), None);
        }
        assert!(Value::number(2.0) < Value::number(10.0));
    }
}
