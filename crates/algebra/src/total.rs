//! Values with a total order, as integers that compare the same.

/// A value that kernels compare: by [`Total::key`].
pub(crate) trait Total: Copy {
    /// What compares.
    type Key: Copy + Ord;
    /// In the same order as the values.
    fn key(self) -> Self::Key;
}

macro_rules! themselves {
    ($($t:ty),*) => {$(
        impl Total for $t {
            type Key = $t;
            #[inline(always)]
            fn key(self) -> $t {
                self
            }
        }
    )*};
}
themselves!(i64, i128, u32, u64);

impl Total for f64 {
    type Key = i64;
    /// As `f64::total_cmp`: -NaN < -inf < -0.0 < +0.0 < inf < NaN.
    #[inline(always)]
    fn key(self) -> i64 {
        let bits = self.to_bits() as i64;
        bits ^ (bits >> 63) & i64::MAX
    }
}
