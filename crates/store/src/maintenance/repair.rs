//! Repair: gives up the damaged end of a log when the user asks for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::disk::log_path;
use crate::log::report::Recovery;
use crate::options::{Access, Damage, Options};
use crate::store::handle::Store;

/// What [`repair`] found and did.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Repair {
    /// What is in the log, and what was given up.
    pub recovery: Recovery,
    /// Where the log is kept as it was; `None` where nothing was damaged and nothing was done.
    pub copy: Option<PathBuf>,
}

/// Makes a store usable again whose log is damaged: gives up the damaged record and all that
/// follow it, after a copy of the log was made beside it (`path.log.damaged`).
///
/// The commits given up may have been acknowledged, and pages of the version before may have been
/// overwritten since: [`Store::check`] finds such pages. Nothing but the log is repaired.
///
/// # Errors
/// As [`Store::open`], and [`Error::Io`] where the copy cannot be made; nothing is given up then.
pub fn repair(path: impl AsRef<Path>, options: &Options) -> Result<Repair> {
    let path = path.as_ref();
    let open = |access| {
        let options = Options {
            access,
            damage: Damage::Drop,
            ..options.clone()
        };
        Store::open(path, &options)
    };
    let recovery = open(Access::Read)?.recovery().clone();
    let damaged = recovery
        .dropped
        .as_ref()
        .is_some_and(|d| d.damage.is_some());
    if !damaged {
        return Ok(Repair {
            recovery,
            copy: None,
        });
    }
    let copy = Some(copy(&log_path(path))?);
    open(Access::Write)?.close()?;
    Ok(Repair { recovery, copy })
}

/// Copies a log to a new file beside it, durably.
fn copy(log: &Path) -> Result<PathBuf> {
    let mut number = 0;
    let (path, mut target) = loop {
        let mut name = log.as_os_str().to_owned();
        name.push(match number {
            0 => ".damaged".to_string(),
            _ => format!(".damaged.{number}"),
        });
        let path = PathBuf::from(name);
        match fs::File::create_new(&path) {
            Ok(file) => break (path, file),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(failed(&path, error)),
        }
    };
    let copied = fs::File::open(log)
        .and_then(|mut log| std::io::copy(&mut log, &mut target))
        .and_then(|_| target.sync_all());
    match copied {
        Ok(()) => Ok(path),
        Err(error) => {
            let _ = fs::remove_file(&path);
            Err(failed(&path, error))
        }
    }
}

fn failed(path: &Path, source: std::io::Error) -> Error {
    Error::Io(Arc::new(io::Error::Os {
        path: path.to_path_buf(),
        action: "copying the log",
        offset: None,
        source: Arc::new(source),
    }))
}
