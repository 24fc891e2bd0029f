//! Marks that tell the access counter what part of a program is of interest.
//!
//! A mark is one NOP with a number in it: harmless on a real processor, and on an emulated machine
//! without the counter. Marks act on the whole machine, not on the calling thread. In C the same
//! is in `guest/atoll_roi.h`; from a shell inside the emulated machine it is `atoll-roi start`,
//! `stop` and `flush`.
//!
//! ```
//! emulator::roi::flush();
//! emulator::roi::start();
//! // ... what is to be counted ...
//! emulator::roi::stop();
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

/// Names a window of this program's addresses: lines from memory that are asked for by an address in one are counted
/// once more, apart ([`Region::windows`](crate::count::Region::windows)). Windows belong to the region that ends next;
/// there may be 64 of them, and other programs should rest meanwhile.
///
/// # Safety
///
/// The first and the last of the `bytes` (at least 1) must be mapped and readable: the counter learns addresses by seeing
/// them read. What is there does not matter, nor who writes to it.
pub unsafe fn window(start: *const u8, bytes: usize) {
    let last = start.wrapping_add(bytes - 1);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the marks are NOPs, see `mark`. Two bytes are read that the caller has made sure of, and forgotten; once
    // before the marks, as a page that is not there would be brought in between mark and read, where others might run.
    unsafe {
        std::arch::asm!(
            "mov {byte}, byte ptr [{first}]",
            "mov {byte}, byte ptr [{last}]",
            ".byte 0x0f, 0x1f, 0x80, 7, 'A', 'T', 'L'",
            "mov {byte}, byte ptr [{first}]",
            ".byte 0x0f, 0x1f, 0x80, 8, 'A', 'T', 'L'",
            "mov {byte}, byte ptr [{last}]",
            byte = out(reg_byte) _,
            first = in(reg) start,
            last = in(reg) last,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = last;
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
