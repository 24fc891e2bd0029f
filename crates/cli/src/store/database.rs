//! Stores of tables: opening them.

use std::path::Path;

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
