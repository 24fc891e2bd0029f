//! File locks: one writer, any number of readers, and who holds a lock, for messages.
//!
//! One process writes a store while any number read it. Three bytes far beyond any data carry the
//! locks (open file description locks, which hold between processes as well as within one and go
//! with the descriptor, also when the process is killed):
//!
//! | byte | held exclusively | held shared |
//! |---|---|---|
//! | `WRITER` | by the one writer, from opening to closing | never |
//! | `READER` | never; only asked for | by each reader, for as long as it may read old pages |
//! | `ROOTS` | by the writer while it replaces roots and the log | by a reader while it opens |
//!
//! The writer holds a `flock` too: programs before version 0.2 know only that, and the kernel tells
//! the holder's process number for it (`/proc/locks`), which it does not for the others.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::file::{Access, failed};
use crate::holder::Holder;

const WRITER: i64 = 1 << 62;
const READER: i64 = WRITER + 1;
const ROOTS: i64 = WRITER + 2;

/// How often a lock is asked for that others hold only briefly.
const PATIENCE: Duration = Duration::from_millis(2);

/// The locks of a file that this process may hold, on a descriptor of their own.
///
/// ```
/// use io::{Access, Lock};
/// # let directory = tempfile::tempdir()?;
/// let path = directory.path().join("data");
/// std::fs::write(&path, "")?;
/// let (writer, reader) = (Lock::open(&path, Access::Write)?, Lock::open(&path, Access::Read)?);
/// writer.write()?;
/// reader.read()?;
/// assert!(reader.is_written()? && writer.is_read()?);
/// assert!(Lock::open(&path, Access::Write)?.write().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: fs::File,
}

/// The roots do not change (a reader's) or nobody opens (the writer's) until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Roots<'l> {
    lock: &'l Lock,
}

impl Drop for Roots<'_> {
    fn drop(&mut self) {
        // Nothing can be done about a failure, and closing the descriptor gives it back as well.
        let _ = self.lock.set(ROOTS, libc::F_UNLCK);
    }
}

impl Lock {
    /// Opens the file for its locks; takes none yet. A lock opened for reading cannot become the
    /// writer's.
    ///
    /// # Errors
    /// As [`File::open`](crate::File::open).
    pub fn open(path: impl AsRef<Path>, access: Access) -> Result<Lock> {
        let path = path.as_ref();
        let file = crate::file::regular(path, access)?;
        Ok(Lock {
            path: path.to_owned(),
            file,
        })
    }

    /// Becomes the one writer, until [`stop_writing`](Lock::stop_writing).
    ///
    /// # Errors
    /// [`Error::Busy`] with the process that writes; [`Error::Denied`] if this was opened for reading.
    pub fn write(&self) -> Result<()> {
        // First the one that others look at by trying to take it: those let go at once.
        let deadline = Instant::now() + 50 * PATIENCE;
        while let Err(error) = self.file.try_lock() {
            match error {
                fs::TryLockError::WouldBlock
                    if Instant::now() < deadline && !self.is_written()? =>
                {
                    std::thread::sleep(PATIENCE);
                }
                fs::TryLockError::WouldBlock => return Err(self.busy()),
                fs::TryLockError::Error(source) => {
                    return Err(failed(&self.path, "lock", None, source));
                }
            }
        }
        match self.set(WRITER, libc::F_WRLCK) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let busy = self.busy();
                self.stop_writing();
                Err(busy)
            }
            Err(error) => {
                self.stop_writing();
                Err(error)
            }
        }
    }

    /// Lets others write.
    pub fn stop_writing(&self) {
        // As in `Roots::drop`.
        let _ = self.set(WRITER, libc::F_UNLCK);
        let _ = self.file.unlock();
    }

    /// Becomes a reader, for as long as this lives: what it may still read is not overwritten.
    ///
    /// # Errors
    /// [`Error::Busy`] where a program writes that does not know of readers beside it.
    pub fn read(&self) -> Result<()> {
        let deadline = Instant::now() + 50 * PATIENCE;
        self.set(READER, libc::F_RDLCK)?;
        while !self.is_written()? {
            match self.file.try_lock_shared() {
                Ok(()) => {
                    let unlocked = self.file.unlock();
                    return unlocked.map_err(|source| failed(&self.path, "unlock", None, source));
                }
                // Or the writer has the one lock and does not have the other yet.
                Err(fs::TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(PATIENCE);
                }
                Err(fs::TryLockError::WouldBlock) => {
                    let busy = self.busy();
                    let _ = self.set(READER, libc::F_UNLCK);
                    return Err(busy);
                }
                Err(fs::TryLockError::Error(source)) => {
                    return Err(failed(&self.path, "lock", None, source));
                }
            }
        }
        Ok(())
    }

    /// Whether anybody else is the writer.
    ///
    /// # Errors
    /// What the operating system reports.
    pub fn is_written(&self) -> Result<bool> {
        self.is_held(WRITER, libc::F_RDLCK)
    }

    /// Whether anybody else is a reader.
    ///
    /// # Errors
    /// What the operating system reports.
    pub fn is_read(&self) -> Result<bool> {
        self.is_held(READER, libc::F_WRLCK)
    }

    /// Keeps the roots as they are while a reader opens; `None` if the writer has not let go of
    /// them after `wait`.
    ///
    /// # Errors
    /// What the operating system reports.
    pub fn keep_roots(&self, wait: Duration) -> Result<Option<Roots<'_>>> {
        self.roots(libc::F_RDLCK, wait)
    }

    /// Keeps readers from opening while the writer changes the roots; `None` if a reader has not
    /// finished opening after `wait`.
    ///
    /// # Errors
    /// What the operating system reports.
    pub fn change_roots(&self, wait: Duration) -> Result<Option<Roots<'_>>> {
        self.roots(libc::F_WRLCK, wait)
    }

    fn roots(&self, kind: libc::c_int, wait: Duration) -> Result<Option<Roots<'_>>> {
        let begun = Instant::now();
        while !self.set(ROOTS, kind)? {
            if begun.elapsed() >= wait {
                return Ok(None);
            }
            std::thread::sleep(PATIENCE);
        }
        Ok(Some(Roots { lock: self }))
    }

    /// The error for a caller that the writer keeps out; it names the writer's process.
    #[must_use]
    pub fn busy(&self) -> Error {
        Error::Busy {
            path: self.path.clone(),
            holder: holder(&self.file),
        }
    }

    /// Takes or gives back the lock on a byte; false where somebody else's stands against it.
    fn set(&self, byte: i64, kind: libc::c_int) -> Result<bool> {
        let mut lock = request(byte, kind);
        match self.control(libc::F_OFD_SETLK, &mut lock) {
            Ok(()) => Ok(true),
            Err(source) if source.kind() == ErrorKind::WouldBlock => Ok(false),
            // Kernels tell a conflict in either way.
            Err(source) if source.raw_os_error() == Some(libc::EACCES) => Ok(false),
            Err(source) if source.raw_os_error() == Some(libc::EBADF) => Err(Error::Denied {
                path: self.path.clone(),
            }),
            Err(source) => Err(failed(&self.path, "lock", None, source)),
        }
    }

    /// Whether a lock of `kind` would stand against somebody else's.
    fn is_held(&self, byte: i64, kind: libc::c_int) -> Result<bool> {
        let mut lock = request(byte, kind);
        self.control(libc::F_OFD_GETLK, &mut lock)
            .map_err(|source| failed(&self.path, "look at the locks", None, source))?;
        Ok(libc::c_int::from(lock.l_type) != libc::F_UNLCK)
    }

    fn control(&self, command: libc::c_int, lock: &mut libc::flock) -> std::io::Result<()> {
        // SAFETY: the descriptor is open for as long as `self.file` lives; `lock` is a valid
        // `struct flock`, which the call reads, and for `F_OFD_GETLK` writes.
        match unsafe { libc::fcntl(self.file.as_raw_fd(), command, std::ptr::from_mut(lock)) } {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// The request to the kernel for the lock on one byte.
fn request(byte: i64, kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: byte as libc::off_t,
        l_len: 1,
        // Must be 0 for locks of open file descriptions.
        l_pid: 0,
    }
}

/// The process that has the `flock` of a file, as far as the system tells.
fn holder(file: &fs::File) -> Option<Holder> {
    let inode = file.metadata().ok()?.ino();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let process = locks.lines().find_map(|line| flock_holder(line, inode))?;
    let told = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&told);
    let (program, rest) = words.split_once('\0').unwrap_or((&words, ""));
    // Who is told knows the program by its name; its folder would only push the rest out of sight.
    let program = program.rsplit('/').next().unwrap_or_default();
    let mut command = format!("{program} {}", rest.replace('\0', " "))
        .trim()
        .to_owned();
    if command.is_empty() {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        name.trim().clone_into(&mut command);
    }
    if let Some((at, _)) = command.char_indices().nth(LONGEST_COMMAND) {
        command.truncate(at);
        command.push_str("...");
    }
    Some(Holder { process, command })
}

/// Characters of a command that a message shows.
const LONGEST_COMMAND: usize = 80;

/// The process of a line of `/proc/locks` such as `1: FLOCK  ADVISORY  WRITE 708 00:13:4127 0 EOF`,
/// if it is about a `flock` of the file with this inode. File systems that span devices tell other
/// device numbers here than to `stat`, so only the inode is compared.
fn flock_holder(line: &str, inode: u64) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    let kind = words.next()?;
    let process = words.nth(2)?.parse().ok().filter(|&process| process > 0)?;
    let of = words.next()?.rsplit(':').next()?.parse::<u64>().ok()?;
    (kind == "FLOCK" && of == inode).then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let line = "1: FLOCK  ADVISORY  WRITE 708 00:13:4127 0 EOF";
        assert_eq!(flock_holder(line, 4127), Some(708));
        assert_eq!(flock_holder(line, 4128), None);
        for other in [
            "2: OFDLCK ADVISORY  READ -1 08:01:4127 5 5",
            "3: POSIX  ADVISORY  WRITE 9 08:01:4127 0 EOF",
            "4: -> FLOCK ADVISORY WRITE 9 08:01:4127 0 EOF",
            "5: FLOCK ADVISORY WRITE 0 08:01:4127 0 EOF",
            "6: FLOCK",
            "",
        ] {
            assert_eq!(flock_holder(other, 4127), None, "{other}");
        }
    }
}
