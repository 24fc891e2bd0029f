//! Values that processes of the lab hand each other, as JSON: tasks as words of a command, findings as lines of output.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Reads a value; `what` names it in the error.
///
/// # Errors
///
/// [`Error::Job`] where the text is no such value.
pub(crate) fn read<T: DeserializeOwned>(text: &str, what: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::Job {
        why: format!("{what} is not understood: {error}"),
    })
}

/// A value as text in one line.
///
/// # Errors
///
/// [`Error::Output`] for a value that JSON has no form for.
pub(crate) fn write(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Output {
        source: error.into(),
    })
}
