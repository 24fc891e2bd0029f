//! The one error type of this crate.

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What can be wrong with a net, or with a step of it. Each message names the net's part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A guard or an inscription that is not understood.
    #[error("'{}', character {at}: {why}", shorten(.text))]
    Expression {
        /// As given.
        text: String,
        /// Where, in characters from 1.
        at: usize,
        /// What is wrong.
        why: String,
    },
    /// A text that is not a net's TOML.
    #[error("not a net: {why}")]
    File {
        /// What is wrong, with the line.
        why: String,
    },
    /// A net that does not hold together.
    #[error("{part}: {why}")]
    Net {
        /// Which part of it.
        part: String,
        /// What is wrong.
        why: String,
    },
    /// A parameter, place or reading that the net does not have.
    #[error("the net has no {what} '{}'; it has {known}", shorten(.name))]
    Unknown {
        /// What was looked for.
        what: &'static str,
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The parameters do not meet what the net requires of them.
    #[error("the net requires {text}, and here {values}")]
    Requirement {
        /// The requirement.
        text: String,
        /// The parameters it is about, with their values.
        values: String,
    },
    /// An expression has no value.
    #[error("'{}': {why}", shorten(.text))]
    Evaluate {
        /// The expression.
        text: String,
        /// Why.
        why: String,
    },
    /// A token that the type of its place does not allow.
    #[error("place {place} takes {allowed}, not {}", shorten(.token))]
    Type {
        /// The place.
        place: String,
        /// The token.
        token: String,
        /// What would be allowed.
        allowed: String,
    },
    /// A transition was asked to fire that is not enabled.
    #[error("transition {transition} is not enabled in this marking")]
    NotEnabled {
        /// The transition.
        transition: String,
    },
    /// A check started where the last one had not come to its end.
    #[error("a check starts with one token in {place}, and there are {tokens}")]
    NotAtRest {
        /// The place that should hold one token.
        place: String,
        /// How many it holds.
        tokens: usize,
    },
    /// A check did not come back to rest.
    #[error("the check does not come back to rest: {fired} fired")]
    NoRest {
        /// The transitions that fired, the first few.
        fired: String,
    },
    /// More than there may be.
    #[error("more than {limit} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
}

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
