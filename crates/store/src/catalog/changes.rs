//! What one transaction changes, as the log's records hold it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use buffer::PageId;

use crate::catalog::spaces::{Bytes, Catalog};
use crate::format::bytes::{Put, Reader, Tag, checksum};
use crate::format::structures::Entry;

/// The difference between two successive versions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) written: Vec<(PageId, Entry)>,
    /// The stored bytes of each page written, in their order; none at all where they were made
    /// durable in the data file.
    pub(crate) images: Vec<Arc<[u8]>>,
    pub(crate) freed: Vec<PageId>,
    pub(crate) next_space: u32,
    /// Spaces emptied before `keys` are applied.
    pub(crate) dropped: BTreeSet<u32>,
    /// Values put, and `None` for keys deleted.
    pub(crate) keys: BTreeMap<(u32, Bytes), Option<Bytes>>,
}

impl Changes {
    /// The body of the log record.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32 + self.written.len() * 28 + self.freed.len() * 4);
        out.put_u32(self.next_space);
        out.put_u32(self.written.len() as u32);
        for (page, entry) in &self.written {
            out.put_u32(*page);
            for word in entry.words() {
                out.put_u64(word);
            }
        }
        out.put_u32(self.freed.len() as u32);
        for &page in &self.freed {
            out.put_u32(page);
        }
        out.put_u32(self.dropped.len() as u32);
        for &space in &self.dropped {
            out.put_u32(space);
        }
        out.put_u32(self.keys.len() as u32);
        for ((space, key), value) in &self.keys {
            out.put_u32(*space);
            out.put_u8(u8::from(value.is_some()));
            out.put_slice(key);
            if let Some(value) = value {
                out.put_slice(value);
            }
        }
        debug_assert!(self.images.is_empty() || self.images.len() == self.written.len());
        for image in &self.images {
            out.extend_from_slice(image);
        }
        out
    }

    /// How many bytes [`encode`](Changes::encode) gives.
    pub(crate) fn encoded_bytes(&self) -> u64 {
        let key = |((_, key), value): (&(u32, Bytes), &Option<Bytes>)| {
            9 + key.len() as u64 + value.as_ref().map_or(0, |value| 4 + value.len() as u64)
        };
        20 + self.written.len() as u64 * 28
            + (self.freed.len() + self.dropped.len()) as u64 * 4
            + self.keys.iter().map(key).sum::<u64>()
            + self.image_bytes()
    }

    /// Bytes of the images.
    pub(crate) fn image_bytes(&self) -> u64 {
        self.images.iter().map(|image| image.len() as u64).sum()
    }

    /// The changes of these bytes, if they are such.
    pub(crate) fn decode(bytes: &[u8], page_size: u32) -> Option<Changes> {
        let mut reader = Reader::new(bytes);
        let mut changes = Changes {
            next_space: reader.u32()?,
            ..Changes::default()
        };
        for _ in 0..reader.u32()? {
            let page = reader.u32()?;
            changes
                .written
                .push((page, Entry::take(&mut reader, page_size).ok()??));
        }
        for _ in 0..reader.u32()? {
            changes.freed.push(reader.u32()?);
        }
        for _ in 0..reader.u32()? {
            changes.dropped.insert(reader.u32()?);
        }
        for _ in 0..reader.u32()? {
            let space = reader.u32()?;
            let put = reader.u8()? != 0;
            let key = reader.slice()?;
            let value = if put {
                Some(reader.slice()?.into())
            } else {
                None
            };
            changes.keys.insert((space, key.into()), value);
        }
        if !reader.is_empty() {
            for (page, entry) in &changes.written {
                let image = reader.take(entry.stored as usize)?;
                if checksum(Tag::Page, *page, image) != entry.sum {
                    return None;
                }
                changes.images.push(image.into());
            }
        }
        reader.is_empty().then_some(changes)
    }

    /// Makes the changes in `catalog`.
    pub(crate) fn apply(&self, catalog: &mut Catalog) {
        for space in &self.dropped {
            catalog.spaces.remove(space);
        }
        for ((space, key), value) in &self.keys {
            match value {
                Some(value) => catalog.put(*space, key.clone(), value.clone()),
                None => catalog.delete(*space, key),
            }
        }
        catalog.next_space = catalog.next_space.max(self.next_space);
    }

    /// The spaces that `apply` touches.
    pub(crate) fn spaces(&self) -> impl Iterator<Item = u32> + '_ {
        self.dropped
            .iter()
            .copied()
            .chain(self.keys.keys().map(|(space, _)| *space))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.written.is_empty()
            && self.freed.is_empty()
            && self.dropped.is_empty()
            && self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::kind::{Codec, Kind};
    use crate::format::structures::FIRST_EXTENT;

    #[test]
    fn changes_come_back() {
        let entry = Entry {
            offset: FIRST_EXTENT,
            stored: 3,
            raw: 3,
            sum: 4,
            bucket: 5,
            kind: Kind::Strings,
            codec: Codec::Raw,
        };
        let changes = Changes {
            written: vec![(7, entry)],
            images: Vec::new(),
            freed: vec![1, 2],
            next_space: 9,
            dropped: [4].into(),
            keys: [
                ((0, (*b"put").into()), Some((*b"value").into())),
                ((1, (*b"gone").into()), None),
            ]
            .into(),
        };
        let mut with_image = changes.clone();
        with_image.images.push(b"abc".as_slice().into());
        assert_eq!(
            Changes::decode(&with_image.encode(), 65_536),
            None,
            "its checksum"
        );
        with_image.written[0].1.sum = checksum(Tag::Page, 7, b"abc");
        let bytes = with_image.encode();
        assert_eq!(bytes.len() as u64, with_image.encoded_bytes());
        for cut in 1..3 {
            assert_eq!(Changes::decode(&bytes[..bytes.len() - cut], 65_536), None);
        }
        assert_eq!(Changes::decode(&bytes, 65_536), Some(with_image));
        let bytes = changes.encode();
        assert_eq!(bytes.len() as u64, changes.encoded_bytes());
        for length in 0..bytes.len() {
            assert_eq!(Changes::decode(&bytes[..length], 65_536), None);
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut strange = bytes.clone();
                strange[at] = value;
                // Whatever comes out, it comes out without a panic.
                let _ = Changes::decode(&strange, 65_536);
            }
        }
        assert_eq!(Changes::decode(&bytes, 65_536), Some(changes));
    }
}
