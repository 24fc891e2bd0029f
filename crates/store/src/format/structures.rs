//! The fixed structures of the data file: identity block, root slots, map entries, directory.
//! `docs/reference/file-format.md` shows them byte by byte.

use std::io::Read;
use std::path::Path;

use crate::error::Region;
use crate::format::bytes::{Put, Reader, Tag, checksum};
use crate::format::kind::{Codec, Kind};

/// The format version that this release writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 1;

/// First bytes of a data file. The line ends reveal a transfer in text mode.
pub(crate) const MAGIC: [u8; 8] = *b"ATOLL\r\n\0";
/// First bytes of a data file that is being created: everything else of the identity block is in
/// place already, so the last step changes one sector only, which no loss of power tears.
pub(crate) const DRAFT: [u8; 8] = *b"atoll..\0";
/// First bytes of a log.
pub(crate) const LOG_MAGIC: [u8; 8] = *b"ATOLLOG\0";
const ROOT_MAGIC: [u8; 8] = *b"ATLROOT\0";

/// The identity block and each root slot take a block of their own, so that no write of the one
/// can tear the other on devices with sectors of up to 4 KiB.
pub(crate) const BLOCK: usize = 4096;
/// Where the root slots start.
pub(crate) const ROOT_OFFSETS: [u64; 2] = [BLOCK as u64, 2 * BLOCK as u64];
/// Where extents start.
pub(crate) const FIRST_EXTENT: u64 = 3 * BLOCK as u64;
/// Extents start at multiples of this: a cache line, so that a mapped raw page is aligned.
pub(crate) const ALIGNMENT: u64 = 64;
/// Sequences, versions and counters stay below this, so that adding to them cannot overflow.
pub(crate) const LIMIT: u64 = 1 << 62;
/// Map entries of one chunk.
pub(crate) const CHUNK: u32 = 1024;
/// Bytes of a map entry in the file.
pub(crate) const ENTRY_BYTES: usize = 24;
/// Bytes of a chunk in the file, before they are compressed.
pub(crate) const CHUNK_BYTES: usize = CHUNK as usize * ENTRY_BYTES;

/// Whether the file at `path` begins as a store does; no if it cannot be read.
#[must_use]
pub fn is_store(path: &Path) -> bool {
    first_bytes(path).is_some_and(|first| first == MAGIC)
}

/// Whether the file at `path` begins as a store or the log of one does: nothing but a store may be
/// written over it. No if it cannot be read, or is no regular file.
#[must_use]
pub fn is_part(path: &Path) -> bool {
    first_bytes(path).is_some_and(|first| first == MAGIC || first == LOG_MAGIC)
}

fn first_bytes(path: &Path) -> Option<[u8; MAGIC.len()]> {
    let mut first = [0; MAGIC.len()];
    // A pipe would wait for somebody to write to it.
    if !path.is_file() {
        return None;
    }
    std::fs::File::open(path)
        .ok()?
        .read_exact(&mut first)
        .ok()?;
    Some(first)
}

/// Whether a store can have pages of this many bytes (row B1).
pub(crate) fn is_page_size(bytes: u32) -> bool {
    bytes.is_power_of_two() && (4096..=1 << 20).contains(&bytes)
}

/// Whether what is written to a store can begin at multiples of this many bytes.
pub(crate) fn is_alignment(bytes: u32) -> bool {
    bytes.is_power_of_two() && (ALIGNMENT as u32..=BLOCK as u32).contains(&bytes)
}

/// `bytes` rounded up to whole extent units.
pub(crate) fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGNMENT)
}

/// What a data file is. Written once, when the store is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) version: u32,
    pub(crate) page_size: u32,
    pub(crate) id: [u8; 16],
    /// Seconds since 1970.
    pub(crate) created: u64,
}

/// Why a block is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bad {
    /// The magic bytes are others.
    Magic,
    /// The checksum does not match.
    Checksum,
    /// The checksum matches and the format version is later than ours.
    Newer(u32),
    /// The checksum matches and the fields make no sense.
    Fields(&'static str),
}

impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bad::Magic => write!(f, "magic bytes differ"),
            Bad::Checksum => write!(f, "checksum does not match"),
            Bad::Newer(version) => write!(f, "format version {version} is newer"),
            Bad::Fields(what) => write!(f, "{what}"),
        }
    }
}

/// Pads `block` to its size and puts the checksum in its last four bytes.
fn seal(mut block: Vec<u8>, tag: Tag, number: u32) -> Vec<u8> {
    debug_assert!(block.len() <= BLOCK - 4);
    block.resize(BLOCK - 4, 0);
    let sum = checksum(tag, number, &block);
    block.put_u32(sum);
    block
}

fn sealed(block: &[u8], tag: Tag, number: u32) -> bool {
    match block.split_last_chunk::<4>() {
        Some((body, sum)) => checksum(tag, number, body) == u32::from_le_bytes(*sum),
        None => false,
    }
}

impl Identity {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut block = MAGIC.to_vec();
        block.put_u32(self.version);
        block.put_u32(self.page_size);
        block.extend_from_slice(&self.id);
        block.put_u64(self.created);
        seal(block, Tag::Identity, 0)
    }

    /// The block before creating the store is complete.
    pub(crate) fn encode_draft(&self) -> Vec<u8> {
        let mut block = self.encode();
        block[..DRAFT.len()].copy_from_slice(&DRAFT);
        block
    }

    /// Reads a block as [`encode_draft`](Identity::encode_draft) makes it.
    pub(crate) fn decode_draft(block: &[u8]) -> Option<Identity> {
        let mut block = block.to_vec();
        block.starts_with(&DRAFT).then(|| {
            block[..MAGIC.len()].copy_from_slice(&MAGIC);
            Identity::decode(&block).ok()
        })?
    }

    /// Reads an identity block. Its layout and checksum stay the same in all format versions, so
    /// that a damaged version number is not taken for a newer version.
    pub(crate) fn decode(block: &[u8]) -> Result<Identity, Bad> {
        if !block.starts_with(&MAGIC) {
            // Damage confined to the magic bytes is damage, not another sort of file.
            let mut repaired = block.to_vec();
            if let Some(head) = repaired.get_mut(..MAGIC.len()) {
                head.copy_from_slice(&MAGIC);
            }
            let damaged = sealed(&repaired, Tag::Identity, 0);
            return Err(if damaged { Bad::Checksum } else { Bad::Magic });
        }
        if !sealed(block, Tag::Identity, 0) {
            return Err(Bad::Checksum);
        }
        let mut reader = Reader::new(&block[MAGIC.len()..]);
        let short = Bad::Fields("too short");
        let version = reader.u32().ok_or(short.clone())?;
        if version > FORMAT_VERSION {
            return Err(Bad::Newer(version));
        }
        let page_size = reader.u32().ok_or(short.clone())?;
        if !is_page_size(page_size) {
            return Err(Bad::Fields("impossible page size"));
        }
        let id = reader.id().ok_or(short.clone())?;
        let created = reader.u64().ok_or(short)?;
        Ok(Identity {
            version,
            page_size,
            id,
            created,
        })
    }
}

/// Where a structure (map chunk, catalog space, directory) lies, and its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blob {
    pub(crate) offset: u64,
    pub(crate) stored: u64,
    pub(crate) raw: u64,
    pub(crate) sum: u32,
    pub(crate) codec: Codec,
}

impl Blob {
    pub(crate) const BYTES: usize = 29;

    fn put(&self, out: &mut Vec<u8>) {
        out.put_u64(self.offset);
        out.put_u64(self.stored);
        out.put_u64(self.raw);
        out.put_u32(self.sum);
        out.put_u8(self.codec as u8);
    }

    fn take(reader: &mut Reader<'_>) -> Option<Blob> {
        let blob = Blob {
            offset: reader.u64()?,
            stored: reader.u64()?,
            raw: reader.u64()?,
            sum: reader.u32()?,
            codec: Codec::of(reader.u8()?)?,
        };
        let place = blob.offset >= FIRST_EXTENT && blob.offset.is_multiple_of(ALIGNMENT);
        (place || blob.offset == 0).then_some(blob)
    }
}

/// The state that a checkpoint leaves: everything up to `version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Root {
    /// Counts checkpoints; the newer of two valid roots has the greater one.
    pub(crate) sequence: u64,
    /// The last commit that the state includes.
    pub(crate) version: u64,
    /// The data file is at least this long.
    pub(crate) file_bytes: u64,
    /// The counter of the log header that was durable before this root was written: a log whose
    /// newest header is older has been damaged rather than torn by a crash.
    pub(crate) log_counter: u64,
    pub(crate) directory: Blob,
    /// What is written begins at multiples of this many bytes, a power of two from 64 to 4096.
    /// Releases up to 0.1 wrote none, which is 64.
    pub(crate) alignment: u32,
}

impl Root {
    /// The slot that holds this root.
    pub(crate) fn slot(&self) -> u8 {
        (self.sequence % 2) as u8
    }

    pub(crate) fn encode(&self, id: &[u8; 16]) -> Vec<u8> {
        let mut block = ROOT_MAGIC.to_vec();
        block.extend_from_slice(id);
        block.put_u64(self.sequence);
        block.put_u64(self.version);
        block.put_u64(self.file_bytes);
        block.put_u64(self.log_counter);
        self.directory.put(&mut block);
        block.put_u32(self.alignment);
        seal(block, Tag::Root, u32::from(self.slot()))
    }

    pub(crate) fn decode(block: &[u8], slot: u8, id: &[u8; 16]) -> Result<Root, Bad> {
        if !block.starts_with(&ROOT_MAGIC) {
            return Err(Bad::Magic);
        }
        if !sealed(block, Tag::Root, u32::from(slot)) {
            return Err(Bad::Checksum);
        }
        let mut reader = Reader::new(&block[ROOT_MAGIC.len()..]);
        if reader.id().as_ref() != Some(id) {
            return Err(Bad::Fields("it is of another store"));
        }
        let root = (|| {
            Some(Root {
                sequence: reader.u64()?,
                version: reader.u64()?,
                file_bytes: reader.u64()?,
                log_counter: reader.u64()?,
                directory: Blob::take(&mut reader)?,
                alignment: reader.u32()?.max(ALIGNMENT as u32),
            })
        })()
        .filter(|root| root.sequence.max(root.version) < LIMIT && is_alignment(root.alignment))
        .ok_or(Bad::Fields("impossible fields"))?;
        if root.slot() != slot {
            return Err(Bad::Fields("it is in the other slot"));
        }
        Ok(root)
    }
}

/// Where a page lies and how to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) offset: u64,
    pub(crate) stored: u32,
    pub(crate) raw: u32,
    pub(crate) sum: u32,
    pub(crate) bucket: u8,
    pub(crate) kind: Kind,
    pub(crate) codec: Codec,
}

impl Entry {
    /// Bytes of the file that the page takes.
    pub(crate) fn extent(&self) -> u64 {
        aligned(u64::from(self.stored))
    }

    /// The three words that the map keeps in memory and in the file. The lowest bit of the last
    /// says that the entry is live, so zeros are no entry.
    pub(crate) fn words(&self) -> [u64; 3] {
        let codec = (self.codec as u64) << 4;
        let last = u64::from(self.sum) << 32
            | u64::from(self.bucket) << 16
            | (self.kind as u64) << 8
            | codec
            | 1;
        [
            self.offset,
            u64::from(self.stored) << 32 | u64::from(self.raw),
            last,
        ]
    }

    /// The entry of three words: `Ok(None)` if they are zeros, `Err` if they are impossible.
    pub(crate) fn of_words(words: [u64; 3], page_size: u32) -> Result<Option<Entry>, Bad> {
        if words == [0; 3] {
            return Ok(None);
        }
        let last = words[2];
        let reserved = 0xff00_000e;
        let kind = Kind::of((last >> 8) as u8).ok_or(Bad::Fields("unknown kind of page"))?;
        let codec = Codec::of((last >> 4) as u8 & 15).ok_or(Bad::Fields("unknown codec"))?;
        let entry = Entry {
            offset: words[0],
            stored: (words[1] >> 32) as u32,
            raw: words[1] as u32,
            sum: (last >> 32) as u32,
            bucket: (last >> 16) as u8,
            kind,
            codec,
        };
        let lengths = entry.raw > 0
            && entry.raw <= page_size
            && entry.stored > 0
            && match codec {
                Codec::Raw => entry.stored == entry.raw,
                Codec::Zstd => entry.stored < entry.raw,
            };
        let place = entry.offset >= FIRST_EXTENT
            && entry.offset.is_multiple_of(ALIGNMENT)
            && entry.offset.checked_add(entry.extent()).is_some();
        if last & 1 == 0 || last & reserved != 0 || !lengths || !place {
            return Err(Bad::Fields("impossible map entry"));
        }
        Ok(Some(entry))
    }

    /// Writes the entry to `ENTRY_BYTES` bytes.
    pub(crate) fn write(&self, into: &mut [u8]) {
        for (word, place) in self.words().iter().zip(into.chunks_exact_mut(8)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }

    pub(crate) fn take(reader: &mut Reader<'_>, page_size: u32) -> Result<Option<Entry>, Bad> {
        let short = Bad::Fields("too short");
        let mut words = [0; 3];
        for word in &mut words {
            *word = reader.u64().ok_or(short.clone())?;
        }
        Entry::of_words(words, page_size)
    }
}

/// The list of map chunks and catalog spaces that a root points to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Directory {
    /// The next page id never used so far.
    pub(crate) next_page: u64,
    /// The next space number never given out so far.
    pub(crate) next_space: u32,
    /// The chunks in their order; `None` has no live page.
    pub(crate) chunks: Vec<Option<Blob>>,
    /// Spaces by number.
    pub(crate) spaces: Vec<(u32, Blob)>,
}

impl Directory {
    /// The structures that the directory lists.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = (Region, &Blob)> {
        let chunks = (0..).zip(&self.chunks);
        let chunks =
            chunks.filter_map(|(chunk, blob)| Some((Region::MapChunk(chunk), blob.as_ref()?)));
        let spaces = self.spaces.iter();
        chunks.chain(spaces.map(|(space, blob)| (Region::Space(*space), blob)))
    }

    /// Offset and length of the extents of all structures, of the directory of `root` too, in the order of the offsets.
    pub(crate) fn spans(&self, root: &Root) -> Vec<(u64, u64)> {
        let blobs = self.blobs().map(|(_, blob)| blob).chain([&root.directory]);
        let mut spans: Vec<_> = blobs
            .map(|blob| (blob.offset, aligned(blob.stored)))
            .collect();
        spans.sort_unstable();
        spans
    }

    /// The most bytes that a directory has in a data file of `file_bytes`: one place for each
    /// chunk of all pages there can be, and one for each space, which has an extent of its own.
    pub(crate) fn longest(file_bytes: u64) -> u64 {
        let chunks = (1 << 32) / u64::from(CHUNK);
        let spaces = file_bytes / ALIGNMENT;
        20 + chunks * Blob::BYTES as u64 + spaces.saturating_mul(4 + Blob::BYTES as u64)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32 + (self.chunks.len() + self.spaces.len()) * 33);
        out.put_u64(self.next_page);
        out.put_u32(self.next_space);
        out.put_u32(self.chunks.len() as u32);
        out.put_u32(self.spaces.len() as u32);
        for chunk in &self.chunks {
            match chunk {
                Some(blob) => blob.put(&mut out),
                None => out.resize(out.len() + Blob::BYTES, 0),
            }
        }
        for (space, blob) in &self.spaces {
            out.put_u32(*space);
            blob.put(&mut out);
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Directory> {
        let mut reader = Reader::new(bytes);
        let next_page = reader.u64().filter(|&next| next <= 1 << 32)?;
        let next_space = reader.u32()?;
        let chunks = reader.u32()?;
        if u64::from(chunks) != next_page.div_ceil(u64::from(CHUNK)) {
            return None;
        }
        let spaces = reader.u32()?;
        let mut directory = Directory {
            next_page,
            next_space,
            ..Directory::default()
        };
        for _ in 0..chunks {
            let blob = Blob::take(&mut reader)?;
            directory.chunks.push((blob.offset != 0).then_some(blob));
        }
        for _ in 0..spaces {
            let space = reader.u32()?;
            directory.spaces.push((space, Blob::take(&mut reader)?));
        }
        reader.is_empty().then_some(directory)
    }
}

const _: () = assert!(ENTRY_BYTES == 3 * size_of::<u64>());
const _: () = assert!((BLOCK as u64).is_multiple_of(ALIGNMENT));

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn blob(offset: u64) -> Blob {
        Blob {
            offset: FIRST_EXTENT + offset,
            stored: 100,
            raw: 200,
            sum: 5,
            codec: Codec::Zstd,
        }
    }

    #[test]
    fn identity_notices_every_flip() {
        let identity = Identity {
            version: 1,
            page_size: 65_536,
            id: [9; 16],
            created: 77,
        };
        let block = identity.encode();
        assert_eq!(Identity::decode(&block), Ok(identity));
        for bit in 0..block.len() * 8 {
            let mut bad = block.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Identity::decode(&bad), Err(Bad::Checksum), "bit {bit}");
        }
        assert_eq!(Identity::decode(b"PAR1"), Err(Bad::Magic));
        let newer = Identity {
            version: 2,
            ..identity
        };
        assert_eq!(Identity::decode(&newer.encode()), Err(Bad::Newer(2)));
    }

    #[test]
    fn root_comes_back_from_its_own_slot_and_store_only() {
        let root = Root {
            sequence: 7,
            version: 3,
            file_bytes: 1 << 20,
            log_counter: 9,
            directory: blob(64),
            alignment: 4096,
        };
        let block = root.encode(&[1; 16]);
        assert_eq!(Root::decode(&block, 1, &[1; 16]), Ok(root));
        assert_eq!(Root::decode(&block, 0, &[1; 16]), Err(Bad::Checksum));
        assert!(matches!(
            Root::decode(&block, 1, &[2; 16]),
            Err(Bad::Fields(_))
        ));
    }

    #[test]
    fn entries_and_directory_come_back() {
        let entry = Entry {
            offset: FIRST_EXTENT,
            stored: 10,
            raw: 4096,
            sum: 0xdead_beef,
            bucket: 255,
            kind: Kind::Blob,
            codec: Codec::Zstd,
        };
        assert_eq!(Entry::of_words(entry.words(), 65_536), Ok(Some(entry)));
        assert!(
            Entry::of_words(entry.words(), 2048).is_err(),
            "longer than a page"
        );
        assert_eq!(Entry::of_words([0; 3], 65_536), Ok(None));
        let directory = Directory {
            next_page: 1030,
            next_space: 4,
            chunks: vec![Some(blob(64)), None],
            spaces: vec![(0, blob(128)), (3, blob(256))],
        };
        let bytes = directory.encode();
        assert_eq!(Directory::decode(&bytes), Some(directory));
        assert_eq!(Directory::decode(&bytes[..bytes.len() - 1]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(mut bytes in prop::collection::vec(any::<u8>(), 0..4096), seal in any::<bool>()) {
            let _ = Directory::decode(&bytes);
            let _ = Entry::take(&mut Reader::new(&bytes), 65_536);
            if seal {
                bytes.splice(0..bytes.len().min(8), ROOT_MAGIC);
                bytes.truncate(BLOCK - 4);
                bytes = super::seal(bytes, Tag::Root, 0);
            }
            let _ = Root::decode(&bytes, 0, &[0; 16]);
            let _ = Identity::decode(&bytes);
        }
    }
}
