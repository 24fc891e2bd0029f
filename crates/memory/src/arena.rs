//! Memory taken from the system in one piece.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use crate::{Error, Result};

/// An anonymous mapping, unmapped on drop.
#[derive(Debug)]
struct Map {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: `Map` owns the mapping, and its methods only hand out the address; access to what is
// in it is the business of whoever dereferences that.
unsafe impl Send for Map {}
// SAFETY: as above; no method changes the mapping.
unsafe impl Sync for Map {}

impl Map {
    /// Maps `bytes`, readable, writable and zero, with additional `flags`.
    fn new(bytes: usize, flags: libc::c_int) -> Result<Map> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            let source = io::Error::last_os_error();
            return Err(Error::Map {
                bytes: bytes as u64,
                source,
            });
        }
        match NonNull::new(start.cast()) {
            Some(start) => Ok(Map { start, bytes }),
            None => {
                let source = io::Error::other("the system mapped address 0");
                Err(Error::Map {
                    bytes: bytes as u64,
                    source,
                })
            }
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `new` made; nothing is left that refers to it, since
        // the methods that lend it borrow the owner.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Memory on one node, zeroed, aligned to at least 4 KiB, unmapped on drop.
#[derive(Debug)]
pub struct Arena {
    map: Map,
    len: usize,
    node: Option<u32>,
    notes: Vec<String>,
}

impl Arena {
    /// Maps `bytes` (at least 1) of zeroed memory, with huge pages where allowed, preferably on
    /// the node with the operating system's number `os_node`.
    ///
    /// # Errors
    ///
    /// [`Error::Map`] where there is no such memory. Refused binding or huge pages are no
    /// error: see [`notes`](Arena::notes).
    pub fn new(bytes: usize, os_node: Option<u32>) -> Result<Arena> {
        let map = Map::new(bytes, 0)?;
        Ok(Arena {
            map,
            len: bytes,
            node: os_node,
            notes: Vec::new(),
        })
    }

    /// The first byte. Whoever writes through it sees to it that nobody else does at the time.
    pub fn as_ptr(&self) -> *mut u8 {
        self.map.start.as_ptr()
    }

    /// Length in bytes, as asked for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: an arena has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The node it was asked to be on.
    pub fn node(&self) -> Option<u32> {
        self.node
    }

    /// What the system refused, one line each; usually empty.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// A large zeroed range of addresses that takes memory only as it is touched.
#[derive(Debug)]
pub struct Reserve {
    map: Map,
    len: usize,
}

impl Reserve {
    /// Reserves `bytes` (at least 1) of addresses.
    ///
    /// # Errors
    ///
    /// [`Error::Map`] where the address space or `ulimit -v` does not allow it.
    pub fn new(bytes: usize) -> Result<Reserve> {
        Ok(Reserve {
            map: Map::new(bytes, libc::MAP_NORESERVE)?,
            len: bytes,
        })
    }

    /// The first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.map.start.as_ptr()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: a reserve has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The whole as words that are zero until stored to.
    pub fn words(&self) -> &[AtomicU64] {
        let count = self.len / size_of::<AtomicU64>();
        // SAFETY: the mapping holds `len` bytes, is page-aligned, lives as long as `self`, and
        // any bytes are a valid `AtomicU64`.
        unsafe { std::slice::from_raw_parts(self.as_ptr().cast::<AtomicU64>(), count) }
    }
}
