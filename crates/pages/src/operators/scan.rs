//! The sequential scan (the text's algorithm 2).

use crate::error::Result;
use crate::session::Session;

/// Counts the integers of all pages that are above `threshold`: signed ones of 4 bytes, little-endian.
///
/// # Errors
/// [`Error::Store`](crate::Error::Store) if a page cannot be read.
pub fn scan(session: &Session, threshold: i32) -> Result<u64> {
    let all = 0..session.pages().len();
    let counts = session.each(all, &0, move |count: &mut u64, _, bytes| {
        *count += count_above(bytes, threshold);
    })?;
    Ok(counts.iter().sum())
}

/// Bytes whose integers a counter of 32 bits can count.
const BLOCK: usize = 1 << 20;

/// The kernel of [`scan`]: how many of the integers in `bytes` are above `threshold`. Bytes at the end that are no whole
/// integer are passed over.
///
/// ```
/// let bytes = [7i32, 8, -1, i32::MAX].map(i32::to_le_bytes).concat();
/// assert_eq!(pages::count_above(&bytes, 7), 2);
/// ```
pub fn count_above(bytes: &[u8], threshold: i32) -> u64 {
    let above = |block: &[u8]| -> u32 {
        let (integers, _) = block.as_chunks::<4>();
        let above = integers
            .iter()
            .map(|integer| u32::from(i32::from_le_bytes(*integer) > threshold));
        above.sum()
    };
    bytes
        .chunks(BLOCK)
        .map(|block| u64::from(above(block)))
        .sum()
}
