//! The one error type of this crate.

use std::fmt;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What can be wrong with a net, or with a step of it. Each message names the net's part.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A guard or an inscription that is not understood.
    Expression {
        /// As given.
        text: String,
        /// Where, in characters from 1.
        at: usize,
        /// What is wrong.
        why: String,
    },
    /// A text that is not a net's TOML.
    File {
        /// What is wrong, with the line.
        why: String,
    },
    /// A net that does not hold together.
    Net {
        /// Which part of it.
        part: String,
        /// What is wrong.
        why: String,
    },
    /// A parameter, place or reading that the net does not have.
    Unknown {
        /// What was looked for.
        what: &'static str,
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The parameters do not meet what the net requires of them.
    Requirement {
        /// The requirement.
        text: String,
        /// The parameters it is about, with their values.
        values: String,
    },
    /// An expression has no value.
    Evaluate {
        /// The expression.
        text: String,
        /// Why.
        why: String,
    },
    /// A token that the type of its place does not allow.
    Type {
        /// The place.
        place: String,
        /// The token.
        token: String,
        /// What would be allowed.
        allowed: String,
    },
    /// A transition was asked to fire that is not enabled.
    NotEnabled {
        /// The transition.
        transition: String,
    },
    /// A check started where the last one had not come to its end.
    NotAtRest {
        /// The place that should hold one token.
        place: String,
        /// How many it holds.
        tokens: usize,
    },
    /// A check did not come back to rest.
    NoRest {
        /// The transitions that fired, the first few.
        fired: String,
    },
    /// More than there may be.
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Expression { text, at, why } => {
                write!(f, "'{}', character {at}: {why}", shorten(text))
            }
            Error::File { why } => write!(f, "not a net: {why}"),
            Error::Net { part, why } => write!(f, "{part}: {why}"),
            Error::Unknown { what, name, known } => {
                write!(
                    f,
                    "the net has no {what} '{}'; it has {known}",
                    shorten(name)
                )
            }
            Error::Requirement { text, values } => {
                write!(f, "the net requires {text}, and here {values}")
            }
            Error::Evaluate { text, why } => write!(f, "'{}': {why}", shorten(text)),
            Error::Type {
                place,
                token,
                allowed,
            } => write!(f, "place {place} takes {allowed}, not {}", shorten(token)),
            Error::NotEnabled { transition } => {
                write!(f, "transition {transition} is not enabled in this marking")
            }
            Error::NotAtRest { place, tokens } => write!(
                f,
                "a check starts with one token in {place}, and there are {tokens}"
            ),
            Error::NoRest { fired } => {
                write!(f, "the check does not come back to rest: {fired} fired")
            }
            Error::TooMany { what, limit } => write!(f, "more than {limit} {what}"),
        }
    }
}

impl std::error::Error for Error {}

/// The first part of an input, so that a message stays one readable line.
fn shorten(text: &str) -> String {
    const MOST: usize = 80;
    let mut short: String = text
        .chars()
        .take(MOST)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(MOST).is_some() {
        short.push_str("...");
    }
    short
}
