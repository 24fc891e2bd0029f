//! The external programs that are needed, and the Debian packages that contain them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};

/// The emulator.
pub(crate) const QEMU: &str = "qemu-system-x86_64";

/// Whether the emulator that is installed runs the access counter.
///
/// # Errors
///
/// [`Error::Count`] for a version with another plugin interface. A port of the counter to QEMU 10.0.2
/// (Debian 13, and the backports of Debian 12) was tried: numbers that translated code adds to broke
/// programs in the guest, and in two of five boots a page was taken to be where it had been before.
/// Booting takes as long as with 7.2, a loop of random reads a fifth longer. So 7.2 is what we use.
pub(crate) fn runs_plugin() -> Result<()> {
    let failed = |why: String| Error::Count { why };
    let text = run(Path::new("/"), QEMU, &["--version"]).map_err(failed)?;
    if matches!(major(&text), Some(7 | 8)) {
        return Ok(());
    }
    let line = text.lines().next().unwrap_or_default();
    Err(failed(format!(
        "it runs in QEMU 7.2 (Debian 12) or 8 (Ubuntu 24.04), and this is '{line}'; the machine \
         itself works: leave --count away"
    )))
}

/// The first number of the emulator's version.
fn major(version: &str) -> Option<u32> {
    let (_, rest) = version.split_once("version ")?;
    rest.split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let debian = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)\nCopyright";
        assert_eq!(major(debian), Some(7));
        assert_eq!(major("QEMU emulator version 10.0.2"), Some(10));
        assert_eq!(major("what?"), None);
    }

    #[test]
    fn what_a_program_says_last_is_the_error() {
        let script = ["-c", "echo one >&2; echo; echo two >&2; exit 3"];
        let error = run(Path::new("/"), "sh", &script).unwrap_err();
        assert_eq!(error, "sh: one; two");
        assert!(run(Path::new("/"), "no-such-program", &[""; 0]).is_err());
    }
}
