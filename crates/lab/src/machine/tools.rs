//! Programs of the system that are used here, and the packages they are in.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, Result};

/// The emulator.
pub(crate) const QEMU: &str = "qemu-system-x86_64";

/// Programs to run a machine.
const TO_RUN: [(&str, &str); 1] = [(QEMU, "qemu-system-x86")];

/// Programs to make the image as well.
const TO_BUILD: [(&str, &str); 3] = [
    (QEMU, "qemu-system-x86"),
    ("cc", "gcc libc6-dev"),
    ("xz", "xz-utils"),
];

/// Checks that what a machine is run with is installed, and what its image is made with if it
/// has yet to be made.
pub(crate) fn check(build: bool) -> Result<()> {
    let needed: &[_] = if build { &TO_BUILD } else { &TO_RUN };
    let missing: Vec<_> = needed
        .iter()
        .filter(|(program, _)| find(program).is_none())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::Missing {
        programs: missing.iter().map(|(program, _)| *program).collect(),
        packages: missing.iter().map(|(_, package)| *package).collect(),
    })
}

/// The program's path, if it is on the search path.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

/// Runs a program to its end in `directory`. On failure the text is what it wrote last.
pub(crate) fn run<S: AsRef<OsStr>>(
    directory: &Path,
    program: &str,
    arguments: &[S],
) -> std::result::Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .env("LC_ALL", "C")
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = said[said.len().saturating_sub(3)..].join("; ");
    Err(format!("{program}: {last}"))
}
