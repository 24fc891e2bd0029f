//! Decoding: stored distances become numbers.

use std::mem::MaybeUninit;

use super::value::{Number, Stored};
#[cfg(target_arch = "x86_64")]
use crate::level::Level;
use crate::level::{dispatched, level};

dispatched! {
    /// Appends `base + value` for each value.
    pub fn widen<S: Stored, N: Number>(values: &[S], base: N, out: &mut Vec<N>) {
        out.reserve(values.len());
        let room = &mut out.spare_capacity_mut()[..values.len()];
        for (slot, value) in room.iter_mut().zip(values) {
            slot.write(base.plus(value.wide()));
        }
        // SAFETY: `room` has one slot for each value, and the loop wrote all of them.
        unsafe { out.set_len(out.len() + values.len()) };
    }
}

/// Appends `base + values[place - first]` for each place: of the rows of a block, those that are
/// wanted of a page whose first row is `first`.
///
/// # Panics
/// When `place - first` is not the position of a value.
pub fn widen_at<S: Stored, N: Number>(
    values: &[S],
    places: &[u32],
    first: u32,
    base: N,
    out: &mut Vec<N>,
) {
    let most = farthest(places, first);
    let inside = places.is_empty() || (most as usize) < values.len();
    assert!(inside, "a row outside its page");
    out.reserve(places.len());
    let room = &mut out.spare_capacity_mut()[..places.len()];
    match level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `level` is at most what was detected. `most` is the greatest distance of a place
        // from `first` and was checked to lie inside the values; `room` is as long as `places`.
        Level::Avx512 => unsafe { avx512::widen_at(values, places, (first, most), base, room) },
        // SAFETY: no place is farther from `first` than `most`, which lies inside the values.
        _ => unsafe { widen_each(values, places, first, base, room) },
    }
    // SAFETY: both wrote a number for each place into `room`, which is as long.
    unsafe { out.set_len(out.len() + places.len()) };
}

dispatched! {
    /// The greatest distance of a place from `first`; 0 of no places.
    fn farthest(places: &[u32], first: u32) -> u32 {
        places.iter().fold(0, |most, place| most.max(place.wrapping_sub(first)))
    }
}

/// Writes `base + values[place - first]` for each place.
///
/// # Safety
/// No place less `first` may lie behind the values.
#[inline(always)]
unsafe fn widen_each<S: Stored, N: Number>(
    values: &[S],
    places: &[u32],
    first: u32,
    base: N,
    room: &mut [MaybeUninit<N>],
) {
    for (slot, place) in room.iter_mut().zip(places) {
        // SAFETY: the caller says that the difference is the position of a value.
        let value = unsafe { *values.get_unchecked(place.wrapping_sub(first) as usize) };
        slot.write(base.plus(value.wide()));
    }
}

dispatched! {
    /// The greatest value; 0 of none.
    pub fn greatest<T: Stored>(values: &[T]) -> T {
        values.iter().fold(T::narrow(0), |most, value| most.max(*value))
    }
}

/// By hand, as the compiler does not gather here, nor see that rows are neighbours.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;
    use std::mem::MaybeUninit;

    use super::{Number, Stored};

    /// Writes `base + values[place - first]` for each place, eight at a time: neighbours are loaded
    /// together, others gathered.
    ///
    /// # Safety
    /// The processor must have [`crate::Level::Avx512`]; no place less `first` may be above `most`,
    /// which must lie inside the values, and there must be as much room as there are places.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
    pub(super) unsafe fn widen_at<S: Stored, N: Number>(
        values: &[S],
        places: &[u32],
        (first, most): (u32, u32),
        base: N,
        room: &mut [MaybeUninit<N>],
    ) {
        // Gathering takes places as signed numbers and reads four bytes at each, also of values of
        // one and two: the last ones of a page may end before that.
        let gathered = most as usize * size_of::<S>() + 4 <= size_of_val(values) && most < 1 << 31;
        let (eights, rest) = places.as_chunks::<8>();
        let (slots, last) = room.as_chunks_mut::<8>();
        let next = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        for (slots, eight) in slots.iter_mut().zip(eights) {
            // SAFETY: `eight` has 32 bytes, as many as the register. Places that are `eight[0]` and
            // the seven numbers after it are eight values in a row, the last at most at `most`, so
            // eight can be read. `gathered` says that four bytes can be read at `most`, and so at
            // every place before it; values of eight bytes are read whole, and `most` is one.
            // Else each place is at most at `most`, as `widen_each` asks.
            unsafe {
                let places = _mm256_loadu_si256(eight.as_ptr().cast());
                let away = _mm256_sub_epi32(places, _mm256_set1_epi32(eight[0] as i32));
                if _mm256_cmpeq_epi32_mask(away, next) == 0xff {
                    let start = eight[0].wrapping_sub(first) as usize;
                    base.put(S::eight(values.as_ptr().add(start)), slots);
                } else if gathered {
                    let places = _mm256_sub_epi32(places, _mm256_set1_epi32(first as i32));
                    base.put(S::gather(values.as_ptr(), places), slots);
                } else {
                    super::widen_each(values, eight, first, base, slots);
                }
            }
        }
        // SAFETY: the rest are places, too, none beyond `most`.
        unsafe { super::widen_each(values, rest, first, base, last) };
    }
}
