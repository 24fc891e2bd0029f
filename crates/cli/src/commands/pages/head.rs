//! The first lines about a store, whatever its kind.

use std::io::Write;

use store::Statistics;

use crate::commands::pages::options::Asked;
use crate::failure::Failure;
use crate::units;

/// Writes what `stat` says first: about the file, whatever its pages hold.
pub fn write(
    out: &mut impl Write,
    args: &Asked,
    store: &Statistics,
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
