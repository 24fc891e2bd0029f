//! Pseudo-random numbers that stay the same from version to version: a seed names a placement.

/// A generator of 64-bit numbers (SplitMix64, Steele, Lea, Flood 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in `0..bound`; `bound` must not be 0.
    pub fn below(&mut self, bound: u128) -> u128 {
        assert!(bound > 0, "there is no number below 0");
        // Values past the last whole multiple of `bound` would favour small remainders.
        let excess = (u128::MAX % bound + 1) % bound;
        loop {
            let value = u128::from(self.bits()) << 64 | u128::from(self.bits());
            if value <= u128::MAX - excess {
                return value % bound;
            }
        }
    }

    /// Uniform in `0..bound`; `bound` must not be 0.
    pub fn index(&mut self, bound: usize) -> usize {
        self.below(bound as u128) as usize
    }

    /// Uniform in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}
