//! Memory that a read fills, owned by the read while it is under way.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Memory for the bytes of a read.
///
/// A read that was begun goes on after nobody waits for it any more, and the kernel writes into the
/// memory until it is done. So the read owns the memory, and gives it back with its answer, or drops
/// it once nothing is written to it any more.
///
/// # Safety
/// What [`bytes`](Room::bytes) returns is initialised memory that nobody else reads or writes, and
/// that stays where it is, also when the value is moved, until the value is dropped or used again.
/// Where [`registered`](Room::registered) is true, it lies in memory that was given to
/// [`Queue::register`](crate::Queue::register) of the queue that reads it and has been mapped since.
pub unsafe trait Room: Send + 'static {
    /// The first byte and the length.
    fn bytes(&mut self) -> (*mut u8, usize);

    /// Whether it lies in registered memory.
    fn registered(&self) -> bool {
        false
    }
}

// SAFETY: the vector owns its bytes, which are initialised up to its length, on the heap.
unsafe impl Room for Vec<u8> {
    fn bytes(&mut self) -> (*mut u8, usize) {
        (self.as_mut_ptr(), self.len())
    }
}

/// Zeroed memory of an alignment that direct I/O takes.
#[derive(Debug)]
pub struct Aligned {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory, which nothing else refers to.
unsafe impl Send for Aligned {}
// SAFETY: as above; a shared reference only reads.
unsafe impl Sync for Aligned {}

impl Aligned {
    /// Makes `len` zero bytes (at least one) at a multiple of `align`, a power of two; any other
    /// number is taken as the next one.
    pub fn new(len: usize, align: usize) -> Aligned {
        let align = align.clamp(1, 1 << 20).next_power_of_two();
        let layout = Layout::from_size_align(len.clamp(1, isize::MAX as usize / 2), align);
        let layout = layout.unwrap_or_else(|_| Layout::new::<u8>());
        // SAFETY: the layout has at least one byte.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        Aligned { start, layout }
    }

    /// The first byte. Whoever writes through it sees to it that nobody else reads or writes there.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `layout.size()` bytes from `start` are ours and initialised.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }

    /// The bytes, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

// SAFETY: it owns its bytes, which are initialised, on the heap.
unsafe impl Room for Aligned {
    fn bytes(&mut self) -> (*mut u8, usize) {
        (self.start.as_ptr(), self.layout.size())
    }
}
