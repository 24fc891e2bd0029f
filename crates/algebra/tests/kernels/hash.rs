use super::*;
use algebra::hash::*;

/// Of the bits of the hash, how many change on average with one bit of the input.
fn avalanche(hash: impl Fn(u64) -> u64) -> (f64, f64) {
    let (mut least, mut most) = (64.0f64, 0.0f64);
    for bit in 0..64 {
        let changed: u32 = (0..512u64)
            .map(|n| {
                let value = n.wrapping_mul(0x1234_5678_9abc_def1);
                (hash(value) ^ hash(value ^ 1 << bit)).count_ones()
            })
            .sum();
        let mean = f64::from(changed) / 512.0;
        (least, most) = (least.min(mean), most.max(mean));
    }
    (least, most)
}

#[test]
fn one_bit_changes_half_of_the_hash() {
    let words = |value: u64| {
        let mut out = vec![];
        hash_u64(&[value], 1, &mut out);
        out[0]
    };
    let second = |value: u64| {
        let mut out = vec![words(7)];
        combine_u64(&[value], &mut out);
        out[0]
    };
    let first = |value: u64| {
        let mut out = vec![words(value)];
        combine_u64(&[7], &mut out);
        out[0]
    };
    let bytes = |value: u64| hash_bytes(&value.to_le_bytes(), 1);
    let long = |value: u64| hash_bytes(&[value.to_le_bytes(), [3; 8], [5; 8]].concat(), 1);
    let seed = |value: u64| hash_bytes(b"text", value);
    // 32 bits, with a deviation of 0.18 for 512 values.
    for (least, most) in [
        avalanche(words),
        avalanche(second),
        avalanche(first),
        avalanche(bytes),
        avalanche(long),
        avalanche(seed),
    ] {
        assert!(least > 31.0 && most < 33.0, "{least} .. {most}");
    }
}

#[test]
fn small_integers_spread_over_few_slots() {
    let values: Vec<u64> = (0..1 << 16).collect();
    let mut hashes = vec![];
    hash_u64(&values, 0, &mut hashes);
    for shift in [0, 20, 54] {
        let mut slots = vec![0u32; 1024];
        hashes
            .iter()
            .for_each(|h| slots[(h >> shift) as usize & 1023] += 1);
        // 64 each, with a deviation of 8.
        assert!(
            slots.iter().all(|n| (16..=112).contains(n)),
            "bits from {shift} on"
        );
    }
}

properties! {
    #[test]
    fn levels_agree((a, b) in pair(any::<u64>()), seed in any::<u64>()) {
        let naive = |seed| {
            let mut out = vec![];
            with_level(algebra::Level::Baseline, || {
                hash_u64(&a, seed, &mut out);
                combine_u64(&b, &mut out);
            });
            out
        };
        at_each_level(|| {
            let mut out = vec![1];
            hash_u64(&a, seed, &mut out);
            combine_u64(&b, &mut out);
            prop_assert_eq!(&out, &naive(seed));
            Ok(())
        })?;
        prop_assert!(a.is_empty() || naive(seed)[0] != naive(seed ^ 1)[0]);
    }

    #[test]
    fn texts_differ(a in vec(0u8..3, 0..40), b in vec(0u8..3, 0..40), seed in any::<u64>()) {
        prop_assert_eq!(hash_bytes(&a, seed) == hash_bytes(&b, seed), a == b);
    }
}

#[test]
fn zeros_of_different_lengths_differ() {
    let zeros = [0u8; 100];
    let mut hashes: Vec<u64> = (0..100).map(|n| hash_bytes(&zeros[..n], 0)).collect();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 100);
}
