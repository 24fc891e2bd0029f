//! What the tokens of a place may carry.

use std::fmt;
use std::sync::Arc;

use crate::expression::Expression;

/// A type of tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Type {
    /// Its name.
    pub name: Arc<str>,
    /// How the incidence matrix writes a token of it, such as `u`.
    pub symbol: String,
    /// What its tokens carry.
    pub kind: Kind,
}

/// What a token carries.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Nothing.
    Unit,
    /// Yes or no.
    Flag,
    /// A number between two bounds, which may name parameters.
    Number {
        /// The least it may be.
        least: Expression,
        /// The most it may be.
        most: Expression,
        /// Whether it must be an integer.
        whole: bool,
    },
    /// One of these names.
    Text {
        /// The names.
        of: Vec<Arc<str>>,
    },
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Unit => write!(f, "plain tokens, ()"),
            Kind::Flag => write!(f, "true or false"),
            Kind::Number { least, most, whole } => {
                let what = if *whole { "integers" } else { "numbers" };
                write!(f, "{what} from {least} to {most}")
            }
            Kind::Text { of } => write!(f, "one of '{}'", of.join("', '")),
        }
    }
}
