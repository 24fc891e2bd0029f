//! Zarr, versions 2 and 3: a folder with metadata in JSON and a file for each chunk.

mod codec;
mod metadata;
mod source;
mod v2;
mod v3;
mod write;

use std::path::Path;

use crate::error::Result;
use crate::job::Job;
use crate::source::Source;
use crate::zarr::source::ZarrSource;

pub(crate) use write::{Version, ZarrTarget};

/// The array in a folder. `kept` bytes of the job's memory are for chunks that may be needed again.
///
/// # Errors
/// [`Error::Malformed`](crate::Error::Malformed), [`Error::Unsupported`](crate::Error::Unsupported),
/// [`Error::System`](crate::Error::System), [`Error::Memory`](crate::Error::Memory).
pub(crate) fn open(folder: &Path, job: &Job<'_>, kept: u64) -> Result<Box<dyn Source>> {
    Ok(Box::new(ZarrSource::open(folder, job, kept)?))
}
