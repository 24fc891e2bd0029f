//! The rule by which chunks get their shape where the user gives none.

/// Bytes of a chunk's widest attribute that the rule aims at: a fraction of the last-level cache of the machines that we
/// know, and several times the second level.
pub const CHUNK_BYTES: u64 = 4 << 20;

/// Bytes along the last dimension that the rule leaves together as long as another dimension can be cut.
const RUN_BYTES: u64 = 4 << 10;

/// Cells of a growing dimension that is still short, as the rule sees it.
const GROWN: u64 = 64;

/// What [`chunk_lengths`] aims at on a machine with these caches: a quarter of the last level, so that the chunk of an
/// operand and of a result stay there for two workers, but not less than the second level nor more than 64 MiB.
pub fn chunk_bytes(second_level: u64, last_level: u64) -> u64 {
    (last_level / 4)
        .max(second_level)
        .clamp(256 << 10, 64 << 20)
}

/// The cells of a chunk along each dimension, given (length, chunk length or 0, whether it grows), the bytes of a cell's
/// widest attribute and the bytes to aim at.
///
/// Lengths that are given stay. Of the others, which begin as long as the dimension, the longest is halved, the
/// outermost of equals first, until the chunk has no more than `bytes`. The last dimension comes after all others as
/// long as it is no longer than 4 KiB: what lies side by side is read in one go.
pub fn chunk_lengths(shape: &[(u64, u64, bool)], width: usize, bytes: u64) -> Vec<u64> {
    let width = width.max(1) as u64;
    let start = |&(length, chunk, growing): &(u64, u64, bool)| match (chunk, growing) {
        (0, true) => length.max(GROWN),
        (0, false) => length.max(1),
        (chunk, _) => chunk,
    };
    let mut lengths: Vec<u64> = shape.iter().map(start).collect();
    let free: Vec<usize> = (0..shape.len()).filter(|&at| shape[at].1 == 0).collect();
    let last = shape.len().saturating_sub(1);
    loop {
        let cells = lengths
            .iter()
            .try_fold(width, |all, &length| all.checked_mul(length));
        if cells.is_some_and(|cells| cells <= bytes) {
            return lengths;
        }
        let longest = |kept: bool| {
            let able = free.iter().copied().filter(|&at| lengths[at] > 1);
            let able = able.filter(|&at| !kept || at != last || lengths[at] > RUN_BYTES / width);
            able.max_by_key(|&at| (lengths[at], std::cmp::Reverse(at)))
        };
        match longest(true).or_else(|| longest(false)) {
            Some(at) => lengths[at] = lengths[at].div_ceil(2),
            None => return lengths,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_is_halved_and_runs_stay() {
        let free = |length| (length, 0, false);
        assert_eq!(
            chunk_lengths(&[free(100), free(100)], 8, 1 << 20),
            [100, 100]
        );
        assert_eq!(chunk_lengths(&[free(1000); 3], 8, 4 << 20), [32, 32, 500]);
        assert_eq!(
            chunk_lengths(&[free(100_000), free(512)], 8, 4 << 20),
            [782, 512]
        );
        assert_eq!(
            chunk_lengths(&[(1000, 7, false), free(1000)], 8, 64 << 10),
            [7, 1000]
        );
        assert_eq!(
            chunk_lengths(&[(0, 0, true), free(10)], 1, 1 << 20),
            [64, 10]
        );
        assert_eq!(
            chunk_lengths(&[(9, 9, false)], 8, 1),
            [9],
            "what is given stays"
        );
        assert_eq!(chunk_lengths(&[free(0)], 8, 1), [1]);
        let cut = chunk_lengths(&[free(u64::MAX), free(u64::MAX)], 8, 4 << 20);
        assert!(cut[0] * cut[1] * 8 <= 4 << 20, "{cut:?}");
    }

    #[test]
    fn the_aim_follows_the_caches() {
        assert_eq!(chunk_bytes(1 << 20, 32 << 20), 8 << 20);
        assert_eq!(chunk_bytes(2 << 20, 4 << 20), 2 << 20);
        assert_eq!(chunk_bytes(0, 0), 256 << 10);
    }
}
