//! What is said of any store first.

use std::io::Write;

use atoll::StoreStatistics;

use crate::commands::pages::options::Pages;
use crate::failure::Failure;
use crate::units;

/// What `stat` says of the file first, whatever is in its pages.
pub fn write(
    out: &mut impl Write,
    args: &Pages,
    store: &StoreStatistics,
    pages: &str,
) -> Result<(), Failure> {
    let size = units::bytes;
    writeln!(
        out,
        "{}: version {}, {pages} of {}",
        args.store.display(),
        store.version,
        size(store.page_size.into())
    )?;
    writeln!(
        out,
        "file {}: {} used, {} free; log {}",
        size(store.file_bytes),
        size(store.used_bytes),
        size(store.free_bytes),
        size(store.log_bytes)
    )?;
    Ok(())
}
