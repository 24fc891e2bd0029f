//! The allocator of the program: mimalloc, which the library of this crate does not have.

use std::alloc::{GlobalAlloc, Layout};

use cli::Allocator;

/// The allocator, as the commands use it.
pub const HEAP: Allocator = Allocator {
    set_up,
    limit,
    give_back,
};

/// mimalloc keeps memory that queries free for the next ones, by thread. With the C library's allocator, clearing pages
/// that the kernel had just taken back was up to a quarter of a query (Q9, Q12, Q18 of TPC-H). Memory stays with the
/// thread that freed it, so that a worker uses memory on its own node again.
#[global_allocator]
static ALLOCATOR: Patient = Patient(mimalloc::MiMalloc);

/// An allocator that asks again where the system refuses memory: under a limit of the process (`ulimit -d`) what other
/// threads have freed is given back to the system a few milliseconds later.
struct Patient(mimalloc::MiMalloc);

/// How often it asks again, how long it waits in between, and up to how many bytes: who asks for more is told at once.
const TRIES: u32 = 50;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(4);
const SMALL: usize = 64 << 20;

/// What `ask` gives; asked again a while later where it gives nothing.
fn patiently(bytes: usize, ask: impl Fn() -> *mut u8) -> *mut u8 {
    let memory = ask();
    if memory.is_null() && bytes <= SMALL {
        return again(ask);
    }
    memory
}

#[cold]
fn again(ask: impl Fn() -> *mut u8) -> *mut u8 {
    for _ in 0..TRIES {
        give_back();
        std::thread::sleep(PAUSE);
        let memory = ask();
        if !memory.is_null() {
            return memory;
        }
    }
    std::ptr::null_mut()
}

// SAFETY: every call goes to the wrapped allocator with the caller's own arguments, whose promises are its promises; what
// is asked again was refused, so that nothing is allocated twice and nothing was freed.
unsafe impl GlobalAlloc for Patient {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        patiently(layout.size(), || unsafe { self.0.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        patiently(layout.size(), || unsafe { self.0.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.0.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the caller promises; a refusal leaves the memory as it was.
        patiently(bytes, || unsafe { self.0.realloc(memory, layout, bytes) })
    }
}

/// How long freed memory is kept, in milliseconds: about as long as a user takes to type the next query. Four queries
/// of TPC-H became 5 to 30 % faster than with 100 ms, the allocator's own default.
const KEEP_MS: std::ffi::c_long = 10_000;

/// The same if memory is scarce: the allocator's own default.
const KEEP_LITTLE_MS: std::ffi::c_long = 10;

/// `mi_option_purge_delay` of mimalloc.h, which the crate has no name for.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// `mi_option_arena_reserve` of mimalloc.h, in KiB: how much the allocator asks the system for at a time.
const ARENA_RESERVE: libmimalloc_sys::mi_option_t = 23;

/// The same if memory is scarce. A limit of the process (`ulimit -d`) counts what is asked for, not what is used: with steps of
/// 128 MiB, which the allocator takes there by itself, loading `lineitem` failed under 256 MiB with 112 MiB in use.
const STEP_KIB: std::ffi::c_long = 32 << 10;

/// Memory is scarce if the machine or the limit has fewer bytes than this: then little freed memory is kept, and no
/// pages of 2 MiB are used. An answer of one row took 82 MB with both, and 57 without. Under a limit of 64 MiB,
/// grouping by a million strings took 206 MiB with both and 137 without, in the same time; a sort 224 and 119
/// (`/usr/bin/time -f %M atoll sql`).
const BOARD: u64 = 2 << 30;

/// The alignment and unit of size of the area of [`small_pages`].
const AREA: u64 = 1 << 30;

/// Configures the allocator for the machine's memory. The user's own `MIMALLOC_PURGE_DELAY` takes precedence.
fn set_up() {
    let total = memory::total().unwrap_or(BOARD);
    if total < BOARD {
        sparing();
        return;
    }
    keep(KEEP_MS);
    if topology::live_nodes() > 1 {
        small_pages(total);
    }
}

/// Configures the allocator for a memory limit, before memory is allocated under it.
fn limit(bytes: u64) {
    if bytes < BOARD {
        sparing();
        keep(KEEP_LITTLE_MS);
    }
}

/// Takes memory in small pages and small steps.
fn sparing() {
    without_huge_pages();
    if std::env::var_os("MIMALLOC_ARENA_RESERVE").is_none() {
        // SAFETY: the option exists in the version that is linked, and setting it stores a number.
        unsafe { libmimalloc_sys::mi_option_set(ARENA_RESERVE, STEP_KIB) };
    }
}

fn without_huge_pages() {
    // SAFETY: the request sets a flag of this process; it takes no pointers, and its unused arguments are zero.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
}

/// Sets how long freed memory is kept, unless the user's environment does.
fn keep(milliseconds: std::ffi::c_long) {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        // SAFETY: the option exists in the version that is linked, and setting it stores a number.
        unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, milliseconds) };
    }
}

/// Gives freed memory back to the system.
fn give_back() {
    // SAFETY: only memory that holds no allocation is given back; what is in use stays where it is.
    unsafe { libmimalloc_sys::mi_collect(true) };
}

unsafe extern "C" {
    /// Of mimalloc.h: memory that the allocator takes before it asks the system for more.
    fn mi_manage_os_memory(
        start: *mut libc::c_void,
        size: usize,
        is_committed: bool,
        is_pinned: bool,
        is_zero: bool,
        numa_node: libc::c_int,
    ) -> bool;
}

/// Makes the allocator use pages of 4 KiB. A page of 2 MiB holds memory of several threads, but lies on the node of the
/// thread that wrote to it first: on an emulated machine of four nodes this alone made a tenth of Q6's reads remote
/// (`atoll lab plans`). The buffer pool, whose memory is bound to nodes as a whole, keeps large pages.
///
/// The area takes up addresses only; memory is allocated as it is written to. If the system refuses, nothing changes.
fn small_pages(total: u64) {
    if let Some((start, bytes)) = present_area() {
        // SAFETY: the range is a mapping of this process; the advice changes the size of its pages, not what is in them.
        unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
    }
    let bytes = usize::try_from(total / AREA * AREA).unwrap_or(0);
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
    );
    // SAFETY: without MAP_FIXED a new mapping replaces none, so no memory in use is touched.
    let area = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if area == libc::MAP_FAILED {
        return;
    }
    // SAFETY: the area was mapped above with this length, and nobody else knows of it. The allocator keeps it for good,
    // and aligns what it takes of it; where it refuses the area, it has kept no pointer into it.
    unsafe {
        if libc::madvise(area, bytes, libc::MADV_NOHUGEPAGE) != 0
            || !mi_manage_os_memory(area, bytes, true, false, true, -1)
        {
            libc::munmap(area, bytes);
        }
    }
}

/// The address range of the memory that the allocator took before `main`.
fn present_area() -> Option<(*mut libc::c_void, usize)> {
    let probe = Box::new(0u64);
    let address = std::ptr::from_ref(&*probe).addr();
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (start, rest) = line.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(rest.split_once(' ')?.0, 16).ok()?;
        let own = (start..end).contains(&address);
        own.then(|| (std::ptr::without_provenance_mut(start), end - start))
    })
}
