//! How often each of some keys comes.

/// Keys with their numbers, in a hash table whose slots are tried one after the other.
pub(crate) struct KeyCounts {
    /// Keys and how often they came; a slot of none is empty. At least half of the slots are.
    slots: Vec<(u64, usize)>,
}

impl KeyCounts {
    pub fn of(keys: impl Iterator<Item = u64> + Clone) -> KeyCounts {
        let slots = (2 * keys.clone().count()).next_power_of_two().max(2);
        let mut counts = KeyCounts {
            slots: vec![(0, 0); slots],
        };
        for key in keys {
            let slot = counts.slot(key);
            counts.slots[slot] = (key, counts.slots[slot].1 + 1);
        }
        counts
    }

    /// How often a key came.
    pub fn of_key(&self, key: u64) -> usize {
        self.slots[self.slot(key)].1
    }

    /// The slot of a key, or the empty one that it would get.
    fn slot(&self, key: u64) -> usize {
        let last = self.slots.len() - 1;
        let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut slot = (mixed >> 32) as usize & last;
        while self.slots[slot].1 > 0 && self.slots[slot].0 != key {
            slot = (slot + 1) & last;
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_counted_and_others_are_not_there() {
        let keys = [5, 7, 5, u64::MAX, 0, 5];
        let counts = KeyCounts::of(keys.into_iter());
        for key in [0, 1, 5, 6, 7, 8, u64::MAX] {
            let many = keys.iter().filter(|other| **other == key).count();
            assert_eq!(counts.of_key(key), many, "{key}");
        }
        assert_eq!(KeyCounts::of([].into_iter()).of_key(3), 0);
    }
}
