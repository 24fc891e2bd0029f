//! The entries of the catalog: a directory of the arrays, and a space for the chunks of each.

use serde::{Deserialize, Serialize};
use store::{Snapshot, Transaction};

use crate::error::{Error, Result};
use crate::model::schema::Schema;

/// The space of the catalog's directory, which arrays share with tables and graphs.
const DIRECTORY: u32 = 0;
/// Prefix of the directory entries of arrays: `a` and the name.
const ARRAY: &[u8] = b"a";
/// The first byte of an entry: the version of its format.
const VERSION: u8 = 1;
/// The number that stands for the positions of a sparse chunk among its attributes.
pub(crate) const POSITIONS: u16 = u16::MAX;

/// What the directory says of an array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The space of its chunks.
    pub space: u32,
    pub schema: Schema,
}

/// What the catalog is read through: a version, or one that is being made.
#[derive(Clone, Copy)]
pub(crate) enum Catalog<'a> {
    Snapshot(&'a Snapshot),
    Transaction(&'a Transaction),
}

impl Catalog<'_> {
    pub fn get(&self, space: u32, key: &[u8]) -> Option<std::sync::Arc<[u8]>> {
        match self {
            Catalog::Snapshot(snapshot) => snapshot.get(space, key),
            Catalog::Transaction(transaction) => transaction.get(space, key),
        }
    }

    pub fn pool(&self) -> &std::sync::Arc<buffer::Pool> {
        match self {
            Catalog::Snapshot(snapshot) => snapshot.pool(),
            Catalog::Transaction(transaction) => transaction.base().pool(),
        }
    }

    /// The entry of an array.
    ///
    /// # Errors
    /// [`Error::NoArray`], [`Error::Damaged`].
    pub fn entry(&self, name: &str) -> Result<Entry> {
        match self.get(DIRECTORY, &key(name)) {
            Some(value) => decode(name, &value),
            None => Err(Error::NoArray {
                name: name.to_owned(),
            }),
        }
    }
}

/// Sets the entry of an array.
pub(crate) fn put_entry(transaction: &mut Transaction, name: &str, entry: &Entry) -> Result<()> {
    let value = encode(entry, name)?;
    transaction.put(DIRECTORY, &key(name), &value);
    Ok(())
}

/// Removes the entry of an array.
pub(crate) fn delete_entry(transaction: &mut Transaction, name: &str) {
    transaction.delete(DIRECTORY, &key(name));
}

/// The arrays of a version, by name.
///
/// # Errors
/// [`Error::Damaged`].
pub(crate) fn entries(snapshot: &Snapshot) -> Result<Vec<(String, Entry)>> {
    let mut all = Vec::new();
    for (key, value) in snapshot.prefix(DIRECTORY, ARRAY) {
        let name = key
            .strip_prefix(ARRAY)
            .and_then(|name| std::str::from_utf8(name).ok());
        let name = name.ok_or_else(|| damaged("?", "the name of a directory entry"))?;
        all.push((name.to_owned(), decode(name, &value)?));
    }
    Ok(all)
}

fn key(name: &str) -> Vec<u8> {
    [ARRAY, name.as_bytes()].concat()
}

fn decode(name: &str, value: &[u8]) -> Result<Entry> {
    let entry: Entry = unpack(value).ok_or_else(|| damaged(name, "its directory entry"))?;
    match entry.schema.check() {
        Ok(()) => Ok(entry),
        Err(error) => Err(damaged(name, &format!("its schema ({error})"))),
    }
}

/// The key of an attribute of a chunk. Chunks are in row-major order, all of a chunk is together.
pub(crate) fn chunk_key(chunk: &[u64], attribute: u16) -> Vec<u8> {
    let mut key = Vec::with_capacity(chunk.len() * 4 + 2);
    // A schema has fewer than 2^32 chunks along each dimension.
    chunk
        .iter()
        .for_each(|&at| key.extend((at as u32).to_be_bytes()));
    key.extend(attribute.to_be_bytes());
    key
}

/// The chunk and attribute of a key.
pub(crate) fn of_chunk_key(key: &[u8], rank: usize) -> Option<(Vec<u64>, u16)> {
    let (chunk, attribute) = key.split_last_chunk::<2>()?;
    let (numbers, rest) = chunk.as_chunks::<4>();
    let fits = numbers.len() == rank && rest.is_empty();
    let chunk = numbers
        .iter()
        .map(|&number| u32::from_be_bytes(number).into());
    fits.then(|| (chunk.collect(), u16::from_be_bytes(*attribute)))
}

/// A record as bytes.
pub(crate) fn encode<T: Serialize>(record: &T, name: &str) -> Result<Vec<u8>> {
    let encoded = postcard::to_extend(record, vec![VERSION]);
    encoded.map_err(|error| {
        damaged(
            name,
            &format!("a record, which cannot be encoded ({error}),"),
        )
    })
}

/// A record of bytes, all of them.
pub(crate) fn unpack<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    let (&VERSION, bytes) = bytes.split_first()? else {
        return None;
    };
    match postcard::take_from_bytes(bytes) {
        Ok((record, [])) => Some(record),
        _ => None,
    }
}

pub(crate) fn damaged(array: &str, what: &str) -> Error {
    Error::Damaged {
        array: array.to_owned(),
        what: what.to_owned(),
    }
}
