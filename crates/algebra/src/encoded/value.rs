//! The types that pages store and that decoding gives.

use super::lanes::{Lanes, Sums};

/// What a page stores: `u8`, `u16`, `u32` or `u64`. Any bits are a value of such a type.
pub trait Stored: Lanes + Copy + Ord + 'static {
    /// The same number in 64 bits.
    fn wide(self) -> u64;
    /// The lowest bits of a number.
    fn narrow(value: u64) -> Self;
    /// The difference, modulo two to the power of the width.
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

/// What decoding gives: an integer of 8 to 128 bits.
pub trait Number: Sums + Copy + 'static {
    /// The lowest bits of a number.
    fn of(value: i128) -> Self;
    /// The sum, modulo two to the power of the width.
    fn plus(self, distance: u64) -> Self;
}

macro_rules! number {
    ($($t:ty),*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn of(value: i128) -> Self { value as $t }
            #[inline(always)]
            fn plus(self, distance: u64) -> Self { self.wrapping_add(distance as $t) }
        }
    )*};
}
number!(i8, i16, i32, i64, i128, u8, u16, u32, u64);
