//! A bit for each vertex, set by many tasks at once.

use std::sync::atomic::{AtomicU64, Ordering};

/// A set of vertices. All orders are relaxed: who reads a set that another task has made does so after
/// that task was joined.
#[derive(Debug)]
pub(crate) struct Bits(Box<[AtomicU64]>);

impl Bits {
    pub fn new(vertices: u32) -> Bits {
        let words = (vertices as usize).div_ceil(64);
        Bits((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    /// Bytes of a set.
    pub fn bytes(vertices: u32) -> u64 {
        u64::from(vertices).div_ceil(64) * 8
    }

    #[inline]
    pub fn has(&self, vertex: u32) -> bool {
        let word = self.0[vertex as usize / 64].load(Ordering::Relaxed);
        word >> (vertex % 64) & 1 != 0
    }

    #[inline]
    pub fn set(&self, vertex: u32) {
        self.0[vertex as usize / 64].fetch_or(1 << (vertex % 64), Ordering::Relaxed);
    }

    /// As [`set`](Bits::set), where no other task sets a vertex of the same 64.
    #[inline]
    pub fn set_alone(&self, vertex: u32) {
        let word = &self.0[vertex as usize / 64];
        let bits = word.load(Ordering::Relaxed) | 1 << (vertex % 64);
        word.store(bits, Ordering::Relaxed);
    }

    /// Removes the vertices of a range that begins at a multiple of 64, and those up to the next multiple of its end.
    pub fn clear_within(&self, range: std::ops::Range<u32>) {
        let words = range.start as usize / 64..(range.end as usize).div_ceil(64);
        self.0[words]
            .iter()
            .for_each(|word| word.store(0, Ordering::Relaxed));
    }

    pub fn clear(&self) {
        self.0
            .iter()
            .for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// The vertices of a range that begins at a multiple of 64, in order.
    pub fn within(&self, range: std::ops::Range<u32>) -> impl Iterator<Item = u32> {
        let words = range.start as usize / 64..(range.end as usize).div_ceil(64);
        words.flat_map(|at| {
            let mut word = self.0[at].load(Ordering::Relaxed);
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros();
                word &= word.wrapping_sub(1);
                (bit < 64).then(|| at as u32 * 64 + bit)
            })
        })
    }
}
