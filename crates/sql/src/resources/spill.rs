//! Files for what operators spill.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::spill_file::{SpillFile, TempFileFactory};
use parking_lot::Mutex;
use tempfile::TempDir;

/// Prefix of the names of spill directories.
const PREFIX: &str = "atoll-spill-";

/// Creates spill files in a directory of its own, which is made for the first file and removed when this is dropped.
///
/// The directory is made where the options say. If that cannot be written, the system's temporary directory is used
/// instead, although it may lie in memory.
pub(crate) struct SpillFiles {
    directory: PathBuf,
    files: Mutex<Option<Files>>,
}

/// The files of this process.
struct Files {
    manager: Arc<DiskManager>,
    /// Dropped after the files.
    _own: Option<Directory>,
}

/// A directory that no other process uses while this exists.
struct Directory {
    path: TempDir,
    /// Locked. A killed process leaves its directory behind, but not the lock.
    _lock: File,
}

impl Directory {
    /// A new directory in `parent`, after directories that killed processes left there are removed.
    fn new(parent: &Path) -> io::Result<Directory> {
        remove_left(parent);
        let path = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let lock = File::open(path.path())?;
        lock.try_lock()?;
        Ok(Directory { path, _lock: lock })
    }
}

/// Removes the directories of processes that are gone. What cannot be removed stays and does no harm.
fn remove_left(parent: &Path) {
    let entries = parent.read_dir().into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    for path in named.map(|entry| entry.path()) {
        let lock = File::open(&path);
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

impl SpillFiles {
    /// Files in a directory of their own in `directory`, in which those go that killed processes have left.
    pub(crate) fn new(directory: PathBuf) -> SpillFiles {
        remove_left(&directory);
        SpillFiles {
            directory,
            files: Mutex::new(None),
        }
    }

    fn manager(&self) -> Result<Arc<DiskManager>> {
        let mut files = self.files.lock();
        if let Some(files) = files.as_ref() {
            return Ok(Arc::clone(&files.manager));
        }
        let own = Directory::new(&self.directory).ok();
        let manager = match &own {
            Some(own) => {
                DiskManagerBuilder::default().with_mode(DiskManagerMode::Directories(vec![
                    own.path.path().to_path_buf(),
                ]))
            }
            None => DiskManagerBuilder::default(),
        };
        let manager = Arc::new(manager.build()?);
        *files = Some(Files {
            manager: Arc::clone(&manager),
            _own: own,
        });
        Ok(manager)
    }
}

impl TempFileFactory for SpillFiles {
    fn create_temp_file(&self, description: &str) -> Result<Arc<dyn SpillFile>> {
        self.manager()?.create_tmp_file(description)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_killed_processes_go_and_those_in_use_stay() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join(format!("{PREFIX}left"));
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("rows"), "1").unwrap();
        let other = parent.path().join("datafusion-of-somebody");
        std::fs::create_dir(&other).unwrap();
        let first = Directory::new(parent.path()).unwrap();
        assert!(!left.exists() && other.exists());
        let second = Directory::new(parent.path()).unwrap();
        assert!(first.path.path().exists());
        drop(first);
        assert!(second.path.path().exists());
        drop(second);
        // Nobody has to spill first.
        std::fs::create_dir(&left).unwrap();
        let files = SpillFiles::new(parent.path().to_owned());
        assert!(!left.exists());
        drop(files);
        let rest = parent.path().read_dir().unwrap().count();
        assert_eq!(rest, 1, "only what is not ours");
    }
}
