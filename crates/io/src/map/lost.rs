//! What becomes of a read from a mapped page that is no longer there.
//!
//! The kernel sends SIGBUS to the thread that reads behind the end of a mapped file, or from a
//! page that the device could not read. The handler here looks whether the address is in one of our
//! maps. If so it puts a page of zeros there and notes the loss, and the thread reads on. If not,
//! the signal goes to whoever handled it before.
//!
//! A handler may interrupt anything, so it takes no lock and no memory: the maps are in a list of
//! fixed size, of atomics.

use std::mem::MaybeUninit;
use std::sync::Once;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many maps can be watched at the same time.
pub(super) const SLOTS: usize = 1024;

/// One watched range of addresses.
struct Slot {
    /// The first address; [`FREE`] of a slot that nobody uses, [`TAKEN`] while it is filled.
    base: AtomicUsize,
    /// How many bytes. Written before `base` is.
    len: AtomicUsize,
    /// Whether a page of it was lost.
    lost: AtomicBool,
}

const FREE: usize = 0;
const TAKEN: usize = 1;

static MAPS: [Slot; SLOTS] = [const {
    Slot {
        base: AtomicUsize::new(FREE),
        len: AtomicUsize::new(0),
        lost: AtomicBool::new(false),
    }
}; SLOTS];

/// The size of a page. Zero until the handler is installed.
static PAGE: AtomicUsize = AtomicUsize::new(0);

/// Who handled the signal before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// An entry in the list of watched ranges.
pub(super) struct Watched(&'static Slot);

impl Watched {
    /// Watches `len` bytes at `base`; `None` if too many are watched already.
    pub(super) fn new(base: usize, len: usize) -> Option<Watched> {
        install();
        let take = |slot: &&Slot| {
            slot.base
                .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        };
        let slot = MAPS.iter().find(take)?;
        slot.len.store(len, Ordering::Relaxed);
        slot.lost.store(false, Ordering::Relaxed);
        slot.base.store(base, Ordering::Release);
        Some(Watched(slot))
    }

    /// Whether a page of it was lost.
    pub(super) fn lost(&self) -> bool {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Stops watching. To be called once, before the range is unmapped.
    pub(super) fn forget(&self) {
        self.0.base.store(FREE, Ordering::Release);
    }
}

/// The size of a page of the operating system, in bytes.
pub(super) fn page() -> usize {
    match PAGE.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: a plain question to the system.
            let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            let size = usize::try_from(size).unwrap_or(4096);
            PAGE.store(size, Ordering::Relaxed);
            size
        }
        size => size,
    }
}

/// Installs the handler, once in the life of the process.
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        page();
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: asks for the present handler and changes nothing; all zeros is a valid `sigaction`,
        // so it is initialised also where the call fails.
        let before = unsafe {
            libc::sigaction(libc::SIGBUS, std::ptr::null(), before.as_mut_ptr());
            before.assume_init()
        };
        // Before the handler can run: it asks for this.
        let _ = BEFORE.set(before);
        // SAFETY: all zeros is a valid `sigaction`: no flags, an empty mask.
        let mut ours = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
        ours.sa_sigaction = handle as *const () as usize;
        // On the stack for signals, where the thread has one: it may be its stack that ran out.
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: `handle` has the type that SA_SIGINFO asks for and does only what a handler may.
        unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, std::ptr::null_mut()) };
    });
}

/// The handler. Only atomics and system calls in here.
extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t` of a fault, which has an address.
    let address = unsafe { (*info).si_addr() } as usize;
    if !replaced(address) {
        pass_on(signal, info, context);
    }
}

/// Puts a page of zeros where the page at `address` was lost, if it is in one of our maps.
fn replaced(address: usize) -> bool {
    let ours = MAPS.iter().find(|slot| {
        let base = slot.base.load(Ordering::Acquire);
        base > TAKEN && address.wrapping_sub(base) < slot.len.load(Ordering::Relaxed)
    });
    let Some(slot) = ours else {
        return false;
    };
    slot.lost.store(true, Ordering::Relaxed);
    let page = PAGE.load(Ordering::Relaxed);
    let start = address & !(page - 1);
    // SAFETY: `errno` belongs to this thread, and what was interrupted may be about to read it.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the page is part of a map of ours, whose owner is alive, as a thread is reading from it;
    // it has no content any more, so nothing is lost by mapping over it.
    let zeros = unsafe {
        libc::mmap(
            start as *mut libc::c_void,
            page,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    zeros != libc::MAP_FAILED
}

/// Gives the signal to whoever handled it before us.
fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE.get();
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    match (handler, before) {
        (libc::SIG_DFL | libc::SIG_IGN, _) | (_, None) => {
            // SAFETY: all zeros is a valid `sigaction` and means the default: the instruction is
            // repeated when we return, and the process ends as it would have without us.
            unsafe {
                let default = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
                libc::sigaction(signal, &raw const default, std::ptr::null_mut());
            }
        }
        (handler, Some(before)) if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: it was installed with SA_SIGINFO, so it is a function of this type.
            let call: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            call(signal, info, context);
        }
        (handler, Some(_)) => {
            // SAFETY: it was installed without SA_SIGINFO, so it is a function of this type.
            let call: extern "C" fn(i32) = unsafe { std::mem::transmute(handler) };
            call(signal);
        }
    }
}
