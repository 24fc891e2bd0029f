//! Division by a number that is the same for many, without the processor's own, which takes tens of cycles.
//!
//! As Granlund and Montgomery have it (Division by invariant integers using multiplication, 1994).

/// A number that others are divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Divisor {
    divisor: i64,
    /// 2^(63 + shift) by the divisor, rounded up.
    factor: u64,
    /// The bits of the divisor less one.
    shift: u32,
}

impl Divisor {
    /// `None` of a number that is not positive.
    pub fn of(divisor: i64) -> Option<Divisor> {
        let positive = u64::try_from(divisor).ok().filter(|own| *own > 0)?;
        let shift = u64::BITS - (positive - 1).leading_zeros();
        let power = 1u128 << (63 + shift);
        // At most 2^64 - 1: the divisor is greater than half of 2^shift.
        let factor = u64::try_from(power.div_ceil(u128::from(positive))).ok()?;
        Some(Divisor {
            divisor,
            factor,
            shift,
        })
    }

    /// The number itself.
    pub fn get(self) -> i64 {
        self.divisor
    }

    /// The quotient of `number`, rounded down, if that is less than 2^63; of others any number.
    #[inline(always)]
    pub fn quotient(self, number: u64) -> i64 {
        let product = u128::from(number) * u128::from(self.factor);
        (product >> (63 + self.shift)) as i64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotients_at_the_ends() {
        let most = i64::MAX as u64;
        for divisor in [
            1,
            2,
            3,
            7,
            10,
            641,
            60_000_000,
            1 << 31,
            1 << 62,
            i64::MAX - 1,
            i64::MAX,
        ] {
            let by = Divisor::of(divisor).unwrap();
            let own = divisor as u64;
            let near = |number: u64| [number.wrapping_sub(1), number, number.wrapping_add(1)];
            let numbers = [0, own, most / own * own, most / 2, most]
                .map(near)
                .concat();
            for number in numbers.into_iter().filter(|number| *number <= most) {
                assert_eq!(by.quotient(number) as u64, number / own, "{number} / {own}");
            }
        }
        assert_eq!(Divisor::of(0), None);
        assert_eq!(Divisor::of(-3), None);
    }

    proptest! {
        #[test]
        fn quotients_are_those_of_the_processor(
            (divisor, number) in (0u32..63, 0u32..63).prop_flat_map(|(a, b)| (1i64..=i64::MAX >> a, 0u64..=i64::MAX as u64 >> b)),
        ) {
            let by = Divisor::of(divisor).unwrap();
            prop_assert_eq!(by.quotient(number) as u64, number / divisor as u64);
        }
    }
}
