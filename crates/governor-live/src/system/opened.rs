//! Files of the kernel that are read repeatedly: opened once, and read with one system call.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Such a file, which may be missing.
#[derive(Debug)]
pub(crate) struct Opened {
    path: PathBuf,
    file: Option<File>,
}

impl Opened {
    pub(crate) fn new(path: PathBuf) -> Opened {
        Opened { path, file: None }
    }

    /// Passes its present contents to `read`; `None` if it cannot be read.
    pub(crate) fn read<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let mut buffer = [0; 2048];
        match self.file.as_ref()?.read_at(&mut buffer, 0) {
            // There is more than that.
            Ok(bytes) if bytes == buffer.len() => read(&fs::read_to_string(&self.path).ok()?),
            Ok(bytes) => read(std::str::from_utf8(&buffer[..bytes]).ok()?),
            Err(_) => {
                // Its group may have gone, and perhaps come again.
                self.file = None;
                None
            }
        }
    }
}

/// Opens the same file again.
impl Clone for Opened {
    fn clone(&self) -> Opened {
        Opened::new(self.path.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_there_now() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cpus");
        let mut opened = Opened::new(path.clone());
        let length = |text: &str| Some(text.len());
        assert_eq!(opened.read(length), None);
        for bytes in [3, 1, 2047, 2048, 100_000, 0] {
            fs::write(&path, "x".repeat(bytes)).unwrap();
            assert_eq!(opened.read(length), Some(bytes));
        }
        assert_eq!(opened.clone().read(|_| None::<u8>), None);
    }
}
