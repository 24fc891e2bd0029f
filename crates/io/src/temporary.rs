//! Temporary files: they have no name and do not outlive the process.

use std::path::Path;

use crate::error::Result;
use crate::file::{Access, File, failed};

impl File {
    /// Creates an empty file in `directory` that has no name and is gone when it is closed, however the process ends.
    ///
    /// # Errors
    /// [`Error::NoDirectory`](crate::Error::NoDirectory), [`Error::Denied`](crate::Error::Denied),
    /// [`Error::Full`](crate::Error::Full).
    pub fn temporary(directory: impl AsRef<Path>) -> Result<File> {
        let directory = directory.as_ref();
        let file = tempfile::tempfile_in(directory);
        let file =
            file.map_err(|source| failed(directory, "create a temporary file in", None, source))?;
        Ok(File::new(directory, file, Access::Write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    #[test]
    fn it_has_no_name_and_keeps_what_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let file = File::temporary(directory.path()).unwrap();
        file.write_at(3, b"atoll").unwrap();
        let mut bytes = [0; 5];
        file.read_at(3, &mut bytes).unwrap();
        assert_eq!(&bytes, b"atoll");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = File::temporary("/nonexistent/folder").unwrap_err();
        assert!(error.to_string().contains("/nonexistent/folder"), "{error}");
    }
}
