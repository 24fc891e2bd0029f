//! Files and folders that appear whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A file or folder that is written beside where it is to be: it takes its place with [`publish`](Aside::publish), and is
/// removed if that does not happen.
#[derive(Debug)]
pub(crate) struct Aside {
    path: PathBuf,
    target: PathBuf,
    published: bool,
    /// Locked: a killed process leaves what it has written behind, but not the lock.
    _lock: Option<fs::File>,
}

impl Aside {
    /// For `target`, which must not be there.
    ///
    /// # Errors
    /// [`Error::Exists`]; [`Error::Options`] for a path without a name.
    pub fn new(target: &Path) -> Result<Aside> {
        let name = target.file_name().ok_or_else(|| Error::Options {
            what: format!("{}: is no name for a file", target.display()),
        })?;
        if fs::symlink_metadata(target).is_ok() {
            return Err(Error::Exists {
                path: target.to_owned(),
            });
        }
        let mut part = std::ffi::OsString::from(".");
        part.push(name);
        // Of what an export left that was killed, nothing is in the way.
        part.push(format!(
            ".{}.{:08x}.part",
            std::process::id(),
            fastrand::u32(..)
        ));
        let folder = target.parent().filter(|of| !of.as_os_str().is_empty());
        io::remove_abandoned(folder.unwrap_or(Path::new(".")));
        Ok(Aside {
            path: target.with_file_name(part),
            target: target.to_owned(),
            published: false,
            _lock: None,
        })
    }

    /// Locks the file or folder, now that it is there, so that nobody takes it for one that was left behind.
    pub fn made(&mut self) {
        // Where there are no locks nothing is removed, either.
        self._lock = fs::File::open(&self.path)
            .ok()
            .filter(|file| file.try_lock().is_ok());
    }

    /// Where it is written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it in its place.
    ///
    /// # Errors
    /// [`Error::Exists`] if something else took the place meanwhile; [`Error::System`].
    pub fn publish(mut self) -> Result<()> {
        if fs::symlink_metadata(&self.target).is_ok() {
            return Err(Error::Exists {
                path: self.target.clone(),
            });
        }
        fs::rename(&self.path, &self.target).map_err(Error::system(&self.target, "write"))?;
        self.published = true;
        sync_folder(self.target.parent().unwrap_or(Path::new(".")))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.published {
            // What cannot be removed stays: there is nobody to tell.
            let _ = if self.path.is_dir() {
                fs::remove_dir_all(&self.path)
            } else {
                fs::remove_file(&self.path)
            };
        }
    }
}

/// Makes the names in a folder survive a loss of power.
///
/// # Errors
/// [`Error::System`].
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let opened = fs::File::open(folder).and_then(|file| file.sync_all());
    opened.map_err(Error::system(folder, "sync"))
}
