//! A file that appears whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A file being written. The bytes go to a temporary file beside it, which takes its place at
/// [`publish`](AtomicFile::publish) and is removed if that never happens: a failure leaves what was there before. Pipes
/// and devices are written directly.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    out: BufWriter<File>,
    /// The temporary file; none once it is published, and for pipes and devices.
    aside: Option<Aside>,
    /// Where the part begins that [`undo`](AtomicFile::undo) removes; none if nothing can be removed.
    mark: Option<u64>,
}

/// A temporary file, and the file whose place it will take.
#[derive(Debug)]
struct Aside {
    path: PathBuf,
    target: PathBuf,
}

impl AtomicFile {
    /// Starts to write the file `path`.
    ///
    /// # Errors
    /// If its folder is missing or may not be written, or `path` is a folder.
    pub fn create(path: &Path) -> anyhow::Result<AtomicFile> {
        let begun = AtomicFile::begin(path);
        begun.with_context(|| {
            format!(
                "cannot write {}; check the folder and its permissions",
                path.display()
            )
        })
    }

    fn begin(path: &Path) -> io::Result<AtomicFile> {
        // The target of a link is replaced, not the link.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let before = fs::metadata(&target).ok();
        if before.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let (file, aside) = match &before {
            Some(before) if !before.is_file() => {
                (OpenOptions::new().write(true).open(&target)?, None)
            }
            _ => {
                // A file that this user may not write is not replaced either.
                if before.is_some() {
                    OpenOptions::new().write(true).open(&target)?;
                }
                let aside = Aside::new(target)?;
                let file = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .open(&aside.path)?;
                // A killed process leaves its file behind, but not the lock.
                let _ = file.try_lock();
                if let Some(before) = before {
                    file.set_permissions(before.permissions())?;
                }
                (file, Some(aside))
            }
        };
        Ok(AtomicFile {
            path: path.to_owned(),
            mark: aside.as_ref().map(|_| 0),
            out: BufWriter::with_capacity(64 << 10, file),
            aside,
        })
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Marks the place from which [`undo`](AtomicFile::undo) removes what is written.
    pub fn mark(&mut self) -> io::Result<()> {
        if self.mark.is_some() {
            self.mark = Some(self.out.stream_position()?);
        }
        Ok(())
    }

    /// Removes what was written since the last [`mark`](AtomicFile::mark).
    pub fn undo(&mut self) -> io::Result<()> {
        let Some(mark) = self.mark else {
            return Ok(());
        };
        // On a full disk the flush fails; what it has written of the buffer is removed all the same.
        let _ = self.out.flush();
        let file = self.out.get_mut();
        file.set_len(mark)?;
        file.seek(io::SeekFrom::Start(mark)).map(|_| ())
    }

    /// Puts the file in its place. What is written afterwards is appended to it.
    pub fn publish(&mut self) -> io::Result<()> {
        self.out.flush()?;
        if let Some(aside) = &self.aside {
            fs::rename(&aside.path, &aside.target)?;
        }
        self.aside = None;
        Ok(())
    }
}

impl Aside {
    /// Creates a temporary file beside `target`, with a name that nobody else uses.
    fn new(target: PathBuf) -> io::Result<Aside> {
        let Some(name) = target.file_name() else {
            return Err(io::ErrorKind::InvalidFilename.into());
        };
        let mut beside = std::ffi::OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}.part", std::process::id()));
        let path = target.with_file_name(beside);
        let folder = path.parent().filter(|of| !of.as_os_str().is_empty());
        ::io::remove_abandoned(folder.unwrap_or(Path::new(".")));
        // In a container the process that was killed may have had the number of this one.
        if File::open(&path).is_ok_and(|left| left.try_lock().is_ok()) {
            let _ = fs::remove_file(&path);
        }
        Ok(Aside { path, target })
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(aside) = &self.aside {
            // Nothing more can be done about a file that cannot be removed.
            let _ = fs::remove_file(&aside.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_when_it_is_published() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(names(folder.path()), ["a.csv"]);

        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"one\n").unwrap();
        file.publish().unwrap();
        file.mark().unwrap();
        file.write_all(b"half a tw").unwrap();
        file.flush().unwrap();
        file.undo().unwrap();
        file.write_all(b"three\n").unwrap();
        file.publish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\nthree\n");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!((mode & 0o777, names(folder.path()).len()), (0o640, 1));
    }

    #[test]
    fn files_of_killed_processes_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        // No process has so high a number.
        fs::write(folder.path().join(".b.csv.4194999.part"), "half").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        let other = AtomicFile::create(&folder.path().join("c.csv")).unwrap();
        assert_eq!(names(folder.path()).len(), 2);
        file.publish().unwrap();
        drop(other);
        assert_eq!(names(folder.path()), ["a.csv"]);
    }

    #[test]
    fn links_stay_and_folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, "before").unwrap();
        symlink("a", &link).unwrap();
        let mut file = AtomicFile::create(&link).unwrap();
        file.write_all(b"after").unwrap();
        file.publish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(AtomicFile::create(folder.path()).is_err());
        assert!(AtomicFile::create(&folder.path().join("none/a")).is_err());
        let mut device = AtomicFile::create(Path::new("/dev/null")).unwrap();
        device.write_all(b"gone").unwrap();
        device.publish().unwrap();
    }
}
