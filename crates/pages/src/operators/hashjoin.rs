//! The hash join of the first sixteenth of the pages with the rest.

use crate::error::Result;
use crate::session::Session;

/// Pairs whose values are added up before the sums are given to the rest: a sum of 32 bits holds
/// that many of 8 bits.
const PAIRS: usize = 1 << 24;

/// The result of [`hashjoin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Join {
    /// Keys on the build side: at most the 128 even ones.
    pub keys: u64,
    /// Pairs on the probe side whose key is among these.
    pub matches: u64,
    /// The values of the keys on the build side and of these pairs together.
    pub sum: u64,
}

/// What a thread has built: for each key the page that it was last seen in, and the value there.
type Built = [Option<(u32, u8)>; 256];

/// What a thread has probed: for each key how many pairs have it, and the sum of their values.
type Probed = [(u64, u64); 256];

/// Joins the first sixteenth of the pages with the rest.
///
/// Two bytes are a key and a value. On the build side, which is the first sixteenth of the pages
/// rounded down, pairs with an odd key are left out, and of the others with the same key the last
/// counts. On the probe side the values of pairs with a key of the build side are added to that
/// key's.
///
/// # Errors
/// [`Error::Store`](crate::Error::Store) if a page cannot be read.
pub fn hashjoin(session: &Session) -> Result<Join> {
    let pages = session.pages().len();
    let cut = pages / 16;
    let built = session.each(0..cut, &[None; 256], |table: &mut Built, page, bytes| {
        build(bytes, page, table);
    })?;
    let mut table: Built = [None; 256];
    for part in &built {
        // None is less than any, and a later page more than an earlier one.
        for (last, of_part) in table.iter_mut().zip(part) {
            *last = (*last).max(*of_part);
        }
    }
    let probed = session.each(cut..pages, &[(0, 0); 256], |sums: &mut Probed, _, bytes| {
        probe(bytes, sums);
    })?;
    let mut join = Join {
        keys: 0,
        matches: 0,
        sum: 0,
    };
    for (key, entry) in table.iter().enumerate() {
        if let Some((_, value)) = entry {
            join.keys += 1;
            join.sum += u64::from(*value);
            for part in &probed {
                join.matches += part[key].0;
                join.sum += part[key].1;
            }
        }
    }
    Ok(join)
}

fn build(bytes: &[u8], page: u32, table: &mut Built) {
    let (pairs, _) = bytes.as_chunks::<2>();
    for &[key, value] in pairs {
        if key.is_multiple_of(2) {
            table[usize::from(key)] = Some((page, value));
        }
    }
}

/// Adds up the values of all keys: what does not match is left out when the sums are merged, which
/// is cheaper than to ask for each pair.
fn probe(bytes: &[u8], sums: &mut Probed) {
    let (pairs, _) = bytes.as_chunks::<2>();
    for block in pairs.chunks(PAIRS) {
        // The pairs in the upper half, the values in the lower; two tables in turn, as the same
        // key may come again at once.
        let mut tables = [[0u64; 256]; 2];
        let (twos, rest) = block.as_chunks::<2>();
        let add = |table: &mut [u64; 256], [key, value]: [u8; 2]| {
            table[usize::from(key)] += 1 << 32 | u64::from(value);
        };
        for two in twos {
            add(&mut tables[0], two[0]);
            add(&mut tables[1], two[1]);
        }
        for &pair in rest {
            add(&mut tables[0], pair);
        }
        for (key, (matches, sum)) in sums.iter_mut().enumerate() {
            for table in &tables {
                *matches += table[key] >> 32;
                *sum += table[key] & u64::from(u32::MAX);
            }
        }
    }
}
