//! Grouping by the value of a byte.

use crate::error::Result;
use crate::session::Session;

/// Tables that neighbouring bytes are counted in: a counter is not waited for when the same value
/// comes again at once.
const TABLES: usize = 4;

/// How often each byte value occurs in all pages.
///
/// # Errors
/// [`Error::Store`](crate::Error::Store) if a page cannot be read.
pub fn groupby(session: &Session) -> Result<[u64; 256]> {
    let all = 0..session.pages().len();
    let tables = session.each(all, &[0; 256], |table: &mut [u64; 256], _, bytes| {
        count_values(bytes, table);
    })?;
    let mut merged = [0; 256];
    for table in &tables {
        for (sum, count) in merged.iter_mut().zip(table) {
            *sum += count;
        }
    }
    Ok(merged)
}

/// The kernel of [`groupby`]: adds to `table` how often each value occurs in `bytes`.
///
/// ```
/// let mut table = [0; 256];
/// pages::count_values(&[7, 7, 255], &mut table);
/// assert_eq!((table[7], table[255]), (2, 1));
/// ```
pub fn count_values(bytes: &[u8], table: &mut [u64; 256]) {
    // Counters of 32 bits hold what a block has.
    for block in bytes.chunks(1 << 31) {
        let mut tables = [[0u32; 256]; TABLES];
        let (fours, rest) = block.as_chunks::<TABLES>();
        for four in fours {
            for (table, &byte) in tables.iter_mut().zip(four) {
                table[usize::from(byte)] += 1;
            }
        }
        for &byte in rest {
            tables[0][usize::from(byte)] += 1;
        }
        for (value, sum) in table.iter_mut().enumerate() {
            *sum += tables
                .iter()
                .map(|table| u64::from(table[value]))
                .sum::<u64>();
        }
    }
}
