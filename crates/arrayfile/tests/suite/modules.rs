//! The Python that tests compare with.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A Python that runs `check` without an error, which imports what is needed: `$ATOLL_PYTHON`, that of `bench/run`, or the
/// system's.
pub fn python(check: &str) -> Option<PathBuf> {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/.venv/bin/python");
    let given = std::env::var_os("ATOLL_PYTHON").map(PathBuf::from);
    let candidates = given.into_iter().chain([bench, PathBuf::from("python3")]);
    candidates.into_iter().find(|python| {
        let ran = Command::new(python).args(["-c", check]).output();
        ran.is_ok_and(|output| output.status.success())
    })
}

/// Runs a script with arguments.
///
/// # Panics
/// If it fails, with what it says.
pub fn run(python: &Path, script: &str, arguments: &[&str]) {
    let ran = Command::new(python)
        .args(["-c", script])
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{arguments:?}: {said}");
}
