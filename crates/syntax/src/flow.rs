//! Between results and the control flow of visitors of syntax trees.

use std::ops::ControlFlow;

use messages::{Error, Result};

/// Breaks off a visit with the error of `checked`.
pub fn flow(checked: Result<()>) -> ControlFlow<Box<Error>> {
    match checked {
        Ok(()) => ControlFlow::Continue(()),
        Err(e) => ControlFlow::Break(Box::new(e)),
    }
}

/// The outcome of a visit: the error with which it was broken off, if it was.
pub fn outcome(visited: ControlFlow<Box<Error>>) -> Result<()> {
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(e) => Err(*e),
    }
}
