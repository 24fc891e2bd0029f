//! Zarr, versions 2 and 3: a folder with metadata in JSON and a file for each chunk.

mod attributes;
mod blosc;
mod codec;
mod group;
mod metadata;
mod shard;
mod source;
mod v2;
mod v3;
mod write;

use std::path::Path;

use crate::error::{Error, Result};
use crate::job::Job;
use crate::source::Source;
use crate::variables;
use crate::zarr::group::ZarrGroup;
use crate::zarr::source::{Node, ZarrSource, node};

pub(crate) use write::{Version, ZarrAttribute, ZarrTarget};

/// The array in a folder, or of a group the arrays that `member` names, as [`variables::open`] has it. `kept` bytes of the job's memory are for chunks that may be needed again.
///
/// # Errors
/// [`Error::Malformed`], [`Error::Unsupported`], [`Error::System`], [`Error::Memory`]; [`Error::Options`] if there is no
/// such member.
pub(crate) fn open(
    folder: &Path,
    member: Option<&str>,
    (job, kept): (&Job<'_>, u64),
) -> Result<Box<dyn Source>> {
    match node(folder)? {
        Some(Node::Group(attributes)) => {
            let group = Box::new(ZarrGroup::open(folder, &attributes)?);
            variables::open(group, member, (job, kept))
        }
        _ if member.is_some() => Err(Error::Options {
            what: format!(
                "{}: is a single array of Zarr, and only a group has members",
                folder.display()
            ),
        }),
        _ => Ok(Box::new(ZarrSource::open(folder, job, kept)?)),
    }
}
