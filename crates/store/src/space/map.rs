//! The page map: page id -> place in the file. Chunks of it are read when one of their pages is looked
//! up, and dropped where they are many.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use buffer::PageId;
use io::Device;
use memory::Budget;
use parking_lot::RwLock;

use crate::error::{Error, Result};
use crate::format::structures::{Blob, CHUNK, Directory, Entry};
use crate::space::chunk::{Chunks, Surroundings};
use crate::space::leaf::Leaf;
use crate::space::room::Room;

const FAN: usize = 2048;
type Inner = Box<[Slot]>;

/// One chunk: where the file has it, and its leaf, if that is in memory.
#[derive(Debug, Default)]
struct Slot {
    chunk: RwLock<Held>,
    /// The leaf, where leaves are never dropped: readable without the lock.
    fixed: OnceLock<Arc<Leaf>>,
}

/// Invariant: without a leaf, the chunk is what the file has at `blob`; `None` is a chunk without a page.
#[derive(Debug, Default)]
struct Held {
    blob: Option<Blob>,
    leaf: Option<Arc<Leaf>>,
}

/// Page id -> [`Entry`], three levels, of which the two above only ever grow.
///
/// A leaf is *clean* if it holds what the file has of its chunk by the newest root. All others stay:
/// those that a commit has changed since the last checkpoint, and those with pages that no checkpoint
/// writes: of a transaction under way, and freed ones that a snapshot or a pin keeps. So a chunk that is
/// not in memory is in the file, at the place that its slot names.
///
/// Invariants:
/// 1. An id is cleared only when nobody can ask for it any more: no snapshot that knows the page
///    is alive, and no frame holds it.
/// 2. A leaf is changed under the lock of its slot, shared, and dropped under that lock alone. No lock is held
///    while a chunk is read. What was read is used only if the slot names the same place afterwards: the space
///    of that place is not used again before a later root is durable and the slot names another.
#[derive(Debug)]
pub(crate) struct PageMap {
    /// `FAN` slots of `FAN` chunks: all of the 2^32 ids.
    top: Box<[OnceLock<Inner>]>,
    chunks: Chunks,
    room: Room,
    /// Whether leaves stay once they are in memory.
    fixed: bool,
}

const _: () = assert!((FAN * FAN * CHUNK as usize) as u64 == 1 << 32);

/// How a leaf that is not in memory gets there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    /// It is only read.
    Read,
    /// It is going to have a page that it does not have.
    Write,
    /// The same while the store is opened: its memory must be there.
    Recover,
}

impl PageMap {
    /// A map without a page. Leaves take their memory from `budget`; those that may be dropped stay within
    /// `bound` bytes, unless all are `fixed`.
    pub(crate) fn new(
        device: Arc<dyn Device>,
        page_size: u32,
        budget: Arc<Budget>,
        bound: u64,
        fixed: bool,
    ) -> PageMap {
        let bound = if fixed { u64::MAX } else { bound };
        PageMap {
            top: (0..FAN).map(|_| OnceLock::new()).collect(),
            chunks: Chunks::new(device, page_size),
            room: Room::new(budget, bound),
            fixed,
        }
    }

    /// Takes the places of the chunks from the directory of the newest root, and what else it leads to; reads
    /// none of them.
    pub(crate) fn begin(&self, directory: &Directory, structures: Vec<(u64, u64)>) -> Result<()> {
        for (chunk, blob) in (0..).zip(&directory.chunks) {
            let Some(blob) = blob else { continue };
            self.chunks.is_possible(chunk, blob)?;
            self.slot_or_new(chunk).chunk.write().blob = Some(*blob);
        }
        self.chunks.surround(Surroundings {
            next_page: directory.next_page,
            structures,
        });
        Ok(())
    }

    fn slot(&self, chunk: u32) -> Option<&Slot> {
        let chunk = chunk as usize;
        Some(&self.top[chunk / FAN].get()?[chunk % FAN])
    }

    fn slot_or_new(&self, chunk: u32) -> &Slot {
        let chunk = chunk as usize;
        let inner = self.top[chunk / FAN].get_or_init(|| {
            self.room.have((FAN * size_of::<Slot>()) as u64);
            (0..FAN).map(|_| Slot::default()).collect()
        });
        &inner[chunk % FAN]
    }

    /// Calls `act` with the leaf of a chunk, while that cannot be dropped; reads the chunk first if it must. `None`
    /// if there is no such chunk, and there is to be none.
    fn with<R>(&self, chunk: u32, ask: Ask, act: impl Fn(&Leaf) -> R) -> Result<Option<R>> {
        let slot = match ask {
            Ask::Read => match self.slot(chunk) {
                Some(slot) => slot,
                None => return Ok(None),
            },
            Ask::Write | Ask::Recover => self.slot_or_new(chunk),
        };
        loop {
            let held = slot.chunk.read();
            if let Some(leaf) = &held.leaf {
                leaf.touch();
                return Ok(Some(act(leaf)));
            }
            let blob = held.blob;
            drop(held);
            let read = match blob {
                None if ask == Ask::Read => return Ok(None),
                None => Ok(Leaf::empty()),
                Some(blob) => self
                    .chunks
                    .read(chunk, &blob)
                    .map(|entries| Leaf::of(&entries)),
            };
            self.enter(chunk, slot, blob, read, ask)?;
        }
    }

    /// Puts a leaf that was read from `blob` where it belongs, if nobody else has and the file has the chunk
    /// there still. An error counts under the same conditions.
    fn enter(
        &self,
        chunk: u32,
        slot: &Slot,
        blob: Option<Blob>,
        read: Result<Leaf>,
        ask: Ask,
    ) -> Result<()> {
        match (&read, ask) {
            (Err(_), _) => {}
            (Ok(_), Ask::Recover) => self.reserve()?,
            (Ok(_), Ask::Read | Ask::Write) => self.room.admit(|| self.drop_one()),
        }
        let mut held = slot.chunk.write();
        let superseded = held.leaf.is_some() || held.blob != blob;
        match read {
            Ok(leaf) if !superseded => {
                let leaf = Arc::new(leaf);
                if self.fixed {
                    let _ = slot.fixed.set(leaf.clone());
                }
                held.leaf = Some(leaf);
                drop(held);
                self.note_clean(chunk, slot);
                Ok(())
            }
            Ok(_) => {
                self.room.give();
                Ok(())
            }
            Err(_) if superseded => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn reserve(&self) -> Result<()> {
        self.room.reserve().map_err(|(wanted, left)| Error::Memory {
            path: self.chunks.path().to_path_buf(),
            what: "the page map".to_string(),
            wanted,
            left,
        })
    }

    /// Queues a leaf that may be dropped from now on.
    fn note_clean(&self, chunk: u32, slot: &Slot) {
        if self.fixed {
            return;
        }
        let held = slot.chunk.read();
        if let Some(leaf) = &held.leaf
            && leaf.is_clean()
            && !leaf.queued.swap(true, Ordering::AcqRel)
        {
            self.room.push(chunk);
        }
    }

    /// Drops a leaf that may be dropped, and that was not used lately; false if there is none.
    fn drop_one(&self) -> bool {
        let mut chances = self.room.queued();
        while let Some(chunk) = self.room.pop() {
            let Some(slot) = self.slot(chunk) else {
                continue;
            };
            let mut held = slot.chunk.write();
            let Some(leaf) = &held.leaf else { continue };
            if !leaf.is_clean() {
                // It is queued again when it is.
                leaf.queued.store(false, Ordering::Release);
                continue;
            }
            if leaf.was_used() && chances > 0 {
                chances -= 1;
                self.room.push(chunk);
                continue;
            }
            held.leaf = None;
            self.room.give();
            return true;
        }
        false
    }

    /// The entry of a live page. May read its chunk, and block the thread for that.
    ///
    /// # Errors
    /// [`Error::Damaged`] names the chunk and its offset; [`Error::Truncated`], [`Error::Io`].
    pub(crate) fn get(&self, page: PageId) -> Result<Option<Entry>> {
        let entry = self.with(page / CHUNK, Ask::Read, |leaf| {
            leaf.entry(page, self.chunks.page_size())
        });
        entry.map(Option::flatten)
    }

    /// The entry of a live page whose leaf is in memory: one that is held, or that a commit has changed.
    pub(crate) fn resident(&self, page: PageId) -> Option<Entry> {
        let held = self.slot(page / CHUNK)?.chunk.read();
        held.leaf.as_ref()?.entry(page, self.chunks.page_size())
    }

    /// The entry of a live page where leaves are never dropped, without a lock.
    pub(crate) fn fixed(&self, page: PageId) -> Option<Entry> {
        let leaf = self.slot(page / CHUNK)?.fixed.get()?;
        leaf.entry(page, self.chunks.page_size())
    }

    /// Where the chunk of a page is to be read before the page can be looked up without waiting; `None` if it
    /// is in memory, or there is none.
    pub(crate) fn missing(&self, page: PageId) -> Option<(u32, Blob)> {
        let chunk = page / CHUNK;
        let held = self.slot(chunk)?.chunk.read();
        match &held.leaf {
            Some(_) => None,
            None => Some((chunk, held.blob?)),
        }
    }

    /// Whether a chunk that the file has is not in memory.
    pub(crate) fn is_missing(&self, chunk: u32) -> bool {
        self.missing(chunk * CHUNK).is_some()
    }

    /// Takes what was read at a [missing](PageMap::missing) place. What is wrong with it is left to whoever looks
    /// a page up: that reads it once more.
    pub(crate) fn offer(&self, chunk: u32, blob: &Blob, stored: &[u8]) {
        if let (Some(slot), Ok(entries)) =
            (self.slot(chunk), self.chunks.unpack(chunk, blob, stored))
        {
            let leaf = Ok(Leaf::of(&entries));
            let _ = self.enter(chunk, slot, Some(*blob), leaf, Ask::Read);
        }
    }

    /// Calls `act` with the leaf of a page, which is in memory, and counts it among those that may be dropped if
    /// it is so now.
    fn at(&self, page: PageId, act: impl FnOnce(&Leaf)) {
        let chunk = page / CHUNK;
        let Some(slot) = self.slot(chunk) else { return };
        if let Some(leaf) = &slot.chunk.read().leaf {
            act(leaf);
        }
        self.note_clean(chunk, slot);
    }

    /// Makes `page` live, of a transaction under way: its leaf is held. It must not be live already.
    ///
    /// # Errors
    /// As [`get`](PageMap::get).
    pub(crate) fn open(&self, page: PageId, entry: &Entry) -> Result<()> {
        let opened = self.with(page / CHUNK, Ask::Write, |leaf| {
            leaf.hold();
            leaf.set(page, entry);
        });
        opened.map(drop)
    }

    /// Holds the leaf of a live page in memory, and returns the entry. Of other pages none is held.
    ///
    /// # Errors
    /// As [`get`](PageMap::get).
    pub(crate) fn hold(&self, page: PageId) -> Result<Option<Entry>> {
        let held = self.with(page / CHUNK, Ask::Read, |leaf| {
            let entry = leaf.entry(page, self.chunks.page_size());
            entry.inspect(|_| leaf.hold())
        });
        held.map(Option::flatten)
    }

    /// Undoes one [`hold`](PageMap::hold) or [`open`](PageMap::open).
    pub(crate) fn let_go(&self, page: PageId) {
        self.at(page, Leaf::let_go);
    }

    /// A commit has changed the chunk of a page whose leaf is held.
    pub(crate) fn change(&self, page: PageId) {
        self.at(page, |leaf| leaf.change(true));
    }

    /// Says that a live page whose leaf is held lies elsewhere now, with the same bytes. Who has read the entry before
    /// reads the former place, and must look again if that holds something else by then.
    pub(crate) fn relocate(&self, page: PageId, offset: u64) {
        self.at(page, |leaf| {
            leaf.change(true);
            leaf.relocate(page, offset);
        });
    }

    /// Makes `page`, whose leaf is held, free; the caller sees to invariant 1.
    pub(crate) fn clear(&self, page: PageId) {
        self.at(page, |leaf| leaf.clear(page));
    }

    /// The entry of a page that the log speaks of, while the store is opened.
    ///
    /// # Errors
    /// As [`get`](PageMap::get), and [`Error::Memory`].
    pub(crate) fn replay_entry(&self, page: PageId) -> Result<Option<Entry>> {
        let entry = self.with(page / CHUNK, Ask::Recover, |leaf| {
            leaf.entry(page, self.chunks.page_size())
        });
        entry.map(Option::flatten)
    }

    /// Makes `page` live as the log says, while the store is opened.
    ///
    /// # Errors
    /// As [`replay_entry`](PageMap::replay_entry).
    pub(crate) fn replay(&self, page: PageId, entry: &Entry) -> Result<()> {
        self.recover(page, |leaf| leaf.set(page, entry))
    }

    /// Makes `page` free as the log says, while the store is opened.
    ///
    /// # Errors
    /// As [`replay_entry`](PageMap::replay_entry).
    pub(crate) fn replay_free(&self, page: PageId) -> Result<()> {
        self.recover(page, |leaf| leaf.clear(page))
    }

    fn recover(&self, page: PageId, act: impl Fn(&Leaf)) -> Result<()> {
        let done = self.with(page / CHUNK, Ask::Recover, |leaf| {
            leaf.change(true);
            act(leaf);
        });
        done.map(drop)
    }

    /// A durable root leads to new places of chunks; `changed` says of which a later commit has changed something.
    pub(crate) fn install(
        &self,
        chunks: impl Iterator<Item = (u32, Option<Blob>)>,
        changed: impl Fn(u32) -> bool,
        surroundings: Surroundings,
    ) {
        // Before: a chunk that is read at its new place is held against what is around it there. One that is read at
        // a former place is not believed, whatever is found.
        self.chunks.surround(surroundings);
        for (chunk, blob) in chunks {
            let slot = self.slot_or_new(chunk);
            let mut held = slot.chunk.write();
            held.blob = blob;
            if let Some(leaf) = &held.leaf {
                leaf.change(changed(chunk));
            }
            drop(held);
            self.note_clean(chunk, slot);
        }
        while self.room.has_too_much() && self.drop_one() {}
    }

    /// The live pages of one chunk. One that is not in memory is read, and not kept there.
    ///
    /// # Errors
    /// As [`get`](PageMap::get).
    pub(crate) fn chunk(&self, chunk: u32) -> Result<Vec<(PageId, Entry)>> {
        let Some(slot) = self.slot(chunk) else {
            return Ok(Vec::new());
        };
        let entries = |held: &Held| {
            let leaf = held.leaf.as_ref();
            leaf.map(|leaf| leaf.entries(chunk * CHUNK, self.chunks.page_size()))
        };
        loop {
            let held = slot.chunk.read();
            if let Some(entries) = entries(&held) {
                return Ok(entries);
            }
            let Some(blob) = held.blob else {
                return Ok(Vec::new());
            };
            drop(held);
            let read = self.chunks.read(chunk, &blob);
            let held = slot.chunk.read();
            if let Some(entries) = entries(&held) {
                return Ok(entries);
            }
            if held.blob == Some(blob) {
                return read;
            }
        }
    }

    /// The chunks that can have pages below `end`.
    pub(crate) fn chunks_below(end: u64) -> std::ops::Range<u32> {
        0..end.div_ceil(u64::from(CHUNK)) as u32
    }

    /// What the newest root leads to.
    pub(crate) fn surroundings(&self) -> Arc<Surroundings> {
        self.chunks.surroundings()
    }

    /// The budget that the map takes its memory from.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        self.room.budget()
    }

    /// How many leaves there may be, as long as enough of them may be dropped.
    pub(crate) fn bound_leaves(&self) -> usize {
        self.room.bound_leaves()
    }

    /// Bytes of memory that the map takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.room.bytes()
    }
}
