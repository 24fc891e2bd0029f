//! The record of a run of an index: the bounds of its keys, and where its pages are.

use std::sync::Arc;

use buffer::PageId;

/// How much of the least and greatest key of a run its record has.
const BOUND: usize = 32;

/// The least and the greatest of some keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds(Option<(Vec<u8>, Vec<u8>)>);

impl Bounds {
    /// Takes a key in.
    pub(crate) fn take(&mut self, key: &[u8]) {
        let key = &key[..key.len().min(BOUND)];
        let Some((least, greatest)) = &mut self.0 else {
            self.0 = Some((key.to_vec(), key.to_vec()));
            return;
        };
        if key < least.as_slice() {
            *least = key.to_vec();
        }
        if key > greatest.as_slice() {
            *greatest = key.to_vec();
        }
    }

    /// Takes the keys in that others cover.
    pub(crate) fn join(&mut self, other: &Bounds) {
        if let Some((least, greatest)) = &other.0 {
            self.take(least);
            self.take(greatest);
        }
    }

    /// Whether a key from `least` to `greatest` may be among them.
    pub(crate) fn meets(&self, least: &[u8], greatest: &[u8]) -> bool {
        self.0
            .as_ref()
            .is_some_and(|own| *own.0 <= *greatest && least[..least.len().min(BOUND)] <= *own.1)
    }

    /// Whether a key may be among both.
    pub(crate) fn meet(&self, other: &Bounds) -> bool {
        other.0.as_ref().is_some_and(|(least, greatest)| {
            // The greatest is cut off, and stands for all that begin with it.
            let own = self.0.as_ref();
            own.is_some_and(|own| own.0 <= *greatest && *least <= own.1)
        })
    }

    /// Both, if there is a key.
    pub(crate) fn get(&self) -> Option<(&[u8], &[u8])> {
        self.0
            .as_ref()
            .map(|(least, greatest)| (&least[..], &greatest[..]))
    }
}

/// The record of a run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    bytes: Arc<[u8]>,
    /// Entries of all pages.
    pub entries: u64,
    pub bounds: Bounds,
    /// Where the records of its pages begin.
    pages: usize,
}

/// A page of a run: its least hash, its id and the number of its entries.
pub(crate) type PageRecord = (u64, PageId, u32);
const PAGE_RECORD: usize = 16;

impl Run {
    /// From its bytes; `None` if they are none.
    pub(crate) fn of(bytes: Arc<[u8]>) -> Option<Run> {
        let (entries, rest) = bytes.split_first_chunk::<8>()?;
        let (least, rest) = slice(rest)?;
        let (greatest, rest) = slice(rest)?;
        if rest.len() % PAGE_RECORD != 0 {
            return None;
        }
        let bounds = Bounds(Some((least.to_vec(), greatest.to_vec())));
        let (entries, pages) = (u64::from_le_bytes(*entries), bytes.len() - rest.len());
        Some(Run {
            bytes,
            entries,
            bounds,
            pages,
        })
    }

    /// Its record.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of its pages.
    pub(crate) fn len(&self) -> usize {
        (self.bytes.len() - self.pages) / PAGE_RECORD
    }

    /// Page number `at`.
    pub(crate) fn page(&self, at: usize) -> PageRecord {
        let mut eight = [0; 8];
        let record = &self.bytes[self.pages + at * PAGE_RECORD..][..PAGE_RECORD];
        eight.copy_from_slice(&record[..8]);
        let number = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        (
            u64::from_le_bytes(eight),
            number(&record[8..12]),
            number(&record[12..]),
        )
    }

    /// Its pages.
    pub(crate) fn page_ids(&self) -> impl Iterator<Item = PageId> + '_ {
        (0..self.len()).map(|at| self.page(at).1)
    }
}

/// A slice with its length before it.
fn slice(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(u16::from_le_bytes(*length).into())
}

/// The record of a run with these bounds, so many entries, and these pages.
pub(crate) fn record(entries: u64, bounds: &Bounds, pages: &[PageRecord]) -> Option<Run> {
    let mut bytes = entries.to_le_bytes().to_vec();
    let (least, greatest) = bounds.get().unwrap_or_default();
    for bound in [least, greatest] {
        bytes.extend((bound.len() as u16).to_le_bytes());
        bytes.extend_from_slice(bound);
    }
    for (first, id, count) in pages {
        bytes.extend(first.to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(count.to_le_bytes());
    }
    Run::of(bytes.into()).filter(|run| run.entries > 0)
}
