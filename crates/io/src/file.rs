//! A device that is a file of the operating system.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::device::{Descriptor, Device};
use crate::direct::{self, Direct, Opened};
use crate::error::{Error, Result};

/// What an opened file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reading only.
    Read,
    /// Reading and writing.
    Write,
}

/// A regular file. Opening it keeps nobody else from doing so: that is what [`Lock`](crate::Lock) is for.
///
/// ```
/// use io::{Access, Device, File};
/// # let directory = tempfile::tempdir()?;
/// let path = directory.path().join("pages");
/// let file = File::create(&path)?;
/// file.write_at(4096, b"atoll")?;
/// file.sync()?;
/// drop(file);
///
/// let file = File::open(&path, Access::Read)?;
/// let mut word = [0; 5];
/// file.read_at(4096, &mut word)?;
/// assert_eq!(&word, b"atoll");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    file: fs::File,
    access: Access,
    /// Set by the first sync that fails and never cleared: the kernel drops the dirty pages it
    /// could not write, so a second sync would succeed without them being on disk.
    latched: AtomicBool,
    /// The file once more, opened for reads past the page cache.
    direct: Option<Opened>,
    direct_refused: Option<Error>,
}

impl File {
    /// Creates an empty file whose name survives a loss of power.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::NoDirectory`], [`Error::Denied`], [`Error::Full`].
    pub fn create(path: impl AsRef<Path>) -> Result<File> {
        let path = path.as_ref();
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(|source| match source.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Error::NoDirectory {
                    path: path.to_owned(),
                },
                _ => failed(path, "create", None, source),
            })?;
        let file = File::new(path, file, Access::Write);
        file.sync_name()?;
        Ok(file)
    }

    /// Makes the file and its name survive a loss of power, as [`create`](File::create) does: for
    /// a file that somebody else created and perhaps did not come so far with.
    ///
    /// # Errors
    /// What the operating system reports.
    pub fn sync_name(&self) -> Result<()> {
        self.file
            .sync_all()
            .map_err(|source| failed(&self.path, "sync", None, source))?;
        sync_directory(&self.path)
    }

    /// Opens a file that exists.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotAFile`], [`Error::Denied`].
    pub fn open(path: impl AsRef<Path>, access: Access) -> Result<File> {
        let path = path.as_ref();
        Ok(File::new(path, regular(path, access)?, access))
    }

    pub(crate) fn new(path: &Path, file: fs::File, access: Access) -> File {
        File {
            path: path.to_owned(),
            file,
            access,
            latched: AtomicBool::new(false),
            direct: None,
            direct_refused: None,
        }
    }

    /// The same file, whose reads through a [`Queue`](crate::Queue) go past the page cache as `wish`
    /// says. What is written, and what is read at once, still goes through the cache; the operating
    /// system keeps the two in agreement.
    ///
    /// # Errors
    /// [`Error::Direct`] where the file system refuses and `wish` is [`Direct::Always`].
    pub fn direct(mut self, wish: Direct) -> Result<File> {
        self.direct = None;
        self.direct_refused = None;
        if wish == Direct::Never {
            return Ok(self);
        }
        match direct::open(&self.path, &self.file) {
            Ok(opened) => self.direct = Some(opened),
            Err(error) if wish == Direct::Always => return Err(error),
            Err(error) => self.direct_refused = Some(error),
        }
        Ok(self)
    }

    /// Why reads go through the page cache though [`direct`](File::direct) was asked not to have them.
    pub fn direct_refused(&self) -> Option<&Error> {
        self.direct_refused.as_ref()
    }

    /// What the file was opened for.
    pub fn access(&self) -> Access {
        self.access
    }

    fn writable(&self) -> Result<()> {
        if self.access == Access::Read {
            return Err(Error::Denied {
                path: self.path.clone(),
            });
        }
        if self.latched.load(Ordering::Acquire) {
            return Err(Error::Latched {
                path: self.path.clone(),
            });
        }
        Ok(())
    }
}

impl File {
    fn fallocate(&self, offset: u64, bytes: u64) -> Result<()> {
        let failed = |source| failed(&self.path, "reserve", Some(offset), source);
        let too_large = |_| failed(std::io::Error::from_raw_os_error(libc::EFBIG));
        let start = libc::off_t::try_from(offset).map_err(too_large)?;
        let length = libc::off_t::try_from(bytes).map_err(too_large)?;
        loop {
            // SAFETY: the descriptor is open for as long as `self.file` lives; no memory is passed.
            let status = unsafe { libc::fallocate(self.file.as_raw_fd(), 0, start, length) };
            if status == 0 {
                return Ok(());
            }
            let source = std::io::Error::last_os_error();
            match source.raw_os_error() {
                Some(libc::EINTR) => {}
                // The file system cannot set room aside: the file only grows.
                Some(libc::EOPNOTSUPP | libc::ENOSYS) => {
                    let end = offset.saturating_add(bytes);
                    return if self.len()? < end {
                        self.set_len(end)
                    } else {
                        Ok(())
                    };
                }
                _ => return Err(failed(source)),
            }
        }
    }
}

impl Device for File {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let mut got = 0;
        while got < into.len() {
            match self.file.read_at(&mut into[got..], offset + got as u64) {
                Ok(0) => {
                    return Err(Error::ShortRead {
                        path: self.path.clone(),
                        offset,
                        wanted: into.len(),
                        got,
                    });
                }
                Ok(n) => got += n,
                Err(source) if source.kind() == ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(Error::Read {
                        path: self.path.clone(),
                        offset,
                        wanted: into.len(),
                        source: Arc::new(source),
                    });
                }
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<()> {
        self.writable()?;
        let mut done = 0;
        while done < from.len() {
            match self.file.write_at(&from[done..], offset + done as u64) {
                Ok(0) => {
                    return Err(Error::ShortWrite {
                        path: self.path.clone(),
                        offset,
                        wanted: from.len(),
                        got: done,
                    });
                }
                Ok(n) => done += n,
                Err(source) if source.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(failed(&self.path, "write", Some(offset), source)),
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.writable()?;
        // `fdatasync` also writes the length, the one piece of metadata we depend upon.
        self.file.sync_data().map_err(|source| {
            self.latched.store(true, Ordering::Release);
            failed(&self.path, "sync", None, source)
        })
    }

    fn len(&self) -> Result<u64> {
        let metadata = self
            .file
            .metadata()
            .map_err(|source| failed(&self.path, "measure", None, source))?;
        Ok(metadata.len())
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.writable()?;
        self.file
            .set_len(bytes)
            .map_err(|source| failed(&self.path, "resize", Some(bytes), source))
    }

    fn allocate(&self, offset: u64, bytes: u64) -> Result<()> {
        self.writable()?;
        if bytes == 0 {
            return Ok(());
        }
        let before = self.len()?;
        let result = self.fallocate(offset, bytes);
        if let Err(error) = result {
            // What was set aside before it failed: others may need it.
            if self.len().is_ok_and(|now| now > before) {
                let _ = self.file.set_len(before);
            }
            return Err(error);
        }
        Ok(())
    }

    fn forget(&self) -> Result<()> {
        // SAFETY: the descriptor is open for as long as `self.file` lives; no memory is passed.
        let status =
            unsafe { libc::posix_fadvise(self.file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        match status {
            0 => Ok(()),
            code => {
                let source = std::io::Error::from_raw_os_error(code);
                Err(failed(&self.path, "forget", None, source))
            }
        }
    }

    fn descriptor(&self) -> Option<Descriptor<'_>> {
        Some(match &self.direct {
            Some(opened) => Descriptor {
                fd: opened.file.as_fd(),
                direct: Some(opened.alignment),
            },
            None => Descriptor {
                fd: self.file.as_fd(),
                direct: None,
            },
        })
    }

    fn notes(&self) -> Vec<String> {
        self.direct_refused.iter().map(Error::to_string).collect()
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// Opens a regular file that exists.
pub(crate) fn regular(path: &Path, access: Access) -> Result<fs::File> {
    // Ask before opening: opening a fifo would wait for its other end.
    let kind = fs::metadata(path).map_err(|source| failed(path, "open", None, source))?;
    if !kind.is_file() {
        return Err(Error::NotAFile {
            path: path.to_owned(),
        });
    }
    fs::OpenOptions::new()
        .read(true)
        .write(access == Access::Write)
        .open(path)
        .map_err(|source| failed(path, "open", None, source))
}

/// Makes a new name durable: it is an entry of the directory, which is synced on its own.
fn sync_directory(path: &Path) -> Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::File::open(parent)
        .and_then(|directory| directory.sync_all())
        .map_err(|source| failed(parent, "sync", None, source))
}

/// The error for what the operating system reports.
pub(crate) fn failed(
    path: &Path,
    action: &'static str,
    offset: Option<u64>,
    source: std::io::Error,
) -> Error {
    let path = path.to_owned();
    match source.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Error::NotFound { path },
        ErrorKind::AlreadyExists => Error::Exists { path },
        ErrorKind::IsADirectory => Error::NotAFile { path },
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Error::Denied { path },
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Error::Full { path },
        _ => Error::Os {
            path,
            action,
            offset,
            source: Arc::new(source),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_device_is_told_from_other_failures() {
        // The device node that is always full stands for a disk that is.
        let path = Path::new("/dev/full");
        let node = fs::OpenOptions::new().write(true).open(path).unwrap();
        let file = File::new(path, node, Access::Write);
        let error = file.write_at(0, &[1; 100]).unwrap_err();
        assert!(matches!(error, Error::Full { .. }), "{error}");
        assert!(error.to_string().starts_with("/dev/full: no space left"));
        // What `fsync` makes of it is an error, which latches.
        assert!(matches!(file.sync(), Err(Error::Os { action: "sync", .. })));
        assert!(matches!(file.write_at(0, &[1]), Err(Error::Latched { .. })));
        assert!(matches!(file.sync(), Err(Error::Latched { .. })));
    }
}
