//! Files that statements write, which appear whole or not at all.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::NamedTempFile;
use tokio::sync::oneshot;

use crate::error::{Error, Result};

/// How the name of a temporary file ends.
const PART: &str = ".part";

/// The characters before that, which are drawn.
const DRAWN: usize = 6;

/// The longest name of a file that the name of the temporary one repeats; names have up to 255 bytes.
const LONGEST_NAME: usize = 200;

/// A file being written. The bytes go to a temporary file, which takes the place of the one that was asked for with
/// [`publish`](WholeFile::publish), and is removed if that does not happen.
#[derive(Debug)]
pub(crate) struct WholeFile {
    /// The path as it was given.
    path: PathBuf,
    file: Arc<File>,
    place: Place,
}

/// What becomes of the bytes once they are whole.
#[derive(Debug)]
enum Place {
    /// The temporary file is beside its target, and becomes that.
    Beside {
        aside: NamedTempFile,
        target: PathBuf,
    },
    /// A pipe or a device, which cannot be replaced: what the temporary file without a name has is copied to it.
    Stream,
}

impl WholeFile {
    /// Starts to write the file `path`; what a pipe or a device is to get is kept in `room` until it is whole.
    ///
    /// # Errors
    /// [`Error::File`] if `path` is a folder, or its folder is missing or may not be written.
    pub(crate) async fn create(path: &Path, room: PathBuf) -> Result<WholeFile> {
        let given = path.to_owned();
        let begun = tokio::task::spawn_blocking(move || WholeFile::begin(given, &room)).await;
        let begun = begun.map_err(Error::of_task)?;
        begun.map_err(|e| failed(path, &e))
    }

    fn begin(path: PathBuf, room: &Path) -> io::Result<WholeFile> {
        if is_stream(&path) {
            let file = tempfile::tempfile_in(room).or_else(|_| tempfile::tempfile())?;
            return Ok(WholeFile {
                path,
                file: Arc::new(file),
                place: Place::Stream,
            });
        }
        // The target of a link is replaced, not the link.
        let target = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let before = fs::metadata(&target).ok();
        if before.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if before.is_some() {
            // A file that this user may not write is not replaced either.
            OpenOptions::new().write(true).open(&target)?;
        }
        let aside = beside(&target)?;
        if let Some(before) = before {
            aside.as_file().set_permissions(before.permissions())?;
        }
        Ok(WholeFile {
            path,
            file: Arc::new(aside.as_file().try_clone()?),
            place: Place::Beside { aside, target },
        })
    }

    /// Where the bytes go, from the first on.
    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Puts the file in its place, where it survives a loss of power.
    ///
    /// # Errors
    /// Those of the system, as [`Error::File`], or as a full disk.
    pub(crate) async fn publish(self) -> Result<()> {
        let WholeFile { path, file, place } = self;
        let done = match place {
            Place::Beside { aside, target } => {
                let put = move || put(&file, aside, &target);
                let put = tokio::task::spawn_blocking(put).await;
                put.map_err(Error::of_task)?
            }
            Place::Stream => pour(file, path.clone()).await,
        };
        done.map_err(|e| failed(&path, &e))
    }
}

/// The error for a file that cannot be written.
pub(crate) fn failed(path: &Path, e: &io::Error) -> Error {
    if e.kind() == io::ErrorKind::StorageFull {
        return Error::Execution {
            code: "53100",
            message: format!("could not write to file \"{}\": {e}", path.display()),
        };
    }
    Error::File {
        path: path.to_owned(),
        message: format!("could not be written: {e}; check the folder and its permissions"),
    }
}

/// Whether `path` is a pipe or a device, or stands for what the process has open.
pub(crate) fn is_stream(path: &Path) -> bool {
    let open = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"];
    let other = |found: fs::Metadata| !found.is_file() && !found.is_dir();
    open.iter().any(|open| path.starts_with(open)) || fs::metadata(path).is_ok_and(other)
}

/// A new file in the folder of `target`, readable for whom new files are.
fn beside(target: &Path) -> io::Result<NamedTempFile> {
    let Some(name) = target.file_name() else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    let mut prefix = std::ffi::OsString::from(".");
    if name.len() <= LONGEST_NAME {
        prefix.push(name);
        prefix.push(".");
    }
    remove_left(folder(target), prefix.as_encoded_bytes());
    ::io::remove_abandoned(folder(target));
    let aside = tempfile::Builder::new()
        .prefix(&prefix)
        .suffix(PART)
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder(target))?;
    // A killed process leaves its file behind, but not the lock. Where there are no locks nothing is removed, either.
    let _ = aside.as_file().try_lock();
    Ok(aside)
}

/// Removes the temporary files of this prefix that processes have left which are gone.
fn remove_left(folder: &Path, prefix: &[u8]) {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let middle = name.as_encoded_bytes().strip_prefix(prefix);
        let middle = middle.and_then(|rest| rest.strip_suffix(PART.as_bytes()));
        let ours = middle.is_some_and(|middle| {
            middle.len() == DRAWN && middle.iter().all(u8::is_ascii_alphanumeric)
        });
        let path = entry.path();
        let left = ours && File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
        if left {
            let _ = fs::remove_file(path);
        }
    }
}

fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn put(file: &File, aside: NamedTempFile, target: &Path) -> io::Result<()> {
    file.sync_all()?;
    aside.persist(target).map_err(|e| e.error)?;
    // The name is an entry of the folder, which is synced on its own.
    File::open(folder(target))?.sync_all()
}

/// Writes what `file` has behind what `target` has. By a thread of its own, which may wait for long until somebody reads from a
/// pipe: a thread of the runtime would be waited for when that ends.
async fn pour(file: Arc<File>, target: PathBuf) -> io::Result<()> {
    let (tell, told) = oneshot::channel();
    let work = move || {
        let copied = OpenOptions::new()
            .append(true)
            .open(&target)
            .and_then(|mut out| {
                // Whoever wrote may have left it at its end.
                (&*file).rewind()?;
                io::copy(&mut &*file, &mut out)
            });
        // Whoever asked may be gone.
        let _ = tell.send(copied.map(|_| ()));
    };
    std::thread::Builder::new()
        .name("copy to a pipe".into())
        .spawn(work)?;
    told.await
        .unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    async fn written(path: &Path, bytes: &[u8]) -> Result<()> {
        let file = WholeFile::create(path, std::env::temp_dir()).await?;
        file.file().write_all_at(bytes, 0).unwrap();
        file.publish().await
    }

    #[tokio::test]
    async fn files_appear_when_they_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        fs::write(&path, "what was before").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let file = WholeFile::create(&path, std::env::temp_dir())
            .await
            .unwrap();
        file.file().write_all_at(b"half", 0).unwrap();
        assert_eq!(names(folder.path()).len(), 2);
        drop(file);
        assert_eq!(names(folder.path()), ["a.csv"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "what was before");

        written(&path, b"whole").await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        let longest = folder.path().join("n".repeat(255));
        written(&longest, b"new").await.unwrap();
        assert_eq!(fs::read_to_string(&longest).unwrap(), "new");
        assert_eq!(names(folder.path()).len(), 2);
    }

    /// What a killed process has left goes when the file is written again; what another writes stays.
    #[tokio::test]
    async fn files_of_killed_processes_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        fs::write(folder.path().join(".a.csv.Ab3xYz.part"), "half").unwrap();
        for other in [".b.csv.Ab3xYz.part", ".a.csv.own.part", "a.csv.part"] {
            fs::write(folder.path().join(other), "own").unwrap();
        }
        let room = std::env::temp_dir();
        let under_way = WholeFile::create(&path, room.clone()).await.unwrap();
        assert_eq!(names(folder.path()).len(), 4);
        written(&path, b"whole").await.unwrap();
        under_way.file().write_all_at(b"later", 0).unwrap();
        under_way.publish().await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "later");
        assert_eq!(names(folder.path()).len(), 4);
    }

    #[tokio::test]
    async fn links_stay_and_folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, "before").unwrap();
        symlink("a", &link).unwrap();
        written(&link, b"after").await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        for wrong in [folder.path(), &folder.path().join("none/a")] {
            assert_eq!(
                written(wrong, b"").await.unwrap_err().sqlstate(),
                "58030",
                "{wrong:?}"
            );
        }
    }

    #[tokio::test]
    async fn devices_are_written_and_not_replaced() {
        written(Path::new("/dev/null"), b"gone").await.unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let full = written(Path::new("/dev/full"), b"gone").await.unwrap_err();
        assert_eq!(full.sqlstate(), "53100", "{full}");
    }
}
