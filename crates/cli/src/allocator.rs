//! What commands ask of the allocator, which is that of the program that they run in.

use std::sync::OnceLock;

/// What a program's allocator can be asked for.
#[derive(Clone, Copy, Debug)]
pub struct Allocator {
    /// Sets it up for the machine's memory, before anything else is done.
    pub set_up: fn(),
    /// Sets it up for a memory limit in bytes, before memory is allocated under it.
    pub limit: fn(u64),
    /// Gives freed memory back to the system.
    pub give_back: fn(),
}

impl Allocator {
    /// The C library's, as it is.
    pub const SYSTEM: Allocator = Allocator {
        set_up: || {},
        limit: |_| {},
        give_back: trim,
    };
}

static CHOSEN: OnceLock<Allocator> = OnceLock::new();

fn trim() {
    // SAFETY: only memory that holds no allocation is given back; what is in use stays where it is.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Says which allocator this process has, once, and sets it up.
pub fn choose(allocator: Allocator) {
    let allocator = CHOSEN.get_or_init(|| allocator);
    (allocator.set_up)();
}

fn chosen() -> &'static Allocator {
    CHOSEN.get().unwrap_or(&Allocator::SYSTEM)
}

/// Sets the allocator up for a memory limit, before memory is allocated under it.
pub fn limit(bytes: u64) {
    (chosen().limit)(bytes);
}

/// Gives freed memory back to the system.
#[cfg_attr(
    not(feature = "sql"),
    expect(dead_code, reason = "only databases ask for it")
)]
pub fn give_back() {
    (chosen().give_back)();
}
