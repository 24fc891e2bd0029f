//! The operating system's caches of files.

use std::fs;

use crate::{Error, Result};

/// Where the kernel is told to drop them.
pub(crate) const SWITCH: &str = "/proc/sys/vm/drop_caches";

/// Makes the system drop its clean caches of all files, directories and inodes (row M3). All
/// programs read from the disk again after it, so only on request.
///
/// # Errors
///
/// [`Error::DropCaches`] where it is not permitted: it takes root, and no container.
pub fn drop_system_caches() -> Result<()> {
    fs::write(SWITCH, "3").map_err(|source| Error::DropCaches { source })
}
