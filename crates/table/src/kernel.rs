//! Kernels over encoded values: comparing into bit masks, gathering, widening.
//!
//! Each loop is plain and without branches per value; it is compiled once for the baseline
//! processor and once for AVX2 and AVX-512, and the widest the processor has is chosen at run
//! time. Those in `avx512` are written by hand, as the compiler does not find them.

#[cfg(target_arch = "x86_64")]
mod avx512;

use std::mem::MaybeUninit;

/// What wide registers must be able to do with stored values; elsewhere, nothing.
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Lanes;
#[cfg(not(target_arch = "x86_64"))]
pub(crate) trait Lanes {}
#[cfg(not(target_arch = "x86_64"))]
impl<T> Lanes for T {}

/// Whether the processor has the registers that [`avx512`] is written for.
#[inline]
fn wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    return avx512::detected();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Unsigned storage of distances and codes.
pub(crate) trait Stored: Lanes + Copy + Ord + 'static {
    /// To 64 bits.
    fn wide(self) -> u64;
    /// Truncated.
    fn narrow(value: u64) -> Self;
    /// Wrapping difference.
    fn minus(self, other: Self) -> Self;
}

macro_rules! stored {
    ($($t:ty),*) => {$(
        impl Stored for $t {
            #[inline(always)]
            fn wide(self) -> u64 { self as u64 }
            #[inline(always)]
            fn narrow(value: u64) -> Self { value as $t }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
        }
    )*};
}
stored!(u8, u16, u32, u64);

/// A number that distances are added to.
pub(crate) trait Number: Copy + 'static {
    /// Truncated.
    fn of(value: i128) -> Self;
    /// Wrapping sum.
    fn plus(self, distance: u64) -> Self;
    /// The sums of eight distances.
    ///
    /// # Safety
    /// The processor must have `avx512::detected`.
    #[cfg(target_arch = "x86_64")]
    unsafe fn put(self, distances: std::arch::x86_64::__m512i, to: &mut [MaybeUninit<Self>; 8]);
}

macro_rules! number {
    ($($t:ty),*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn of(value: i128) -> Self { value as $t }
            #[inline(always)]
            fn plus(self, distance: u64) -> Self { self.wrapping_add(distance as $t) }
            #[cfg(target_arch = "x86_64")]
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
            unsafe fn put(self, distances: std::arch::x86_64::__m512i, to: &mut [MaybeUninit<$t>; 8]) {
                // SAFETY: eight lanes of 64 bits are as many integers.
                let distances: [u64; 8] = unsafe { std::mem::transmute(distances) };
                for (slot, distance) in to.iter_mut().zip(distances) {
                    slot.write(self.plus(distance));
                }
            }
        }
    )*};
}
number!(i8, i16, i32, i64, i128, u8, u16, u32, u64);

/// Defines a function in a version per instruction set and dispatches at run time.
macro_rules! dispatched {
    ($(#[$doc:meta])* $vis:vis fn $name:ident<$($T:ident: $bound:path),+>($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[$doc])*
        $vis fn $name<$($T: $bound),+>($($arg: $ty),*) {
            #[inline(always)]
            fn plain<$($T: $bound),+>($($arg: $ty),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
                fn avx2<$($T: $bound),+>($($arg: $ty),*) { plain($($arg),*) }
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
                fn avx512<$($T: $bound),+>($($arg: $ty),*) { plain($($arg),*) }
                if is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("bmi2")
                {
                    // SAFETY: the features were just detected (AVX-512 implies the older ones).
                    return unsafe { avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
                    // SAFETY: the features were just detected; BMI1 and POPCNT precede BMI2.
                    return unsafe { avx2($($arg),*) };
                }
            }
            plain($($arg),*)
        }
    };
}

dispatched! {
    /// Appends `base + value` of each value.
    pub(crate) fn widen<S: Stored, N: Number>(values: &[S], base: N, out: &mut Vec<N>) {
        out.reserve(values.len());
        let room = &mut out.spare_capacity_mut()[..values.len()];
        for (slot, value) in room.iter_mut().zip(values) {
            slot.write(base.plus(value.wide()));
        }
        // SAFETY: the loop wrote as many values as there are.
        unsafe { out.set_len(out.len() + values.len()) };
    }
}

/// Appends `base + values[place - first]` of each place.
///
/// # Panics
/// When a place lies outside.
pub(crate) fn widen_some<S: Stored, N: Number>(
    values: &[S],
    places: &[u32],
    first: u32,
    base: N,
    out: &mut Vec<N>,
) {
    let mut most = 0;
    farthest(places, first, &mut most);
    let inside = places.is_empty() || (most as usize) < values.len();
    assert!(inside, "a row outside its page");
    out.reserve(places.len());
    let room = &mut out.spare_capacity_mut()[..places.len()];
    // SAFETY: no place lies outside, and there is room for each.
    unsafe {
        match wide() {
            #[cfg(target_arch = "x86_64")]
            true => avx512::widen_some(values, places, (first, most), base, room),
            _ => widen_each(values, places, first, base, room),
        }
        out.set_len(out.len() + places.len());
    }
}

dispatched! {
    /// Makes `most` the greatest distance from `first`, or leaves it.
    fn farthest<T: Stored>(places: &[T], first: T, most: &mut T) {
        *most = places.iter().fold(*most, |most, place| most.max(place.minus(first)));
    }
}

/// Writes `base + values[place - first]` of each place.
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
        // SAFETY: the caller's.
        let value = unsafe { *values.get_unchecked(place.wrapping_sub(first) as usize) };
        slot.write(base.plus(value.wide()));
    }
}

dispatched! {
    /// Makes `most` the greatest of these, or leaves it.
    pub(crate) fn greatest<T: Stored>(values: &[T], most: &mut T) {
        *most = values.iter().fold(*most, |most, value| most.max(*value));
    }
}

/// Sets bit `i` of `into` where `low <= values[i] <= low + span`; leaves the others.
pub(crate) fn in_range<T: Stored>(values: &[T], low: T, span: T, into: &mut [u64]) {
    match wide() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: it was just asked for.
        true => unsafe { avx512::in_range(values, low, span, into) },
        _ => in_range_narrow(values, low, span, into),
    }
}

dispatched! {
    fn in_range_narrow<T: Stored>(values: &[T], low: T, span: T, into: &mut [u64]) {
        let (whole, rest) = values.as_chunks::<64>();
        for (word, values) in into.iter_mut().zip(whole) {
            let mut inside = [0u8; 64];
            for (flag, value) in inside.iter_mut().zip(values) {
                *flag = u8::from(value.minus(low) <= span);
            }
            *word |= pack(&inside);
        }
        in_range_rest(rest, low, span, into.get_mut(whole.len()));
    }
}

/// The same of fewer than 64 values, whose word is `word`.
#[inline(always)]
fn in_range_rest<T: Stored>(values: &[T], low: T, span: T, word: Option<&mut u64>) {
    if let Some(word) = word {
        for (bit, value) in values.iter().enumerate() {
            *word |= u64::from(value.minus(low) <= span) << bit;
        }
    }
}

/// Bits of a word from which on all of it is best looked at together; of fewer, one after the other.
const MANY: usize = 7;

/// Appends the positions of the bits that are set, bit 0 of the first word being position 0.
pub(crate) fn positions(words: &[u64], out: &mut Vec<u32>) {
    let bits: usize = words.iter().map(|word| word.count_ones() as usize).sum();
    match wide() && bits >= MANY * words.len() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: it was just asked for.
        true => unsafe { avx512::positions(words, bits, out) },
        _ => {
            out.reserve(bits);
            positions_narrow(words, out);
        }
    }
}

fn positions_narrow(words: &[u64], out: &mut Vec<u32>) {
    for (index, word) in words.iter().enumerate() {
        let (mut word, first) = (*word, (index * 64) as u32);
        while word != 0 {
            out.push(first + word.trailing_zeros());
            word &= word - 1;
        }
    }
}

/// 64 flags of 0 or 1 into a word, the first in bit 0.
#[inline(always)]
fn pack(flags: &[u8; 64]) -> u64 {
    let mut word = 0;
    for (byte, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        // The multiplication moves flag i from bit 8 * i to bit 56 + i.
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word |= bits << (8 * byte);
    }
    word
}

dispatched! {
    /// Sets bit `i` of `into` where `table[codes[i]]`; codes outside the table are not in it.
    pub(crate) fn in_table<T: Stored>(codes: &[T], table: &[bool], into: &mut [u64]) {
        for (word, codes) in into.iter_mut().zip(codes.chunks(64)) {
            for (bit, code) in codes.iter().enumerate() {
                let hit = table.get(code.wide() as usize).copied().unwrap_or(false);
                *word |= u64::from(hit) << bit;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    #[should_panic(expected = "outside its page")]
    fn a_place_outside_is_refused() {
        widen_some::<u8, i64>(&[1, 2], &[3, 5], 3, 0, &mut vec![]);
    }

    fn bits(mask: &[u64], rows: usize) -> Vec<bool> {
        (0..rows)
            .map(|r| mask[r / 64] >> (r % 64) & 1 == 1)
            .collect()
    }

    proptest! {
        #[test]
        fn widening_as_the_naive_loop(
            before in prop::collection::vec(any::<i64>(), 0..3),
            values in prop::collection::vec(any::<u16>(), 1..300),
            places in prop::collection::vec(any::<prop::sample::Index>(), 0..300),
            base: i64,
            first in 0u32..9,
        ) {
            let naive = |picks: &mut dyn Iterator<Item = u16>| -> Vec<i64> {
                let own = picks.map(|v| base.wrapping_add(i64::from(v)));
                before.iter().copied().chain(own).collect()
            };
            let mut out = before.clone();
            widen(&values, base, &mut out);
            prop_assert_eq!(&out, &naive(&mut values.iter().copied()));
            let some: Vec<u32> = places.iter().map(|p| p.index(values.len()) as u32 + first).collect();
            // Neighbours, for the most part.
            let most: Vec<u32> = (0..values.len()).filter(|at| values[*at] % 16 > 0).map(|at| at as u32 + first).collect();
            for places in [some, most] {
                let mut out = before.clone();
                widen_some(&values, &places, first, base, &mut out);
                prop_assert_eq!(&out, &naive(&mut places.iter().map(|p| values[(p - first) as usize])));
            }
        }

        #[test]
        fn ranges_as_the_naive_loop(values in prop::collection::vec(any::<u16>(), 0..300), low: u16, span: u16) {
            let mut mask = vec![0; values.len().div_ceil(64)];
            in_range(&values, low, span, &mut mask);
            let naive: Vec<bool> = values.iter().map(|v| v.wrapping_sub(low) <= span).collect();
            prop_assert_eq!(bits(&mask, values.len()), naive);
        }

        #[test]
        fn ranges_of_bytes_and_words(values in prop::collection::vec(any::<u8>(), 0..300), low: u8, span: u8) {
            let mut mask = vec![0; values.len().div_ceil(64)];
            in_range(&values, low, span, &mut mask);
            let wide: Vec<u64> = values.iter().map(|v| u64::from(*v) << 33).collect();
            let mut wide_mask = vec![0; values.len().div_ceil(64)];
            if u16::from(low) + u16::from(span) < 256 {
                in_range(&wide, u64::from(low) << 33, u64::from(span) << 33, &mut wide_mask);
                prop_assert_eq!(&mask, &wide_mask);
            }
            let naive: Vec<bool> = values.iter().map(|v| v.wrapping_sub(low) <= span).collect();
            prop_assert_eq!(bits(&mask, values.len()), naive);
        }

        #[test]
        fn tables_as_the_naive_loop(codes in prop::collection::vec(0u32..90, 0..300), table in prop::collection::vec(any::<bool>(), 80)) {
            let mut mask = vec![0; codes.len().div_ceil(64)];
            in_table(&codes, &table, &mut mask);
            let naive: Vec<bool> = codes.iter().map(|c| table.get(*c as usize).copied().unwrap_or(false)).collect();
            prop_assert_eq!(bits(&mask, codes.len()), naive);
        }
    }
}
