//! Where each page is kept: the catalog's entries of a page store.

use buffer::PageId;

/// Pages that one entry of the catalog speaks of: a write of any of them rewrites the entry, a
/// scan reads it once for all of them.
const CHUNK: u32 = 1024;

/// The key of the entry that speaks of `page`. In the order of the pages.
pub(super) fn key(page: u32) -> [u8; 4] {
    (page / CHUNK).to_be_bytes()
}

/// The places of [`CHUNK`] pages, as the catalog has them: the number of the page below plus one
/// in 5 bytes, little-endian; 0 for a page that was never written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Places(Vec<u8>);

const BYTES: usize = 5;

impl Places {
    /// The places of an entry, or of none.
    pub(super) fn of(entry: Option<&[u8]>) -> Places {
        let mut bytes = entry.unwrap_or_default().to_vec();
        bytes.resize(CHUNK as usize * BYTES, 0);
        Places(bytes)
    }

    /// Where an entry says that `page` is kept.
    pub(super) fn find(entry: &[u8], page: u32) -> Option<PageId> {
        let start = (page % CHUNK) as usize * BYTES;
        let mut number = [0; 8];
        number[..BYTES].copy_from_slice(entry.get(start..start + BYTES)?);
        u32::try_from(u64::from_le_bytes(number).checked_sub(1)?).ok()
    }

    /// Sets where `page` is kept; returns where it was.
    pub(super) fn set(&mut self, page: u32, place: Option<PageId>) -> Option<PageId> {
        let before = Places::find(&self.0, page);
        let number = place.map_or(0, |place| u64::from(place) + 1).to_le_bytes();
        let start = (page % CHUNK) as usize * BYTES;
        self.0[start..start + BYTES].copy_from_slice(&number[..BYTES]);
        before
    }

    /// The bytes of the entry, without the zeros at its end; empty if there is nothing to say.
    pub(super) fn entry(&self) -> &[u8] {
        let length = self.0.iter().rposition(|&byte| byte != 0);
        &self.0[..length.map_or(0, |last| (last / BYTES + 1) * BYTES)]
    }

    /// The pages of the entry with this key that are kept somewhere, and where.
    pub(super) fn all(key: &[u8], entry: &[u8]) -> impl Iterator<Item = (u32, PageId)> {
        let chunk = key.try_into().map_or(0, u32::from_be_bytes);
        let first = chunk.saturating_mul(CHUNK);
        let pages = (0..(entry.len() / BYTES) as u32).map(move |page| first.saturating_add(page));
        pages.filter_map(move |page| Some((page, Places::find(entry, page)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_at_both_ends() {
        let mut places = Places::of(None);
        assert!(places.entry().is_empty());
        assert_eq!(places.set(CHUNK, Some(u32::MAX)), None);
        assert_eq!(places.set(2 * CHUNK - 1, Some(0)), None);
        let entry = places.entry().to_vec();
        assert_eq!(
            Places::all(&key(CHUNK), &entry).collect::<Vec<_>>(),
            [(CHUNK, u32::MAX), (2 * CHUNK - 1, 0)]
        );
        let mut places = Places::of(Some(&entry));
        assert_eq!(places.set(2 * CHUNK - 1, None), Some(0));
        assert_eq!(places.entry().len(), BYTES, "the end is cut");
        assert_eq!(Places::find(places.entry(), CHUNK), Some(u32::MAX));
        assert_eq!(Places::find(places.entry(), CHUNK + 7), None);
    }
}
