//! A store for as long as a command runs: it lies in a folder of its own, which goes with it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;

use crate::terminal::interrupt;

/// What the names of such folders begin with.
const PREFIX: &str = "atoll-memory-";

/// The file in such a folder that is locked while its process runs.
const LOCK: &str = "lock";

/// How old the lock of a folder is at least before another process may remove the folder: the process that has made it
/// may not have locked it yet.
const SETTLED: Duration = Duration::from_secs(60);

/// A store that goes when this does. What killed processes have left is removed when the next one is made.
pub struct Temporary {
    folder: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

impl Temporary {
    /// A folder for a store, in `$TMPDIR`, or where the system keeps temporary files on its disk.
    ///
    /// # Errors
    /// If no folder can be made in any of these places.
    pub fn new() -> anyhow::Result<Temporary> {
        let mut last = None;
        for place in places() {
            remove_left(&place);
            match Temporary::within(&place) {
                Ok(made) => {
                    let folder = made.folder.clone();
                    interrupt::before_exit(move || {
                        let _ = fs::remove_dir_all(&folder);
                    });
                    return Ok(made);
                }
                Err(error) => last = Some((place, error)),
            }
        }
        Err(match last {
            Some((place, error)) => anyhow!(
                "cannot make a temporary store in {}: {error}; set TMPDIR to a folder that may be written, or name a store",
                place.display()
            ),
            None => anyhow!("there is no folder for a temporary store; set TMPDIR"),
        })
    }

    fn within(place: &Path) -> io::Result<Temporary> {
        let process = std::process::id();
        let mut number = 0;
        let folder = loop {
            let folder = place.join(format!("{PREFIX}{process}-{number}"));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => break folder,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {
                    number += 1;
                }
                Err(error) => return Err(error),
            }
        };
        let locked = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(folder.join(LOCK))
            .and_then(|lock| lock.lock().map(|()| lock));
        match locked {
            Ok(lock) => Ok(Temporary {
                folder,
                _lock: lock,
            }),
            Err(error) => {
                let _ = fs::remove_dir_all(&folder);
                Err(error)
            }
        }
    }

    /// Where the store is to be made.
    pub fn store(&self) -> PathBuf {
        self.folder.join("memory.atoll")
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What cannot be removed now is removed when the next one is made.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Where temporary stores may lie, the best first: not in memory, as `/tmp` may be.
fn places() -> Vec<PathBuf> {
    match std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => vec![folder.into()],
        None => vec!["/var/tmp".into(), std::env::temp_dir()],
    }
}

/// Removes the folders in `place` of processes that were killed: nobody holds their locks.
fn remove_left(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if ours && is_left(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether the process that has made this folder has ended.
fn is_left(folder: &Path) -> bool {
    let Ok(lock) = File::open(folder.join(LOCK)) else {
        return false;
    };
    let made = lock.metadata().and_then(|lock| lock.modified());
    let old = made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > SETTLED));
    old && lock.try_lock().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_store_and_when_its_process_was_killed() {
        let place = tempfile::tempdir().unwrap();
        let names = || fs::read_dir(place.path()).unwrap().count();
        let one = Temporary::within(place.path()).unwrap();
        let two = Temporary::within(place.path()).unwrap();
        assert_ne!(one.store(), two.store());
        fs::write(one.store(), "a store").unwrap();
        drop(one);
        assert_eq!(names(), 1);

        // A lock that is held keeps its folder, however old it is; one that is not held does not.
        let left = place.path().join(format!("{PREFIX}1-0"));
        fs::create_dir(&left).unwrap();
        let lock = File::create(left.join(LOCK)).unwrap();
        remove_left(place.path());
        assert_eq!(names(), 2, "it has only just been made");
        let old = std::time::SystemTime::now() - 2 * SETTLED;
        lock.set_modified(old).unwrap();
        two._lock.set_modified(old).unwrap();
        remove_left(place.path());
        assert_eq!(names(), 1);
        assert!(two.folder.is_dir());
    }
}
