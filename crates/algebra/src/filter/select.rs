//! Selection vectors: the positions of rows that are kept, and applying them.

use crate::fill;
#[cfg(target_arch = "x86_64")]
use crate::level::Level;
use crate::level::{dispatched, level};

/// The ascending positions of the rows that are kept.
pub fn positions(keep: &[bool], out: &mut Vec<u32>) {
    assert!(
        u32::try_from(keep.len()).is_ok(),
        "more rows than positions"
    );
    // 16 more than can be found: whole registers are stored.
    let room = fill::room(out, keep.len() + 16);
    let found = match level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `level` is at most what was detected; `room` is as long as `keep` and 16 more.
        Level::Avx512 => unsafe { avx512::positions(keep, room.as_mut_ptr().cast()) },
        _ => {
            let mut found = 0;
            for (row, keep) in keep.iter().enumerate() {
                // At most one more per row, so `found` stays at or below `row`.
                room[found].write(row as u32);
                found += usize::from(*keep);
            }
            found
        }
    };
    // SAFETY: both ways write the first `found` of `room`, and find at most one for each row.
    unsafe { out.set_len(found) };
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    /// Stores the positions of true flags at `out`; gives their number.
    ///
    /// # Safety
    /// There must be room for `keep.len() + 16` positions at `out`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
    pub(super) unsafe fn positions(keep: &[bool], out: *mut u32) -> usize {
        let mut found = 0;
        let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        for (block, flags) in keep.chunks(64).enumerate() {
            // Lanes behind the last row are not read and give no bit.
            let inside = u64::MAX >> (64 - flags.len());
            // SAFETY: the mask `inside` has a bit for each of `flags`, and bytes without one are not read.
            let bytes = unsafe { _mm512_maskz_loadu_epi8(inside, flags.as_ptr().cast()) };
            let bits = _mm512_test_epi8_mask(bytes, bytes);
            for quarter in 0..4 {
                let mask = (bits >> (16 * quarter)) as u16;
                let rows =
                    _mm512_add_epi32(lanes, _mm512_set1_epi32((block * 64 + 16 * quarter) as i32));
                // SAFETY: at most one position was found for each row before these, and the caller gives
                // room for 16 more than there are rows.
                unsafe {
                    _mm512_storeu_si512(
                        out.add(found).cast(),
                        _mm512_maskz_compress_epi32(mask, rows),
                    )
                };
                found += mask.count_ones() as usize;
            }
        }
        found
    }
}

dispatched! {
    /// Whether every position lies below `rows`.
    fn inside(positions: &[u32], rows: usize) -> bool {
        let greatest = positions.iter().fold(0, |greatest, p| p.max(&greatest).to_owned());
        positions.is_empty() || (greatest as usize) < rows
    }

    fn gather_inside<T: Copy>(values: &[T], positions: &[u32], out: &mut Vec<T>) {
        // SAFETY: `gather`, the only caller, asserts that all positions lie inside the values.
        fill::map(positions, out, |p| unsafe { *values.get_unchecked(p as usize) });
    }
}

/// `out[i] = values[positions[i]]`: also how a matrix is composed with row codes (dot).
///
/// # Panics
/// When a position lies behind the values.
pub fn gather<T: Copy>(values: &[T], positions: &[u32], out: &mut Vec<T>) {
    assert!(
        inside(positions, values.len()),
        "a position lies behind the values"
    );
    gather_inside(values, positions, out);
}

/// Keeps, in place, the values at `positions`, which are ascending.
///
/// # Panics
/// When a position lies behind the values, or there are more positions than values.
pub fn compact<T: Copy>(values: &mut Vec<T>, positions: &[u32]) {
    debug_assert!(
        positions.is_sorted_by(|a, b| a < b),
        "positions must ascend"
    );
    assert!(
        inside(positions, values.len()),
        "a position lies behind the values"
    );
    assert!(
        positions.len() <= values.len(),
        "more positions than values"
    );
    if positions.len() < values.len() {
        for (to, from) in positions.iter().enumerate() {
            // SAFETY: `from` was asserted to lie inside; `to` is the index of a position, of which there
            // are at most as many as values.
            unsafe { *values.get_unchecked_mut(to) = *values.get_unchecked(*from as usize) };
        }
        values.truncate(positions.len());
    }
}
