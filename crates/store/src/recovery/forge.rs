//! Files of which some structure was replaced by another, all checksums being right: what a faulty program, or
//! somebody with bad intentions, could have written.

use std::sync::Arc;

use fuzz::Draw;
use io::Device;
use io::fault::Disk;

use super::roots::{identity, newest_sequence, root};
use crate::catalog::fuzzed::any_changes;
use crate::error::Region;
use crate::format::bytes::{Reader, Tag, checksum};
use crate::format::codec;
use crate::format::disk::{Limits, read_blob, tag_of};
use crate::format::fuzzed::{any_frame, forge_block};
use crate::format::kind::Codec;
use crate::format::structures::{
    BLOCK, Blob, Directory, ENTRY_BYTES, Entry, Identity, ROOT_OFFSETS, Root, aligned,
};
use crate::log::Log;

/// A closed store whose structures are replaced one by one.
pub(crate) struct Forge {
    pub(crate) disk: Disk,
    data: Arc<dyn Device>,
    identity: Identity,
    root: Root,
    directory: Directory,
}

impl Forge {
    /// A copy of the store on `disk`, which must be sound.
    pub(crate) fn of(disk: &Disk) -> Forge {
        let copy = Disk::new(0);
        for name in disk.names() {
            copy.put(&name, disk.bytes(&name));
        }
        let data = copy.device("data");
        let identity = identity(&*data).unwrap();
        let newest = newest_sequence(&*data, &identity.id).unwrap().unwrap();
        let root = root(&*data, (newest % 2) as u8, &identity.id)
            .unwrap()
            .unwrap();
        let mut forge = Forge {
            disk: copy,
            data,
            identity,
            root,
            directory: Directory::default(),
        };
        let bytes = forge.read(Region::Directory, &root.directory);
        forge.directory = Directory::decode(&bytes.unwrap()).unwrap();
        forge
    }

    /// The bytes of a structure, unless they were forged already.
    fn read(&self, region: Region, blob: &Blob) -> Option<Vec<u8>> {
        let limits = Limits {
            file_bytes: self.data.len().unwrap(),
            memory: u64::MAX,
        };
        read_blob(&*self.data, region, blob, &limits).ok()
    }

    /// Puts stored bytes at the end of the file.
    fn put_stored(&self, region: Region, codec: Codec, stored: &[u8], raw: usize) -> Blob {
        let (tag, number) = tag_of(region);
        let blob = Blob {
            offset: aligned(self.data.len().unwrap()).next_multiple_of(self.root.alignment.into()),
            stored: stored.len() as u64,
            raw: raw as u64,
            sum: checksum(tag, number, stored),
            codec,
        };
        self.data.write_at(blob.offset, stored).unwrap();
        self.data
            .set_len(aligned(self.data.len().unwrap()))
            .unwrap();
        blob
    }

    /// Puts a structure at the end of the file, as it is or compressed.
    fn put(&self, region: Region, raw: &[u8]) -> Blob {
        let (codec, stored) = codec::compress(raw);
        self.put_stored(region, codec, &stored, raw.len())
    }

    /// Replaces one thing by another; says which.
    pub(crate) fn forge(&mut self, draw: &mut Draw) -> &'static str {
        match draw.below(10) {
            0 => self.forge_identity(draw),
            1 => self.forge_root(draw),
            2 => self.forge_directory(draw),
            3 => self.forge_chunk(draw),
            4 | 5 => self.forge_space(draw),
            6 => self.forge_frame(draw),
            7 => self.forge_page(draw),
            8 => self.forge_record(draw),
            _ => self.forge_length(draw),
        }
    }

    fn forge_identity(&mut self, draw: &mut Draw) -> &'static str {
        let mut block = self.identity.encode();
        forge_block(draw, &mut block, Tag::Identity, 0);
        // The id stays, or nothing else belongs to it.
        if !draw.one_in(4) && block.len() == BLOCK {
            block[16..32].copy_from_slice(&self.identity.id);
            let sum = checksum(Tag::Identity, 0, &block[..BLOCK - 4]);
            block[BLOCK - 4..].copy_from_slice(&sum.to_le_bytes());
        }
        self.data.write_at(0, &block).unwrap();
        "identity"
    }

    fn forge_root(&mut self, draw: &mut Draw) -> &'static str {
        let slot = draw.below(2) as u8;
        let root = root(&*self.data, slot, &self.identity.id).ok();
        let root = root.and_then(Result::ok).unwrap_or(self.root);
        let mut block = root.encode(&self.identity.id);
        if draw.one_in(8) {
            forge_block(draw, &mut block, Tag::Root, slot.into());
        } else {
            // All but the id, which is looked at first.
            draw.disturb(&mut block[24..96]);
            let sum = checksum(Tag::Root, slot.into(), &block[..BLOCK - 4]);
            block[BLOCK - 4..].copy_from_slice(&sum.to_le_bytes());
        }
        self.data
            .write_at(ROOT_OFFSETS[usize::from(slot)], &block)
            .unwrap();
        "root"
    }

    /// Writes the directory, and the root that points to it.
    fn put_directory(&mut self, bytes: &[u8]) {
        self.root.directory = self.put(Region::Directory, bytes);
        self.root.file_bytes = self.data.len().unwrap();
        let offset = ROOT_OFFSETS[usize::from(self.root.slot())];
        self.data
            .write_at(offset, &self.root.encode(&self.identity.id))
            .unwrap();
    }

    fn forge_directory(&mut self, draw: &mut Draw) -> &'static str {
        let mut bytes = self.directory.encode();
        if draw.one_in(2) {
            draw.mutate(&mut bytes);
        } else {
            draw.disturb(&mut bytes);
        }
        self.put_directory(&bytes);
        "directory"
    }

    fn first_chunk(&self) -> Option<(usize, Vec<u8>)> {
        let at = self.directory.chunks.iter().position(Option::is_some)?;
        let blob = self.directory.chunks[at].as_ref()?;
        Some((at, self.read(Region::MapChunk(at as u32), blob)?))
    }

    fn forge_chunk(&mut self, draw: &mut Draw) -> &'static str {
        let Some((at, mut bytes)) = self.first_chunk() else {
            return self.forge_directory(draw);
        };
        let region = Region::MapChunk(at as u32);
        // Most pages of a small store stand at the beginning.
        let end = *draw.one_of(&[8 * ENTRY_BYTES, 64 * ENTRY_BYTES, bytes.len()]);
        draw.disturb(&mut bytes[..end]);
        if draw.one_in(10) {
            draw.mutate(&mut bytes);
        }
        self.directory.chunks[at] = Some(self.put(region, &bytes));
        self.put_directory(&self.directory.encode());
        "chunk"
    }

    fn forge_space(&mut self, draw: &mut Draw) -> &'static str {
        let at = draw.below(self.directory.spaces.len());
        let space = self.directory.spaces.get(at).copied();
        let bytes = space.and_then(|(number, blob)| self.read(Region::Space(number), &blob));
        let (Some((number, _)), Some(mut bytes)) = (space, bytes) else {
            return self.forge_directory(draw);
        };
        let region = Region::Space(number);
        if draw.one_in(3) {
            draw.mutate(&mut bytes);
        } else {
            draw.disturb(&mut bytes);
        }
        self.directory.spaces[at].1 = self.put(region, &bytes);
        self.put_directory(&self.directory.encode());
        "space"
    }

    /// A structure whose stored bytes are a frame that no compressor wrote, of any length.
    fn forge_frame(&mut self, draw: &mut Draw) -> &'static str {
        let places: Vec<(Region, Blob)> = self
            .directory
            .blobs()
            .map(|(region, blob)| (region, *blob))
            .collect();
        if places.is_empty() {
            return self.forge_directory(draw);
        }
        let (region, blob) = *draw.one_of(&places);
        let raw = self.read(region, &blob).unwrap_or_default();
        let frame = any_frame(draw, &raw);
        let claimed = match draw.below(3) {
            0 => draw.number() as usize,
            // The most that so many bytes can be.
            1 => frame.len() << 15,
            _ => raw.len(),
        };
        let forged = self.put_stored(region, Codec::Zstd, &frame, claimed);
        match region {
            Region::MapChunk(chunk) => self.directory.chunks[chunk as usize] = Some(forged),
            Region::Space(number) => {
                let spaces = &mut self.directory.spaces;
                spaces
                    .iter_mut()
                    .filter(|(of, _)| *of == number)
                    .for_each(|(_, blob)| *blob = forged);
            }
            _ => {}
        }
        self.put_directory(&self.directory.encode());
        "frame"
    }

    /// A page of a chunk.
    fn some_entry(&self, draw: &mut Draw, chunk: &[u8]) -> Option<(usize, Entry)> {
        let entry = |bytes: &[u8]| Entry::take(&mut Reader::new(bytes), self.identity.page_size);
        let entries = chunk.chunks_exact(ENTRY_BYTES).map(entry).enumerate();
        let live: Vec<_> = entries
            .filter_map(|(page, entry)| Some((page, entry.ok()??)))
            .collect();
        live.get(draw.below(live.len())).copied()
    }

    /// A page of other bytes, or of a frame that no compressor wrote.
    fn forge_page(&mut self, draw: &mut Draw) -> &'static str {
        let Some((at, mut chunk)) = self.first_chunk() else {
            return self.forge_directory(draw);
        };
        let region = Region::MapChunk(at as u32);
        let Some((page, old)) = self.some_entry(draw, &chunk) else {
            return self.forge_directory(draw);
        };
        let mut stored = vec![0; old.stored as usize];
        let mut raw = vec![0; old.raw as usize];
        if self.data.read_at(old.offset, &mut stored).is_err()
            || codec::decompress(old.codec, &stored, &mut raw).is_err()
        {
            return self.forge_directory(draw);
        }
        let number = (at * 1024 + page) as u32;
        let page_size = self.identity.page_size as usize;
        let (codec, stored, length) = if draw.one_in(3) {
            (Codec::Zstd, any_frame(draw, &raw), raw.len())
        } else {
            draw.mutate(&mut raw);
            raw.truncate(page_size);
            if raw.is_empty() {
                raw.push(1);
            }
            let length = raw.len();
            (Codec::Raw, raw, length)
        };
        let blob = self.put_stored(Region::Page(number), codec, &stored, length);
        let forged = Entry {
            offset: blob.offset,
            stored: stored.len() as u32,
            raw: length as u32,
            sum: blob.sum,
            codec,
            ..old
        };
        forged.write(&mut chunk[page * ENTRY_BYTES..][..ENTRY_BYTES]);
        self.directory.chunks[at] = Some(self.put(region, &chunk));
        self.put_directory(&self.directory.encode());
        "page"
    }

    /// Commits that no store has made, behind those of the log.
    fn forge_record(&mut self, draw: &mut Draw) -> &'static str {
        let Ok(found) = Log::open(self.disk.device("log"), self.identity.id) else {
            return self.forge_directory(draw);
        };
        let mut log = found.log;
        let mut version = self.root.version;
        let replayed = log.replay(version, crate::options::Damage::Drop, |number, _, _| {
            version = number;
            Ok(())
        });
        if replayed.is_err() || log.tidy().is_err() {
            return "record";
        }
        for _ in 0..1 + draw.below(3) {
            let mut body = any_changes(draw).encode();
            if draw.one_in(2) {
                draw.mutate(&mut body);
            }
            let durable = version;
            version += 1;
            log.append((version, durable), &body, true).unwrap();
        }
        "record"
    }

    /// Files that are longer or shorter than they should be.
    fn forge_length(&mut self, draw: &mut Draw) -> &'static str {
        let device = self.disk.device(["data", "log"][draw.below(2)]);
        let length = device.len().unwrap();
        let other = match draw.below(3) {
            0 => draw.below(length as usize + 1) as u64,
            1 => length + draw.below(100_000) as u64,
            _ => length.saturating_sub(draw.below(600) as u64),
        };
        device.set_len(other).unwrap();
        "length"
    }
}
