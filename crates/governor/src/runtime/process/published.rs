//! The counter that an Atoll process publishes, for governors of other processes.
//!
//! It lives in memory that has no name in any folder, so that nothing is left behind however the process
//! ends: who may see the process's open files finds it among them, under [`NAME`]. Its 32 bytes
//! are four numbers, least byte first: a mark, statements that have ended, bytes that statements have
//! read, and the three of them combined, by which a reader sees that it did not read half a change.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;

/// How its links in `/proc/PID/fd` read.
pub const NAME: &str = "/memfd:atoll-counter (deleted)";

const MARK: u64 = u64::from_le_bytes(*b"ATOLL c1");

/// Totals since the process started; they never fall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Statements that have ended.
    pub statements: u64,
    /// Bytes that statements have read.
    pub bytes: u64,
}

/// A published counter; gone when it is dropped.
#[derive(Debug)]
pub struct Published {
    file: File,
    last: Option<Counted>,
}

impl Published {
    /// Publishes zeros.
    ///
    /// # Errors
    ///
    /// The system's error if it has no memory for the counter.
    pub fn new() -> io::Result<Published> {
        // SAFETY: the name ends with a zero.
        let file = unsafe { libc::memfd_create(c"atoll-counter".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was made just now, and nobody else has it.
        Published::at(unsafe { File::from_raw_fd(file) })
    }

    fn at(file: File) -> io::Result<Published> {
        let mut published = Published { file, last: None };
        published.write(Counted::default())?;
        Ok(published)
    }

    /// Replaces what was published.
    ///
    /// # Errors
    ///
    /// The system's error; a reader recognises the half-written counter.
    pub fn write(&mut self, counted: Counted) -> io::Result<()> {
        if self.last == Some(counted) {
            return Ok(());
        }
        let words = [MARK, counted.statements, counted.bytes, check(counted)];
        let mut bytes = [0; 32];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        self.file.write_all_at(&bytes, 0)?;
        self.last = Some(counted);
        Ok(())
    }
}

fn check(counted: Counted) -> u64 {
    !(MARK ^ counted.statements.rotate_left(1) ^ counted.bytes.rotate_left(2))
}

/// Reads a published counter; `None` if the file is not one, or is being written at this moment.
pub fn read(file: &File) -> Option<Counted> {
    let mut bytes = [0; 32];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let word = |at: usize| {
        let word: Option<[u8; 8]> = bytes.get(at * 8..at * 8 + 8)?.try_into().ok();
        word.map(u64::from_le_bytes)
    };
    let counted = Counted {
        statements: word(1)?,
        bytes: word(2)?,
    };
    (word(0)? == MARK && word(3)? == check(counted)).then_some(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_change_is_no_reading() {
        // A file with a name of its own: another test looks for those of this process.
        let mut published = Published::at(tempfile::tempfile().unwrap()).unwrap();
        assert_eq!(read(&published.file), Some(Counted::default()));
        let counted = Counted {
            statements: 3,
            bytes: u64::MAX / 3,
        };
        published.write(counted).unwrap();
        assert_eq!(read(&published.file), Some(counted));
        for byte in 0..32 {
            let file = &published.file;
            let mut old = [0];
            file.read_exact_at(&mut old, byte).unwrap();
            file.write_all_at(&[old[0] ^ 1], byte).unwrap();
            assert_eq!(read(file), None, "byte {byte}");
            file.write_all_at(&old, byte).unwrap();
        }
        published.file.set_len(31).unwrap();
        assert_eq!(read(&published.file), None);
    }
}
