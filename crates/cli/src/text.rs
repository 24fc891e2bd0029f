//! Texts of statements and programs, from files and from standard input.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};

use crate::units;

/// Bytes of the longest text that is read from a file: a device may have no end.
const LONGEST: u64 = 256 << 20;

/// The text in a file.
pub fn of(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    let read = read.with_context(|| {
        format!(
            "cannot read {}; check the path, and that it is UTF-8 text",
            path.display()
        )
    })?;
    if read as u64 > LONGEST {
        bail!(
            "{}: longer than {}; split it",
            path.display(),
            units::bytes(LONGEST)
        );
    }
    Ok(text)
}

/// All of standard input.
pub fn of_standard_input() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .read_to_string(&mut text)
        .context("cannot read standard input; it must be UTF-8 text")?;
    Ok(text)
}
