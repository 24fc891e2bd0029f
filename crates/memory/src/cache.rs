//! The page cache of the operating system.

use std::fs;

use crate::{Error, Result};

/// Where the kernel is told to drop them.
pub(crate) const SWITCH: &str = "/proc/sys/vm/drop_caches";

/// Drops the clean pages of the page cache and the caches of directories and inodes, for measurements with a
/// cold cache. Every program on the machine reads from the disk again afterwards, so call it only on request.
///
/// # Errors
///
/// [`Error::DropCaches`] where it is not permitted: it takes root, and no container.
pub fn drop_system_caches() -> Result<()> {
    fs::write(SWITCH, "3").map_err(|source| Error::DropCaches { source })
}
