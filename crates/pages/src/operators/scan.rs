//! The sequential scan.

use crate::error::Result;
use crate::session::Session;

/// Lanes of the kernel: one counter of 8 bits each.
const LANES: usize = 64;

/// Counts the bytes of all pages that are above `threshold`.
///
/// The text compares the integers at every fourth byte, and its tables speak of bytes; here every
/// byte is a value.
///
/// # Errors
/// [`Error::Store`](crate::Error::Store) if a page cannot be read.
pub fn scan(session: &Session, threshold: u8) -> Result<u64> {
    let all = 0..session.pages().len();
    let counts = session.each(all, &0, move |count: &mut u64, _, bytes| {
        *count += count_above(bytes, threshold);
    })?;
    Ok(counts.iter().sum())
}

/// The kernel of [`scan`]: how many of `bytes` are above `threshold`.
///
/// ```
/// assert_eq!(pages::count_above(&[0, 7, 8, 255], 7), 2);
/// ```
pub fn count_above(bytes: &[u8], threshold: u8) -> u64 {
    let mut count = 0;
    // A lane of 8 bits counts to 255 before it is added to the rest.
    for block in bytes.chunks(LANES * 255) {
        let mut lanes = [0u8; LANES];
        let (lines, rest) = block.as_chunks::<LANES>();
        for line in lines {
            for (lane, &byte) in lanes.iter_mut().zip(line) {
                *lane += u8::from(byte > threshold);
            }
        }
        count += lanes.iter().map(|&lane| u64::from(lane)).sum::<u64>();
        count += rest.iter().filter(|&&byte| byte > threshold).count() as u64;
    }
    count
}
