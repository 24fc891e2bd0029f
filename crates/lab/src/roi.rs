//! Marks that tell the access counter what part of a program is of interest.
//!
//! A mark is one NOP with a number in it: harmless on a real processor, and on an emulated machine
//! without the counter. Marks act on the whole machine, not on the calling thread. In C the same
//! is in `guest/atoll_roi.h`; from a shell inside the emulated machine it is `atoll-roi start`,
//! `stop` and `flush`.
//!
//! ```
//! lab::roi::flush();
//! lab::roi::start();
//! // ... what is to be counted ...
//! lab::roi::stop();
//! ```

/// Counts from here on: a new region begins; one that has not ended ends here.
#[inline(always)]
pub fn start() {
    mark::<1>();
}

/// The region ends here.
#[inline(always)]
pub fn stop() {
    mark::<2>();
}

/// Empties the modelled caches; dirty lines are written back, and counted as such.
#[inline(always)]
pub fn flush() {
    mark::<3>();
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn mark<const NUMBER: u8>() {
    // SAFETY: `nopl NUMBER(%rax)` neither reads nor writes anything. The compiler takes it to
    // access all memory, which keeps it between what is before and after it.
    unsafe {
        std::arch::asm!(
            ".byte 0x0f, 0x1f, 0x80, {number}, 'A', 'T', 'L'",
            number = const NUMBER,
            options(nostack, preserves_flags)
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn mark<const NUMBER: u8>() {
    // Only x86-64 machines are emulated.
}
