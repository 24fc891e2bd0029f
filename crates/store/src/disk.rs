//! The two devices of a store, and errors of theirs in the store's terms.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use io::Device;

use crate::bytes::{Tag, checksum};
use crate::codec;
use crate::error::{Error, Region, Result};
use crate::format::Blob;

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        match error {
            io::Error::Busy { path, holder } => Error::Busy { path, holder },
            io::Error::Full { path } => Error::Full { path },
            io::Error::Exists { path } => Error::Exists { path },
            io::Error::NotFound { path } => Error::Missing { path },
            io::Error::NoDirectory { path } => {
                let directory = path.parent().map(Path::to_path_buf);
                Error::MissingDirectory {
                    path: directory.unwrap_or(path),
                }
            }
            error => Error::Io(Arc::new(error)),
        }
    }
}

/// The log's name: the data file's with `.log` appended.
pub(crate) fn log_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".log");
    name.into()
}

/// Reads what must lie at `offset`; a file that is too short is [`Error::Truncated`].
pub(crate) fn read(device: &dyn Device, offset: u64, into: &mut [u8]) -> Result<()> {
    match device.read_at(offset, into) {
        Err(io::Error::ShortRead { got, .. }) => Err(Error::Truncated {
            path: device.path().to_path_buf(),
            needed: offset + into.len() as u64,
            found: offset + got as u64,
        }),
        other => Ok(other?),
    }
}

/// Reads and verifies the structure at `blob`; `file_bytes` is the length of the file.
pub(crate) fn read_blob(
    device: &dyn Device,
    region: Region,
    blob: &Blob,
    file_bytes: u64,
) -> Result<Vec<u8>> {
    let (tag, number) = tag_of(region);
    let damaged = |detail: &str| Error::damaged(device.path(), region, blob.offset, detail);
    let end = blob
        .offset
        .checked_add(blob.stored)
        .ok_or_else(|| damaged("impossible place"))?;
    if end > file_bytes {
        let path = device.path().to_path_buf();
        return Err(Error::Truncated {
            path,
            needed: end,
            found: file_bytes,
        });
    }
    let mut stored = zeros(blob.stored).ok_or_else(|| damaged("impossible length"))?;
    read(device, blob.offset, &mut stored)?;
    if checksum(tag, number, &stored) != blob.sum {
        return Err(damaged("checksum does not match"));
    }
    let mut raw = zeros(blob.raw).ok_or_else(|| damaged("impossible length"))?;
    codec::decompress(blob.codec, &stored, &mut raw).map_err(|why| damaged(&why))?;
    Ok(raw)
}

/// The tag and number that the checksum of a structure starts from.
pub(crate) fn tag_of(region: Region) -> (Tag, u32) {
    match region {
        Region::Identity => (Tag::Identity, 0),
        Region::Root(slot) => (Tag::Root, u32::from(slot)),
        Region::Directory => (Tag::Directory, 0),
        Region::MapChunk(chunk) => (Tag::MapChunk, chunk),
        Region::Space(space) => (Tag::Space, space),
        Region::Page(page) => (Tag::Page, page),
        Region::LogHeader(slot) => (Tag::LogHeader, u32::from(slot)),
        Region::LogRecord(_) => (Tag::RecordBody, 0),
    }
}

/// `length` zeros, or `None` where there is no memory for them.
fn zeros(length: u64) -> Option<Vec<u8>> {
    let length = usize::try_from(length).ok()?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).ok()?;
    bytes.resize(length, 0);
    Some(bytes)
}
