//! JSON between processes of the lab: tasks are arguments of a command, results are lines of output.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Reads a value; `what` names it in the error.
///
/// # Errors
///
/// [`Error::Job`] if the text is no such value.
pub(crate) fn read<T: DeserializeOwned>(text: &str, what: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::Job {
        why: format!("{what} is not understood: {error}"),
    })
}

/// Writes a value as one line of text.
///
/// # Errors
///
/// [`Error::Output`] for a value that JSON cannot represent.
pub(crate) fn write(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Output {
        source: error.into(),
    })
}
