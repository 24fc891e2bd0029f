//! The keys of a join table, to test the values of a scan with before they are decoded.

use std::sync::Arc;

use super::direct::Direct;
use super::ranked::Ranked;
use crate::encoded::Stored;

/// The keys of a join table that is shared with those who probe it.
#[derive(Clone, Debug)]
pub enum Keys {
    /// Those of a table that is addressed by the key.
    Direct(Arc<Direct>),
    /// Those of a table that has a bit for each key.
    Ranked(Arc<Ranked>),
}

impl Keys {
    /// Whether a key may be among `low..=high`: false only where there is none.
    pub fn any_within(&self, low: i64, high: i64) -> bool {
        match self {
            Keys::Direct(direct) => direct.any_within(low, high),
            Keys::Ranked(ranked) => ranked.any_within(low, high),
        }
    }

    /// Sets bit `i` of `into` where `base + values[i]` is a key; leaves the others. Rows that `into` has no word for are
    /// not looked at.
    pub fn test<T: Stored>(&self, values: &[T], base: i64, into: &mut [u64]) {
        match self {
            Keys::Direct(direct) => direct.test(values, base, into),
            Keys::Ranked(ranked) => ranked.test(values, base, into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::{Level, with_level};
    use proptest::prelude::*;

    /// The tables of `keys`, each once, ascending.
    fn both(keys: &[i64]) -> [Keys; 2] {
        let (min, max) = (keys[0], keys[keys.len() - 1]);
        let mut direct = Direct::new(min, max);
        let rows: Vec<u32> = (0..keys.len() as u32).collect();
        direct.set(keys, &rows);
        let ranked = Ranked::build(keys, None, min, max);
        [Keys::Direct(direct.into()), Keys::Ranked(ranked.into())]
    }

    fn tested<T: Stored>(keys: &Keys, values: &[T], base: i64) -> Vec<bool> {
        let mut bits = vec![0; values.len().div_ceil(64)];
        keys.test(values, base, &mut bits);
        (0..values.len())
            .map(|row| bits[row / 64] >> (row % 64) & 1 == 1)
            .collect()
    }

    proptest! {
        #[test]
        fn values_are_tested_as_they_are_stored(
            keys in prop::collection::btree_set(-300i64..300, 1..40),
            base in -400i64..400,
            stored in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let sorted: Vec<i64> = keys.iter().copied().collect();
            let expected: Vec<bool> = stored.iter().map(|v| keys.contains(&(base + i64::from(*v)))).collect();
            for keys in both(&sorted) {
                for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
                    with_level(level, || {
                        let wide: Vec<u32> = stored.iter().map(|v| u32::from(*v)).collect();
                        let whole: Vec<u64> = stored.iter().map(|v| (base + i64::from(*v)) as u64).collect();
                        assert_eq!(tested(&keys, &stored, base), expected);
                        assert_eq!(tested(&keys, &wide, base), expected);
                        assert_eq!(tested(&keys, &whole, 0), expected);
                    });
                }
            }
        }

        #[test]
        fn where_there_is_a_key_one_may_be(
            keys in prop::collection::btree_set(-500i64..500, 1..20),
            low in -600i64..600,
            width in 0i64..300,
        ) {
            let sorted: Vec<i64> = keys.iter().copied().collect();
            let any = keys.range(low..=low + width).next().is_some();
            for keys in both(&sorted) {
                prop_assert_eq!(keys.any_within(low, low + width), any);
            }
        }
    }

    #[test]
    fn ends_of_the_integers_are_no_trouble() {
        for keys in both(&[i64::MAX - 70, i64::MAX]) {
            assert!(keys.any_within(i64::MIN, i64::MAX));
            assert!(!keys.any_within(i64::MIN, i64::MAX - 71));
            assert!(!keys.any_within(i64::MAX - 69, i64::MAX - 1));
            let whole = [i64::MIN as u64, i64::MAX as u64, 0, (i64::MAX - 70) as u64];
            assert_eq!(tested(&keys, &whole, 0), [false, true, false, true]);
        }
        for keys in both(&[i64::MIN, i64::MIN + 3]) {
            assert!(keys.any_within(i64::MIN, i64::MAX));
            assert!(!keys.any_within(i64::MIN + 1, i64::MIN + 2));
            assert!(!keys.any_within(0, i64::MAX));
        }
    }
}
