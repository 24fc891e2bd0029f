//! The files of a system, below a root that tests choose.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Where `/proc` and `/sys` are: the running system, or a folder that looks like one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    root: PathBuf,
}

impl System {
    /// The running system.
    pub fn real() -> System {
        System::at("/")
    }

    /// A folder with a `proc` and a `sys` in it. System calls are not made for it: what only
    /// they can tell is unavailable.
    pub fn at(root: impl Into<PathBuf>) -> System {
        System { root: root.into() }
    }

    /// Whether system calls mean what the files say.
    pub fn is_real(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The place of an absolute path.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A whole file. Names in it are bytes; what is not UTF-8 is replaced.
    pub(crate) fn text(&self, path: &str) -> io::Result<String> {
        let bytes = fs::read(self.path(path))?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// The names in a folder, in order.
    pub(crate) fn names(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(path))? {
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort_unstable();
        Ok(names)
    }
}

impl Default for System {
    fn default() -> System {
        System::real()
    }
}

/// An open folder. That of a process stays its folder: when the process has ended, files below
/// it are not found even where its number is in use again.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

impl Folder {
    pub(crate) fn open(path: &Path) -> io::Result<Folder> {
        Ok(Folder(File::open(path)?.into()))
    }

    fn file(&self, name: &str) -> io::Result<File> {
        let name = CString::new(name)?;
        // SAFETY: the folder is open, the name ends in a zero byte and outlives the call.
        let fd = unsafe {
            libc::openat(
                self.0.as_raw_fd(),
                name.as_ptr(),
                libc::O_RDONLY | libc::O_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just opened it, so nobody else owns it.
        Ok(unsafe { File::from_raw_fd(fd) })
    }

    /// A whole file, in the place of what is in `buffer`.
    pub(crate) fn read<'a>(&self, name: &str, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        buffer.clear();
        self.file(name)?.read_to_end(buffer)?;
        Ok(buffer)
    }

    /// A short file with one read, which is how the kernel hands out files of one record.
    pub(crate) fn record<'a>(&self, name: &str, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        buffer.resize(4096, 0);
        let bytes = self.file(name)?.read(buffer)?;
        Ok(&buffer[..bytes])
    }

    /// The names in a folder below that are numbers, ascending.
    pub(crate) fn numbers(&self, name: &str) -> io::Result<Vec<u32>> {
        // Through the descriptor, so that it is the same process's folder.
        let path = format!("/proc/self/fd/{}/{name}", self.0.as_raw_fd());
        let mut numbers = Vec::new();
        for entry in fs::read_dir(path)? {
            // A thread may end between two names: the others are still wanted.
            let Ok(entry) = entry else { continue };
            numbers.extend(
                entry
                    .file_name()
                    .to_str()
                    .and_then(|n| n.parse::<u32>().ok()),
            );
        }
        numbers.sort_unstable();
        Ok(numbers)
    }
}
