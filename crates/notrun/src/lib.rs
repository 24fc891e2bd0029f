//! The one way in which a test says that it cannot run on this machine.
//!
//! A test that returns early looks as if it had passed, and what it prints is swallowed by the harness. [`not_run`]
//! writes past the harness, so that a person sees it; `./test` counts what was said at its end, and fails in CI
//! where the test is not among those that are known to need another machine (`.ci/elsewhere`). Where all tests must
//! run, on the emulated machine for one, the test fails.
//!
//! ```
//! fn cpus() -> usize {
//!     std::thread::available_parallelism().map_or(1, usize::from)
//! }
//!
//! # fn threads_move_apart() {
//! if cpus() < 2 {
//!     return notrun::not_run("with one cpu there is nowhere to move to");
//! }
//! # }
//! # threads_move_apart();
//! ```

use std::env;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Write};

/// The variable that, if set, makes a test that cannot run fail.
pub const MUST_RUN: &str = "ATOLL_ALL_MUST_RUN";

/// The variable that names the file in which `./test` counts tests that were not run.
pub const COUNTED: &str = "ATOLL_NOT_RUN";

/// Says that the test that calls this cannot run here, and why. The test is to return then.
///
/// # Panics
/// If [`MUST_RUN`] is set: here every test must run.
pub fn not_run(why: impl Display) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    assert!(
        env::var_os(MUST_RUN).is_none(),
        "{name} must run here ({MUST_RUN} is set), but: {why}"
    );
    let line = format!("NOT RUN: {name}: {why}\n");
    // Not by a macro: the harness takes what those print. Nothing is to be done where nobody listens.
    let _ = io::stderr().write_all(line.as_bytes());
    if let Some(path) = env::var_os(COUNTED) {
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        assert!(
            written.is_ok(),
            "{} cannot be written: {written:?}",
            path.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{COUNTED, MUST_RUN};

    /// What this program, run again for the test below, says and counts.
    fn run(variable: &str, value: &str) -> (bool, String) {
        let program = std::env::current_exe().unwrap();
        let output = Command::new(program)
            .args(["--exact", "tests::says_so", "--ignored"])
            .env_remove(MUST_RUN)
            .env_remove(COUNTED)
            .env(variable, value)
            .output()
            .unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }

    #[test]
    #[ignore = "run by the other tests, as a program of its own"]
    fn says_so() {
        super::not_run("it is but an example");
    }

    #[test]
    fn it_is_seen_and_counted() {
        let path = std::env::temp_dir().join(format!("not-run-{}", std::process::id()));
        let (passed, seen) = run(COUNTED, path.to_str().unwrap());
        let line = "NOT RUN: tests::says_so: it is but an example\n";
        assert!(passed && seen.contains(line), "{seen}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), line);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn where_all_must_run_it_fails() {
        let (passed, _) = run(MUST_RUN, "1");
        assert!(!passed);
    }
}
