//! The two devices of a store, and errors of theirs in the store's terms.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use io::{Access, Device, File};

use crate::error::{Error, Region, Result};
use crate::format::bytes::{Tag, checksum};
use crate::format::codec;
use crate::format::structures::{BLOCK, Bad, Blob, CHUNK_BYTES, Directory};

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

/// Opens `path` to make a store of it, and says whether the file is new. One that is there may be
/// what a creation left that was cut short.
pub(crate) fn fresh(path: &Path) -> Result<(File, bool)> {
    match File::create(path) {
        Err(io::Error::Exists { path }) => {
            // Whatever prevents opening it, it is in the way.
            let file = File::open(&path, Access::Write).map_err(|_| Error::Exists { path })?;
            file.sync_name()?;
            Ok((file, false))
        }
        file => Ok((file?, true)),
    }
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

/// Reads a block of its own (identity, root, log header) and decodes it, once more if it is not
/// valid: one bad read is not damage.
pub(crate) fn read_block<T>(
    device: &dyn Device,
    offset: u64,
    decode: &dyn Fn(&[u8]) -> std::result::Result<T, Bad>,
) -> Result<std::result::Result<T, Bad>> {
    let mut block = vec![0; BLOCK];
    read(device, offset, &mut block)?;
    let first = decode(&block);
    if first.is_ok() {
        return Ok(first);
    }
    // Without it the system may give the same bytes again, and that is no harm.
    let _ = device.forget();
    read(device, offset, &mut block)?;
    Ok(decode(&block))
}

/// Upper bounds for the length of a structure, checked before memory is allocated for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Length of the data file.
    pub(crate) file_bytes: u64,
    /// Bytes of memory that are left.
    pub(crate) memory: u64,
}

impl Limits {
    /// The bytes that a structure may have at most, decompressed.
    fn longest(&self, region: Region) -> u64 {
        match region {
            Region::MapChunk(_) => CHUNK_BYTES as u64,
            Region::Directory => Directory::longest(self.file_bytes),
            _ => u64::MAX,
        }
    }
}

/// Reads and verifies the structure at `blob`, once more if it does not verify.
pub(crate) fn read_blob(
    device: &dyn Device,
    region: Region,
    blob: &Blob,
    limits: &Limits,
) -> Result<Vec<u8>> {
    match read_blob_once(device, region, blob, limits) {
        Err(Error::Damaged { .. }) => {
            let _ = device.forget();
            read_blob_once(device, region, blob, limits)
        }
        result => result,
    }
}

fn read_blob_once(
    device: &dyn Device,
    region: Region,
    blob: &Blob,
    limits: &Limits,
) -> Result<Vec<u8>> {
    let damaged = |detail: &str| Error::damaged(device.path(), region, blob.offset, detail);
    let end = blob
        .offset
        .checked_add(blob.stored)
        .ok_or_else(|| damaged("impossible place"))?;
    if end > limits.file_bytes {
        let path = device.path().to_path_buf();
        return Err(Error::Truncated {
            path,
            needed: end,
            found: limits.file_bytes,
        });
    }
    if blob.raw > limits.longest(region) || !codec::is_possible(blob.codec, blob.stored, blob.raw) {
        return Err(damaged("impossible length"));
    }
    if blob.raw > limits.memory {
        return Err(Error::Memory {
            path: device.path().to_path_buf(),
            what: region.to_string(),
            wanted: blob.raw,
            left: limits.memory,
        });
    }
    // A length that makes no sense may lead through a hole; that is found out first.
    if blob.stored > PIECE as u64 && sum(device, region, blob)? != blob.sum {
        return Err(damaged("checksum does not match"));
    }
    let mut stored = vec![0; blob.stored as usize];
    read(device, blob.offset, &mut stored)?;
    unpack(device, region, blob, stored)
}

/// Verifies the stored bytes of the structure at `blob`, and decompresses them. What that may be long
/// is for the caller to have checked.
pub(crate) fn unpack(
    device: &dyn Device,
    region: Region,
    blob: &Blob,
    stored: Vec<u8>,
) -> Result<Vec<u8>> {
    let damaged = |detail: &str| Error::damaged(device.path(), region, blob.offset, detail);
    let (tag, number) = tag_of(region);
    if checksum(tag, number, &stored) != blob.sum {
        return Err(damaged("checksum does not match"));
    }
    codec::unpack(blob.codec, stored, blob.raw).map_err(|why| damaged(&why))
}

/// Bytes of a structure that are read at once where they are not kept.
const PIECE: usize = 1 << 20;

/// The checksum of the bytes at `blob`, however many there are.
fn sum(device: &dyn Device, region: Region, blob: &Blob) -> Result<u32> {
    let (tag, number) = tag_of(region);
    let mut sum = checksum(tag, number, &[]);
    let mut piece = vec![0; PIECE];
    for offset in (0..blob.stored).step_by(PIECE) {
        let length = (blob.stored - offset).min(PIECE as u64) as usize;
        read(device, blob.offset + offset, &mut piece[..length])?;
        sum = crc32c::crc32c_append(sum, &piece[..length]);
    }
    Ok(sum)
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
