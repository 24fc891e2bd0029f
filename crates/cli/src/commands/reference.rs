//! `atoll reference`, a hidden command: writes the reference page of the command line.

use std::io::Write;

use crate::failure::Failure;
use crate::terminal::out;

/// Writes `page` to standard output.
pub fn run(page: &str) -> Result<(), Failure> {
    let mut out = out::stdout();
    write!(out, "{page}")?;
    Ok(out.flush()?)
}
