//! Asking for memory before it is looked at.

/// Asks the processor to load the cache line of `value`, which is read soon. A hint: nothing else
/// happens.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `value` is a reference, so its address is mapped, and a prefetch of any address reads
    // nothing into the program. SSE is part of every x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
