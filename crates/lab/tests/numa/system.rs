//! The system calls that the tests are made with: theirs, not those of the crates under test.

use std::fs;
use std::io;
use std::ptr::NonNull;

pub const PAGE: usize = 4096;

/// `MPOL_MF_MOVE`: pages that only this process uses.
const MOVE: libc::c_int = 2;

/// Binds the calling thread to a set of cpus.
pub fn bind(cpus: &[u32]) -> io::Result<()> {
    // SAFETY: all zeroes is a valid, empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in cpus {
        // SAFETY: the macro checks that the cpu is in the set's range.
        unsafe { libc::CPU_SET(*cpu as usize, &mut set) };
    }
    // SAFETY: the set is ours and of the size that is given; 0 is the calling thread.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// The cpu and the node that the calling thread is on.
pub fn here() -> (u32, u32) {
    let (mut cpu, mut node) = (0u32, 0u32);
    let none = std::ptr::null::<u8>();
    // SAFETY: the kernel writes the two numbers, which are ours.
    let result = unsafe { libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, none) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
    (cpu, node)
}

/// How often the kernel has moved the calling thread to another cpu.
pub fn migrations() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/sched").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("se.nr_migrations"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

/// Runs something on a thread of its own, bound to these cpus.
pub fn on<T: Send>(cpus: &[u32], work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            bind(cpus).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

/// Anonymous memory, unmapped on drop.
pub struct Pages {
    start: NonNull<u8>,
    count: usize,
}

// SAFETY: the mapping is owned, and nothing here depends on the thread.
unsafe impl Send for Pages {}
// SAFETY: as above; writing through `&Pages` is what each test sees to.
unsafe impl Sync for Pages {}

impl Pages {
    /// Ordinary pages: huge ones would be interleaved as wholes.
    pub fn new(count: usize) -> Pages {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let (none, bytes) = (std::ptr::null_mut(), count * PAGE);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe { libc::mmap(none, bytes, protection, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED, "{}", io::Error::last_os_error());
        // SAFETY: the mapping is ours. Where the kernel has no huge pages it refuses the advice.
        unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
        let start = NonNull::new(start.cast()).unwrap();
        Pages { start, count }
    }

    /// Sets the policy: `MPOL_BIND`, `MPOL_INTERLEAVE`, ...
    pub fn policy(&self, mode: i32, nodes: &[u32]) -> io::Result<()> {
        let mut mask = [0u64; 16];
        for node in nodes {
            mask[*node as usize / 64] |= 1 << (node % 64);
        }
        let bytes = self.count * PAGE;
        // SAFETY: the range is ours; the kernel reads 1024 bits of the mask (it counts one more).
        let result = unsafe {
            let (start, mask) = (self.start.as_ptr(), mask.as_ptr());
            libc::syscall(libc::SYS_mbind, start, bytes, mode, mask, 1025, 0)
        };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// Writes to each page.
    pub fn touch(&self) {
        for page in self.addresses() {
            // SAFETY: inside the mapping, which is ours.
            unsafe { page.cast_mut().write(1) };
        }
    }

    /// Has the kernel move all pages to a node.
    pub fn migrate(&self, node: u32) -> io::Result<()> {
        let addresses: Vec<*const u8> = self.addresses().collect();
        let nodes = vec![node as i32; addresses.len()];
        let mut status = vec![0i32; addresses.len()];
        // SAFETY: three arrays of the length that is given, of which the last is written to.
        let result = unsafe {
            libc::syscall(
                libc::SYS_move_pages,
                0,
                addresses.len(),
                addresses.as_ptr(),
                nodes.as_ptr(),
                status.as_mut_ptr(),
                MOVE,
            )
        };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    pub fn addresses(&self) -> impl Iterator<Item = *const u8> {
        (0..self.count).map(|page| self.start.as_ptr().wrapping_add(page * PAGE).cast_const())
    }

    /// Pages on each node, by `memory::residency`.
    pub fn resident(&self) -> Vec<(u32, usize)> {
        resident(&self.addresses().collect::<Vec<_>>())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `new` made, to which nothing refers any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.count * PAGE) };
    }
}

/// Pages on each node, ascending; every page must be present.
pub fn resident(addresses: &[*const u8]) -> Vec<(u32, usize)> {
    let mut counts = std::collections::BTreeMap::new();
    for node in memory::residency(addresses).unwrap() {
        *counts
            .entry(node.expect("a page that was touched is present"))
            .or_insert(0) += 1;
    }
    counts.into_iter().collect()
}

/// The addresses of the pages of an arena.
pub fn pages_of(arena: &memory::Arena) -> Vec<*const u8> {
    let start = arena.as_ptr();
    (0..arena.len())
        .step_by(PAGE)
        .map(|at| start.wrapping_add(at).cast_const())
        .collect()
}
