//! The errors for parts of a statement that are not supported.

use messages::{Error, Result};

/// "`what` is not supported".
pub fn refused(what: &str) -> Error {
    Error::unsupported(format!("`{what}` is not supported"))
}

/// The same with what to do instead.
pub(crate) fn refused_for(what: &str, instead: &str) -> Error {
    Error::unsupported(format!("`{what}` is not supported: {instead}"))
}

/// Refuses the first of `parts` that is there.
pub(crate) fn none_of(parts: &[(bool, &str)]) -> Result<()> {
    match parts.iter().find(|(there, _)| *there) {
        Some((_, what)) => Err(refused(what)),
        None => Ok(()),
    }
}
