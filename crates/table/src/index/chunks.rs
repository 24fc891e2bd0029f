//! The hashes of a chunk of the tail: first all hashes, ascending, then the row of each, little-endian.

use store::Transaction;

use crate::format::key;
use crate::format::keys::hash;
use crate::index::keys::Keys;

/// Bytes of an entry.
const ENTRY: usize = 10;

/// Records the keys of the rows of chunk `chunk`.
pub(crate) fn put(tx: &mut Transaction, space: u32, number: u32, chunk: u32, keys: &Keys) {
    let mut entries: Vec<(u64, u16)> = keys
        .iter()
        .map(|(row, key)| (hash(key), row as u16))
        .collect();
    entries.sort_unstable();
    let mut bytes = Vec::with_capacity(entries.len() * ENTRY);
    bytes.extend(entries.iter().flat_map(|(hash, _)| hash.to_le_bytes()));
    bytes.extend(entries.iter().flat_map(|(_, row)| row.to_le_bytes()));
    tx.put(space, &entry(number, chunk), &bytes);
}

/// Removes the record of a chunk.
pub(crate) fn remove(tx: &mut Transaction, space: u32, number: u32, chunk: u32) {
    tx.delete(space, &entry(number, chunk));
}

fn entry(number: u32, chunk: u32) -> Vec<u8> {
    [
        &key::index(number, key::KEY_CHUNK)[..],
        &chunk.to_be_bytes(),
    ]
    .concat()
}

/// The rows of a record that have this hash; rows of a damaged record are those that it still has.
pub(crate) fn rows(bytes: &[u8], hash: u64) -> impl Iterator<Item = u16> {
    let count = bytes.len() / ENTRY;
    let at = |row: usize| hash_at(bytes, row);
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if at(middle) < hash {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let found = (low..count).take_while(move |row| hash_at(bytes, *row) == hash);
    found.map(move |row| row_at(bytes, count, row))
}

/// All entries of a record.
pub(crate) fn entries(bytes: &[u8]) -> impl Iterator<Item = (u64, u16)> {
    let count = bytes.len() / ENTRY;
    (0..count).map(move |at| (hash_at(bytes, at), row_at(bytes, count, at)))
}

fn hash_at(bytes: &[u8], at: usize) -> u64 {
    let hash = bytes.get(8 * at..).and_then(|rest| rest.first_chunk());
    hash.map_or(0, |hash| u64::from_le_bytes(*hash))
}

fn row_at(bytes: &[u8], count: usize, at: usize) -> u16 {
    let row = bytes.get(8 * count + 2 * at..);
    let row = row.and_then(|rest| rest.first_chunk());
    row.map_or(0, |row| u16::from_le_bytes(*row))
}
