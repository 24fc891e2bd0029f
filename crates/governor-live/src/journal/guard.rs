//! The guard: a process beside the governor that puts everything back when this one is killed.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::journal::record::{Record, Undone, put_back};

/// Waits until the governor that started this process has ended, in whichever way, and puts back what it has left
/// changed. `from` is the reading end of a pipe whose other end only the governor holds.
///
/// # Errors
///
/// What the system refuses to put back.
pub fn guard(path: &Path, mut from: impl Read) -> Result<Vec<Undone>> {
    let mut rest = [0; 64];
    loop {
        match from.read(&mut rest) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    match fs::read(path) {
        Ok(text) => match serde_json::from_slice::<Record>(&text) {
            Ok(record) => {
                // Its files are closed a little before it has ended.
                let until = Instant::now() + Duration::from_secs(10);
                while record.governor.alive() && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(5));
                }
                put_back(path, &record)
            }
            // Another version's, which its own `undo` understands.
            Err(_) => Ok(Vec::new()),
        },
        Err(_) => Ok(Vec::new()),
    }
}

/// Starts the guard of this process: `command` with the record's path as its last argument.
pub(crate) fn start_guard(command: &[OsString], path: &Path) -> Result<Option<Child>> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    let mut guard = Command::new(program);
    guard.args(arguments).arg(path);
    guard
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // A group of its own: Ctrl-C is not for it.
    guard.process_group(0);
    let child = guard.spawn().map_err(|error| Error::Command {
        what: format!("starting {}", program.to_string_lossy()),
        why: error.to_string(),
    })?;
    Ok(Some(child))
}
