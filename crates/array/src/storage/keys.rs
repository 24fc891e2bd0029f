//! The entries of the catalog: a directory of the arrays, and a space for the chunks of each.

use serde::{Deserialize, Serialize};
use store::{Snapshot, Transaction};

use crate::error::{Error, Result, listed};
use crate::model::metadata::Metadata;
use crate::model::schema::Schema;

/// The space of the catalog's directory, which arrays share with tables and graphs.
const DIRECTORY: u32 = 0;
/// Prefix of the directory entries of arrays: `a` and the name.
const ARRAY: &[u8] = b"a";
/// Prefix of the entries of named versions: `n`, the name of the array, a byte 0 and that of the version.
const NAMED: &[u8] = b"n";
/// Prefixes of other things whose names arrays must not have, since all are asked for by name in SQL.
const OTHERS: [(&[u8], &str); 3] = [(b"t", "table"), (b"w", "view"), (b"q", "sequence")];
/// What stands between the name of an array and that of a version.
pub(crate) const AT: char = '@';
/// The first byte of an entry: the version of its format.
const VERSION: u8 = 1;
/// The first byte of the entry of an array of which something is said: behind the rest stands its [`Metadata`].
const DESCRIBED: u8 = 2;
/// The number that stands for the positions of a sparse chunk among its attributes.
pub(crate) const POSITIONS: u16 = u16::MAX;

/// What the directory says of an array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The space of its chunks.
    pub space: u32,
    pub schema: Schema,
}

/// An array that is written to.
#[derive(Debug)]
pub(crate) struct Target {
    pub entry: Entry,
    /// The spaces of its named versions, whose pages stay.
    pub versions: Vec<u32>,
}

/// What the catalog is read through: a version, or one that is being made.
#[derive(Clone, Copy)]
pub(crate) enum Catalog<'a> {
    Snapshot(&'a Snapshot),
    Transaction(&'a Transaction),
}

impl Catalog<'_> {
    /// The value of a key, if there is one.
    pub fn get(&self, space: u32, key: &[u8]) -> Option<std::sync::Arc<[u8]>> {
        match self {
            Catalog::Snapshot(snapshot) => snapshot.get(space, key),
            Catalog::Transaction(transaction) => transaction.get(space, key),
        }
    }

    /// The pool through which pages are read.
    pub fn pool(&self) -> &std::sync::Arc<buffer::Pool> {
        match self {
            Catalog::Snapshot(snapshot) => snapshot.pool(),
            Catalog::Transaction(transaction) => transaction.base().pool(),
        }
    }

    /// All keys of a space that begin so, with their values.
    pub fn prefix(&self, space: u32, prefix: &[u8]) -> store::Entries<'_> {
        match self {
            Catalog::Snapshot(snapshot) => snapshot.prefix(space, prefix),
            Catalog::Transaction(transaction) => transaction.prefix(space, prefix),
        }
    }

    /// The entry of an array, or of a version of one: `temperature@monday`.
    ///
    /// # Errors
    /// As [`entry`](Catalog::entry), and [`Error::NoVersion`].
    pub fn readable(&self, name: &str) -> Result<Entry> {
        let absent = match self.entry(name) {
            Err(absent @ Error::NoArray { .. }) => absent,
            found => return found,
        };
        let Some((array, version)) = name.rsplit_once(AT) else {
            return Err(absent);
        };
        self.entry(array)?;
        self.version(array, version)
    }

    /// The entry of a version of an array.
    ///
    /// # Errors
    /// [`Error::NoVersion`], [`Error::Damaged`].
    pub fn version(&self, array: &str, version: &str) -> Result<Entry> {
        match self.get(DIRECTORY, &version_key(array, version)) {
            Some(value) => decode(array, &value),
            None => {
                let known = self.versions(array)?;
                Err(Error::NoVersion {
                    array: array.to_owned(),
                    version: version.to_owned(),
                    known: listed(known.iter().map(|of| of.0.as_str())),
                })
            }
        }
    }

    /// The versions of an array, by name.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn versions(&self, array: &str) -> Result<Vec<(String, Entry)>> {
        let prefix = version_key(array, "");
        let entries = self.prefix(DIRECTORY, &prefix);
        let entry = |(key, value): (std::sync::Arc<[u8]>, std::sync::Arc<[u8]>)| {
            let name = std::str::from_utf8(&key[prefix.len()..]);
            let name = name.map_err(|_| damaged(array, "the name of a version"))?;
            Ok((name.to_owned(), decode(array, &value)?))
        };
        entries.map(entry).collect()
    }

    /// What has this name and is no array, in one word.
    pub fn other(&self, name: &str) -> Option<&'static str> {
        let key = |prefix: &[u8]| [prefix, name.as_bytes()].concat();
        let taken = |(prefix, _): &&(&[u8], &str)| self.get(DIRECTORY, &key(prefix)).is_some();
        OTHERS.iter().find(taken).map(|(_, what)| *what)
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
    let value = encode_entry(entry, name)?;
    transaction.put(DIRECTORY, &key(name), &value);
    Ok(())
}

/// Removes the entry of an array.
pub(crate) fn delete_entry(transaction: &mut Transaction, name: &str) {
    transaction.delete(DIRECTORY, &key(name));
}

/// Sets the entry of a version.
pub(crate) fn put_version(
    transaction: &mut Transaction,
    (array, version): (&str, &str),
    entry: &Entry,
) -> Result<()> {
    let value = encode_entry(entry, array)?;
    transaction.put(DIRECTORY, &version_key(array, version), &value);
    Ok(())
}

/// Removes the entry of a version.
pub(crate) fn delete_version(transaction: &mut Transaction, array: &str, version: &str) {
    transaction.delete(DIRECTORY, &version_key(array, version));
}

/// Whether an array is another in one of two snapshots of a store: it is only in one of them, or was changed, or was
/// deleted and made again. Looks at the record of each chunk.
pub fn differs(one: &Snapshot, other: &Snapshot, name: &str) -> bool {
    let entries = (
        one.get(DIRECTORY, &key(name)),
        other.get(DIRECTORY, &key(name)),
    );
    let versions = version_key(name, "");
    let same = |space, prefix: &[u8]| one.prefix(space, prefix).eq(other.prefix(space, prefix));
    match entries {
        (None, None) => false,
        (Some(here), Some(there)) if here == there => match unpack_entry(&here) {
            Some(entry) => !(same(entry.space, b"") && same(DIRECTORY, &versions)),
            None => true,
        },
        _ => true,
    }
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

/// No name has a byte 0.
fn version_key(array: &str, version: &str) -> Vec<u8> {
    [NAMED, array.as_bytes(), &[0], version.as_bytes()].concat()
}

fn decode(name: &str, value: &[u8]) -> Result<Entry> {
    let entry = unpack_entry(value).ok_or_else(|| damaged(name, "its directory entry"))?;
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

/// An entry as bytes. Without metadata it is as programs of before have it.
fn encode_entry(entry: &Entry, name: &str) -> Result<Vec<u8>> {
    let mut bytes = encode(entry, name)?;
    let metadata = entry.schema.metadata();
    if metadata.is_empty() {
        return Ok(bytes);
    }
    if let Some(version) = bytes.first_mut() {
        *version = DESCRIBED;
    }
    let encoded = postcard::to_extend(metadata, bytes);
    encoded.map_err(|error| damaged(name, &format!("its metadata ({error})")))
}

/// An entry of bytes, all of them.
fn unpack_entry(bytes: &[u8]) -> Option<Entry> {
    let (&DESCRIBED, rest) = bytes.split_first()? else {
        return unpack(bytes);
    };
    let (mut entry, rest) = postcard::take_from_bytes::<Entry>(rest).ok()?;
    match postcard::take_from_bytes::<Metadata>(rest) {
        Ok((metadata, [])) if metadata.is_sound() => {
            entry.schema = entry.schema.with_metadata(metadata);
            Some(entry)
        }
        _ => None,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::dimension::Dimension;
    use crate::model::schema::Attribute;
    use crate::model::time::Time;
    use crate::model::types::DataType;

    #[test]
    fn entries_with_and_without_metadata_are_read() {
        let dimensions = vec![Dimension::integer("x", 0, 3)];
        let schema = Schema::new(dimensions, vec![Attribute::new("v", DataType::F64)]).unwrap();
        let plain = Entry { space: 7, schema };
        let bytes = encode_entry(&plain, "a").unwrap();
        assert_eq!(bytes, encode(&plain, "a").unwrap(), "as it was before");
        assert_eq!(unpack_entry(&bytes), Some(plain.clone()));
        let mut metadata = Metadata::default();
        metadata.describe(Some("v"), vec![("units".to_owned(), "K".into())]);
        metadata.set_time("x", Time::new(0, 1_000_000).unwrap());
        let described = Entry {
            schema: plain.schema.clone().with_metadata(metadata),
            ..plain
        };
        let bytes = encode_entry(&described, "a").unwrap();
        assert_eq!(unpack_entry(&bytes), Some(described));
        for end in 0..bytes.len() {
            assert_eq!(unpack_entry(&bytes[..end]), None, "cut at {end}");
        }
    }
}
