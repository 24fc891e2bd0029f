//! Making a new store, so that a creation that is cut short can be told and repeated.
//!
//! 1. The identity block is written as a draft, with other magic bytes; sync. Until then the log
//!    is empty.
//! 2. The log and the rest of the data file are written; sync.
//! 3. The magic bytes are written; sync. They lie in one sector, so no crash tears this.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use io::Device;

use crate::catalog::changes::Changes;
use crate::error::{Error, Result};
use crate::format::bytes::{Tag, checksum};
use crate::format::codec;
use crate::format::disk::read;
use crate::format::structures::{
    ALIGNMENT, BLOCK, Blob, DRAFT, Directory, FIRST_EXTENT, FORMAT_VERSION, Identity, LOG_MAGIC,
    ROOT_OFFSETS, Root,
};
use crate::log::{FIRST_RECORD, Header, Log};
use crate::options::Options;

/// The end of a data file in which nothing was ever stored: the directory of an empty store is
/// shorter than one unit of extents.
const EMPTY_END: u64 = FIRST_EXTENT + ALIGNMENT;
/// A sector, which no loss of power tears; the fields of a block lie in its first one.
const SECTOR: usize = 512;

/// Writes an empty store on two devices that are empty, or on which a creation was cut short,
/// durably; in its log the commit that makes the `first` changes.
pub(crate) fn format(
    data: &dyn Device,
    log: &Arc<dyn Device>,
    options: &Options,
    first: Option<&Changes>,
) -> Result<()> {
    clear(data, &**log)?;
    let created = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let identity = Identity {
        version: FORMAT_VERSION,
        page_size: options.page_size,
        id: new_id(),
        created,
    };
    data.write_at(0, &identity.encode_draft())?;
    data.sync()?;
    let mut log = Log::create(log.clone(), identity.id)?;
    if let Some(changes) = first {
        log.append((1, 0), &changes.encode(), true)?;
        log.device().sync()?;
    }
    write_empty(data, &identity, log.header().counter, options.alignment)?;
    data.sync()?;
    data.write_at(0, &identity.encode())?;
    Ok(data.sync()?)
}

/// Writes roots and directory of a store that holds nothing.
fn write_empty(
    data: &dyn Device,
    identity: &Identity,
    log_counter: u64,
    alignment: u32,
) -> Result<()> {
    let directory = Directory {
        next_space: 1,
        ..Directory::default()
    }
    .encode();
    let (codec, stored) = codec::compress(&directory);
    let blob = Blob {
        offset: FIRST_EXTENT,
        stored: stored.len() as u64,
        raw: directory.len() as u64,
        sum: checksum(Tag::Directory, 0, &stored),
        codec,
    };
    let end = FIRST_EXTENT + blob.stored.next_multiple_of(u64::from(alignment));
    debug_assert!(blob.stored <= ALIGNMENT);
    data.set_len(end)?;
    data.write_at(blob.offset, &stored)?;
    for sequence in [0, 1] {
        let root = Root {
            sequence,
            version: 0,
            file_bytes: end,
            log_counter,
            directory: blob,
            alignment,
        };
        let offset = ROOT_OFFSETS[usize::from(root.slot())];
        data.write_at(offset, &root.encode(&identity.id))?;
    }
    Ok(())
}

/// Makes both devices empty where a creation was cut short; refuses where there is anything else.
/// The log goes first: what a crash leaves here is still a creation that was cut short.
fn clear(data: &dyn Device, log: &dyn Device) -> Result<()> {
    let (data_empty, log_empty) = (data.is_empty()?, log.is_empty()?);
    if data_empty && log_empty {
        return Ok(());
    }
    if !unfinished(data, Some(log))? {
        let taken = if data_empty { log } else { data };
        return Err(Error::Exists {
            path: taken.path().to_path_buf(),
        });
    }
    for device in [log, data] {
        device.set_len(0)?;
        device.sync()?;
    }
    Ok(())
}

/// Whether the files are what a creation leaves that was cut short, so that nothing was ever
/// stored in them. Releases up to 0.1 wrote no draft: theirs are known by holding nothing.
pub(crate) fn unfinished(data: &dyn Device, log: Option<&dyn Device>) -> Result<bool> {
    let block = block_at(data, 0)?;
    let data_bytes = data.len()?;
    let log_bytes = log.map_or(Ok(0), Device::len)?;
    if let Some(identity) = Identity::decode_draft(&block) {
        return log_is_new(log, Some(&identity.id));
    }
    if block.iter().all(|&byte| byte == 0) {
        let nothing = data_bytes <= EMPTY_END && log_bytes <= FIRST_RECORD;
        return Ok(nothing && log_is_new(log, None)?);
    }
    Ok(data_bytes <= BLOCK as u64 && log_bytes == 0 && is_torn(&block, &DRAFT))
}

/// Whether the header slots of a log are those of a new store, as far as they were written.
fn log_is_new(log: Option<&dyn Device>, id: Option<&[u8; 16]>) -> Result<bool> {
    let Some(log) = log else { return Ok(true) };
    for slot in [0u8, 1] {
        let block = block_at(log, u64::from(slot) * BLOCK as u64)?;
        let new = match Header::decode(&block, slot) {
            Ok((of, header)) => header.is_first() && id.is_none_or(|id| *id == of),
            Err(_) => is_torn(&block, &LOG_MAGIC),
        };
        if !new {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a block is one that begins with `magic`, of which a loss of power has left some of its
/// sectors only. All but the first and the last are zeros.
fn is_torn(block: &[u8], magic: &[u8; 8]) -> bool {
    let zeros = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    let (first, rest) = block.split_at(SECTOR);
    (first.starts_with(magic) || zeros(first)) && zeros(&rest[..rest.len() - 4])
}

/// The block at `offset`; zeros where the device has ended.
fn block_at(device: &dyn Device, offset: u64) -> Result<Vec<u8>> {
    let mut block = vec![0; BLOCK];
    let there = device.len()?.saturating_sub(offset).min(BLOCK as u64);
    read(device, offset, &mut block[..there as usize])?;
    Ok(block)
}

/// Sixteen bytes that no other store has: this tells files apart, it keeps no secret.
fn new_id() -> [u8; 16] {
    let mut id = [0; 16];
    for half in id.chunks_exact_mut(8) {
        // Each state is seeded by the operating system's random numbers.
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        hasher.write_u128(now.map_or(0, |since| since.as_nanos()));
        half.copy_from_slice(&hasher.finish().to_le_bytes());
    }
    id
}
