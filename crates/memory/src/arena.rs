//! Large mappings of anonymous memory: [`Arena`], bound to a node, and [`Reserve`], a range of addresses.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use crate::pages::{self, Policy};
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
    fn new(bytes: usize, flags: libc::c_int) -> io::Result<Map> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast());
        let start = start.ok_or_else(|| io::Error::other("the system mapped address 0"))?;
        Ok(Map { start, bytes })
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `new` made; nothing is left that refers to it, since
        // the methods that lend it borrow the owner.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A huge page; the kernel uses them only where a whole one fits.
const HUGE: usize = 2 << 20;

/// Memory on one node, zeroed, unmapped on drop. Aligned to 2 MiB where it is at least that
/// long, otherwise to a page.
///
/// Physical pages are allocated when they are first touched, from the node it is bound to.
#[derive(Debug)]
pub struct Arena {
    /// Never accessed but through `start`; unmaps on drop.
    _map: Map,
    /// The first byte of the map that is aligned. Invariant: `start + len` is inside the map.
    start: NonNull<u8>,
    len: usize,
    node: Option<u32>,
    notes: Vec<String>,
}

// SAFETY: as for `Map`, whose address `start` is.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Maps `bytes` (at least 1) of zeroed memory, with huge pages where allowed, preferably on
    /// the node with the operating system's number `os_node`.
    ///
    /// The preference is no guarantee: where the node is full the system takes the memory from
    /// the next one.
    ///
    /// # Errors
    ///
    /// [`Error::Map`] where there is no such memory. Refused binding or huge pages are no
    /// error: see [`notes`](Arena::notes).
    pub fn new(bytes: usize, os_node: Option<u32>) -> Result<Arena> {
        Arena::placed(bytes, Policy::Prefer, os_node.as_slice())
    }

    /// As [`new`](Arena::new), with the memory taken from `nodes` (the operating system's numbers) as `policy` says;
    /// without nodes from wherever it is first touched. Bound to a node that is full, the process is killed where it
    /// touches what cannot be had.
    ///
    /// # Errors
    ///
    /// As [`new`](Arena::new).
    pub fn placed(bytes: usize, policy: Policy, nodes: &[u32]) -> Result<Arena> {
        let spare = if bytes >= HUGE { HUGE } else { 0 };
        // Errors name the length that was asked for.
        let failed = |source| Error::Map {
            bytes: bytes as u64,
            source,
        };
        let whole = bytes.checked_add(spare);
        let whole = whole.ok_or_else(|| failed(io::Error::from_raw_os_error(libc::ENOMEM)))?;
        let map = Map::new(whole, 0).map_err(failed)?;
        let skip = if spare > 0 {
            map.start.as_ptr().align_offset(HUGE)
        } else {
            0
        };
        // SAFETY: `skip` is less than HUGE, by which the map is longer than `bytes`; without
        // spare it is 0.
        let start = unsafe { map.start.add(skip) };
        let mut notes = Vec::new();
        if !nodes.is_empty()
            && let Err(error) = pages::set_policy(start.as_ptr().addr(), bytes, policy, nodes)
        {
            let names: Vec<String> = nodes.iter().map(u32::to_string).collect();
            let s = if nodes.len() == 1 { "" } else { "s" };
            let names = names.join(", ");
            notes.push(format!("memory is not bound to node{s} {names}: {error}"));
        }
        if spare > 0
            && let Err(error) = huge(start, bytes)
        {
            notes.push(format!("memory is not in huge pages: {error}"));
        }
        Ok(Arena {
            _map: map,
            start,
            len: bytes,
            node: match nodes {
                [node] => Some(*node),
                _ => None,
            },
            notes,
        })
    }

    /// The first byte. Whoever writes through it must make sure that nobody else accesses those bytes meanwhile.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Length in bytes, as asked for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: an arena has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The one node it was asked to be on, if it was one.
    pub fn node(&self) -> Option<u32> {
        self.node
    }

    /// What the system refused, one line each; usually empty.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// Asks the system for huge pages.
fn huge(start: NonNull<u8>, bytes: usize) -> io::Result<()> {
    // SAFETY: the range is mapped and ours; the advice does not change what is in it.
    let result = unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
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
        let map = Map::new(bytes, libc::MAP_NORESERVE);
        let map = map.map_err(|source| Error::Map {
            bytes: bytes as u64,
            source,
        })?;
        Ok(Reserve { map, len: bytes })
    }

    /// Asks the system to back what is touched by huge pages, so that reading here and there needs
    /// fewer entries of the translation look-aside buffer. Then the least that a touch takes is 2
    /// MiB, not 4 KiB.
    ///
    /// # Errors
    ///
    /// What the system reports; the reserve works as before.
    pub fn huge(&self) -> io::Result<()> {
        huge(self.map.start, self.len)
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

    /// The whole range as atomic words, which are zero until stored to.
    pub fn words(&self) -> &[AtomicU64] {
        let count = self.len / size_of::<AtomicU64>();
        // SAFETY: the mapping holds `len` bytes, is page-aligned, lives as long as `self`, and
        // any bytes are a valid `AtomicU64`.
        unsafe { std::slice::from_raw_parts(self.as_ptr().cast::<AtomicU64>(), count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn zeroed_writable_and_aligned() {
        for bytes in [1, 4096, HUGE - 1, HUGE, 3 * HUGE + 5] {
            let arena = Arena::new(bytes, Some(0)).unwrap();
            assert_eq!((arena.len(), arena.node()), (bytes, Some(0)));
            let align = if bytes >= HUGE { HUGE } else { 4096 };
            assert_eq!(arena.as_ptr().addr() % align, 0);
            // SAFETY: the arena is ours alone, and `bytes` long.
            let all = unsafe { std::slice::from_raw_parts_mut(arena.as_ptr(), bytes) };
            assert!(all.iter().all(|byte| *byte == 0));
            all.fill(7);
            assert_eq!(all[bytes - 1], 7);
        }
    }

    #[test]
    fn a_node_that_does_not_exist_is_noted_and_the_memory_works() {
        for node in [1023, 5000, u32::MAX] {
            let arena = Arena::new(1 << 16, Some(node)).unwrap();
            assert_eq!(arena.notes().len(), 1, "{:?}", arena.notes());
            assert!(arena.notes()[0].contains(&format!("node {node}")));
            // SAFETY: the arena is ours alone, and longer than one byte.
            unsafe { arena.as_ptr().write(1) };
        }
        assert_eq!(Arena::new(4096, None).unwrap().notes().len(), 0);
    }

    #[test]
    fn impossible_sizes_are_errors() {
        for bytes in [0, 1 << 60, usize::MAX] {
            let error = Arena::new(bytes, None).unwrap_err();
            assert!(matches!(error, Error::Map { .. }));
            assert!(error.to_string().contains(&bytes.to_string()), "{error}");
            assert!(Reserve::new(bytes).is_err());
        }
    }

    #[test]
    fn a_reserve_is_larger_than_memory_and_zero() {
        // 256 GiB of addresses.
        let reserve = Reserve::new(1 << 38).unwrap();
        let words = reserve.words();
        assert_eq!(words.len(), 1 << 35);
        for at in [0, 12345, words.len() - 1] {
            assert_eq!(words[at].swap(at as u64 + 1, Ordering::Relaxed), 0);
            assert_eq!(words[at].load(Ordering::Relaxed), at as u64 + 1);
        }
    }

    #[test]
    fn shared_between_threads() {
        let reserve = Reserve::new(1 << 20).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for word in reserve.words().iter().take(1000) {
                        word.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert!(
            reserve.words()[..1000]
                .iter()
                .all(|word| word.load(Ordering::Relaxed) == 4)
        );
    }
}
