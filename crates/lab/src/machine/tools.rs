//! Programs of the system that are used here, and the packages they are in.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, Result};

/// The emulator.
pub(crate) const QEMU: &str = "qemu-system-x86_64";

/// The versions of the emulator's plugin interface that the access counter is compiled for.
pub(crate) const PLUGIN_INTERFACES: [u32; 2] = [1, 4];

/// The plugin interface to use with the emulator that is installed.
///
/// # Errors
///
/// [`Error::Count`] for a version of the emulator that has neither.
pub(crate) fn plugin_interface() -> Result<u32> {
    let failed = |why: String| Error::Count { why };
    let text = run(Path::new("/"), QEMU, &["--version"]).map_err(failed)?;
    interface_of(&text).ok_or_else(|| {
        let line = text.lines().next().unwrap_or_default();
        failed(format!(
            "it needs QEMU 7, 8, or 9.2 and later, and this is '{line}'"
        ))
    })
}

/// Version 1 until QEMU 8, 4 from 9.2 on; what is between them is in no Debian or Ubuntu release.
fn interface_of(version: &str) -> Option<u32> {
    let (_, rest) = version.split_once("version ")?;
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    match (number()?, number()?) {
        (7 | 8, _) => Some(1),
        (9, 2..) | (10.., _) => Some(4),
        _ => None,
    }
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
    fn the_interface_follows_the_emulators_version() {
        for (text, interface) in [
            (
                "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)",
                Some(1),
            ),
            ("QEMU emulator version 8.2.2", Some(1)),
            ("QEMU emulator version 9.0.1", None),
            ("QEMU emulator version 10.0.2 (Debian)", Some(4)),
            ("QEMU emulator version 5.2.0", None),
            ("what?", None),
        ] {
            assert_eq!(interface_of(text), interface, "{text}");
        }
    }

    #[test]
    fn what_a_program_says_last_is_the_error() {
        let script = ["-c", "echo one >&2; echo; echo two >&2; exit 3"];
        let error = run(Path::new("/"), "sh", &script).unwrap_err();
        assert_eq!(error, "sh: one; two");
        assert!(run(Path::new("/"), "no-such-program", &[""; 0]).is_err());
    }
}
