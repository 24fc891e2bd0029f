//! Stores of tables: opening them, their size, removing them.

use std::fs;
use std::path::{Path, PathBuf};

use atoll::{Database, Options};

use crate::failure::Failure;
use crate::store::files;

/// Opens an existing store.
///
/// # Errors
/// If it does not exist, with similar names of stores in the folder, or cannot be opened.
pub fn open(path: &Path, options: &Options) -> Result<Database, Failure> {
    if files::absent(path) {
        return Err(files::missing(path).into());
    }
    Ok(Database::open(path, options)?)
}

/// Opens a store, or creates it if there is none.
///
/// # Errors
/// If it cannot be opened or created.
pub fn open_or_create(path: &Path, options: &Options) -> Result<Database, Failure> {
    Ok(Database::open_or_create(path, options)?)
}

/// The log file of a store.
fn log_of(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".log");
    name.into()
}

/// Bytes of a store's files.
pub fn bytes(store: &Path) -> u64 {
    let size = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    size(store) + size(&log_of(store))
}

/// Removes a store's files; what cannot be removed stays.
pub fn remove(store: &Path) {
    let _ = fs::remove_file(store);
    let _ = fs::remove_file(log_of(store));
}
