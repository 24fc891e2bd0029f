//! Values with a total order, mapped to integers of the same order.

/// A value that kernels compare: by [`Total::key`].
pub(crate) trait Total: Copy {
    /// What compares.
    type Key: Key;
    /// In the same order as the values.
    fn key(self) -> Self::Key;
    /// The value of a key.
    fn of(key: Self::Key) -> Self;
    /// The representative of all values that SQL calls equal to this one, such as `0.0` for `-0.0`.
    #[inline(always)]
    fn one(self) -> Self {
        self
    }
}

/// Integers that stand for values.
pub(crate) trait Key: Copy + Ord + std::ops::Not<Output = Self> {
    /// Above or equal to all.
    const GREATEST: Self;
}

macro_rules! themselves {
    ($($t:ty),*) => {$(
        impl Total for $t {
            type Key = $t;
            #[inline(always)]
            fn key(self) -> $t {
                self
            }
            #[inline(always)]
            fn of(key: $t) -> $t {
                key
            }
        }
        impl Key for $t {
            const GREATEST: $t = <$t>::MAX;
        }
    )*};
}
themselves!(i64, i128, u32);

impl Total for f64 {
    type Key = i64;
    /// As `f64::total_cmp`: -NaN < -inf < -0.0 < +0.0 < inf < NaN.
    #[inline(always)]
    fn key(self) -> i64 {
        let bits = self.to_bits() as i64;
        bits ^ (bits >> 63) & i64::MAX
    }
    /// The sign stays where it is, so the way back is the same.
    #[inline(always)]
    fn of(key: i64) -> f64 {
        f64::from_bits((key ^ (key >> 63) & i64::MAX) as u64)
    }
    /// Zeros of both signs are equal, and so is all that is no number.
    #[inline(always)]
    fn one(self) -> f64 {
        if self.is_nan() { f64::NAN } else { self + 0.0 }
    }
}
