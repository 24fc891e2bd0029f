//! A buffer whose parts are written by several tasks.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::data::buffer::Room;

/// Room for a buffer cut into parts, each of which one task may have. Memory safety rests on two facts: parts do not overlap,
/// and each is lent once.
#[derive(Debug)]
pub(crate) struct Slabs {
    /// Where its bytes are; nobody looks at it by another way until all parts are given back.
    start: *mut MaybeUninit<u8>,
    room: Room,
    /// Where each part ends, in bytes.
    ends: Vec<usize>,
    lent: Vec<AtomicBool>,
}

// SAFETY: the pointer leads into `room`, which moves with it and whose heap memory does not; what it leads to is handed
// out as parts that do not overlap.
unsafe impl Send for Slabs {}
// SAFETY: as above; whether a part is lent is an atomic.
unsafe impl Sync for Slabs {}

/// A part that is lent. It cannot be had again, also after it was dropped.
#[derive(Debug)]
pub(crate) struct Slab {
    slabs: Arc<Slabs>,
    part: usize,
}

impl Slabs {
    /// Cuts room into parts that end at these bytes, in rising order.
    ///
    /// # Panics
    /// If they are not in order, or the last is not the end of the room.
    pub fn new(mut room: Room, ends: Vec<usize>) -> Arc<Slabs> {
        let bytes = room.bytes_mut();
        assert!(
            ends.is_sorted() && ends.last() == Some(&bytes.len()),
            "parts cover the room"
        );
        Arc::new(Slabs {
            start: bytes.as_mut_ptr(),
            lent: ends.iter().map(|_| AtomicBool::new(false)).collect(),
            room,
            ends,
        })
    }

    /// A part; `None` if it was lent before, or there is none of this number.
    pub fn lend(self: &Arc<Slabs>, part: usize) -> Option<Slab> {
        let lent = self.lent.get(part)?.swap(true, Ordering::Relaxed);
        (!lent).then(|| Slab {
            slabs: self.clone(),
            part,
        })
    }

    /// The room, when all parts were given back; `None` before.
    pub fn finish(slabs: Arc<Slabs>) -> Option<Room> {
        Arc::try_unwrap(slabs).ok().map(|slabs| slabs.room)
    }
}

impl Slab {
    /// The bytes of the part.
    pub fn bytes(&mut self) -> &mut [MaybeUninit<u8>] {
        let end = self.slabs.ends[self.part];
        let start = self
            .part
            .checked_sub(1)
            .map_or(0, |before| self.slabs.ends[before]);
        // SAFETY: `start..end` lies within the room, since ends rise up to its length. It overlaps no other part, and
        // this one was lent once: no other reference leads there. The room lives as long as `slabs`, does not change
        // its memory, and is not looked at before `finish` has the last reference, when this is gone.
        unsafe { std::slice::from_raw_parts_mut(self.slabs.start.add(start), end - start) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::types::DataType;

    #[test]
    fn each_part_is_lent_once_and_all_come_back() {
        let slabs = Slabs::new(Room::new(DataType::U16, 6), vec![4, 4, 12]);
        let threads: Vec<_> = (0..3)
            .map(|part| {
                let mut slab = slabs.lend(part).unwrap();
                std::thread::spawn(move || {
                    slab.bytes().fill(MaybeUninit::new(part as u8 + 1));
                })
            })
            .collect();
        assert!(slabs.lend(1).is_none() && slabs.lend(3).is_none());
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        let room = Slabs::finish(slabs).unwrap();
        // SAFETY: the parts cover the room, and each was filled.
        let buffer = unsafe { room.written() };
        assert_eq!(buffer.bytes(), [1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3, 3]);
    }

    #[test]
    fn a_part_that_is_still_lent_keeps_the_buffer() {
        let slabs = Slabs::new(Room::new(DataType::U8, 2), vec![2]);
        let slab = slabs.lend(0);
        assert!(Slabs::finish(slabs).is_none());
        drop(slab);
    }
}
