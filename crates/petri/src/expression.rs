//! Expressions: the formulas of guards and inscriptions.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::parse;
use crate::term::{Names, Term, evaluate};
use crate::value::Value;

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
            root: parse::parse(text)?,
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
