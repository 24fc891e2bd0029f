//! Keys of the catalog: one directory space, and one space per table.

use crate::error::{Error, Result};

/// The space that maps table names to their spaces.
pub(crate) const DIRECTORY: u32 = 0;
/// Prefix of directory entries: `t` and the name; the value is the space, little-endian.
pub(crate) const TABLE: &[u8] = b"t";
/// Prefix of settings of the store: `s` and the name; the value is text.
pub(crate) const SETTING: &[u8] = b"s";
/// Prefix of views: `w` and the name; the value is the text of its query.
pub(crate) const VIEW: &[u8] = b"w";
/// Prefix of queries whose rows are kept in tables: `m` and the name of the table; the value is a byte for the version of
/// the record, a byte that is 1 if the rows are there, and the text of the query.
pub(crate) const MATERIALIZED: &[u8] = b"m";
/// Prefix of sequences: `q` and the name; the value is a byte for the version of the record, and the record.
pub(crate) const SEQUENCE: &[u8] = b"q";
/// Prefix of the positions of sequences: `p` and the number under which it is kept, big-endian.
pub(crate) const POSITION: &[u8] = b"p";
/// Prefix of comments: `c` and the name of what they are on; the value is a byte for the version of the record, and the
/// record.
pub(crate) const COMMENTS: &[u8] = b"c";
/// Prefix of schemas: `h` and the name; the value is a byte for the version of the record.
pub(crate) const SCHEMA: &[u8] = b"h";
/// Prefix of roles: `u` and the name; the value is a byte for the version of the record, and the record.
pub(crate) const ROLE: &[u8] = b"u";
/// Prefix of owners and grants: `o` and the name of what they are of, of a schema with what separates it from names; the
/// value is a byte for the version of the record, and the record.
pub(crate) const ACL: &[u8] = b"o";
/// Prefix of types: `y` and the name; the value is a byte for the version of the record, a letter for the kind of type, and
/// the record.
pub(crate) const TYPE: &[u8] = b"y";
/// Prefix of the entries of arrays, which share the directory: tables and views must not have their names.
const ARRAY: &[u8] = b"a";
/// The table's definition.
pub(crate) const DEFINITION: &[u8] = b"def";
/// A counter that every change of the table raises.
pub(crate) const STAMP: &[u8] = b"v";
/// A counter that every change of the table's rows raises. Versions up to 0.1 tell by it whether
/// their row indexes still hold.
pub(crate) const ROWS: &[u8] = b"r";
/// Prefix of block records: `b` and the block's number, big-endian.
pub(crate) const BLOCK: &[u8] = b"b";
/// Prefix of the deleted rows of a block: `x` and the block's number, big-endian.
pub(crate) const DELETED: &[u8] = b"x";
/// Prefix of tail chunks: `t` and the chunk's number, big-endian.
pub(crate) const TAIL: &[u8] = b"t";
/// Prefix of dictionaries: `k` and the column's number, big-endian.
pub(crate) const DICTIONARY: &[u8] = b"k";
/// Prefix of the tags of row indexes, which versions up to 0.1 wrote: `f` and the foreign key's
/// number, big-endian.
pub(crate) const TAG: &[u8] = b"f";
/// Prefix of row indexes, of the same versions: `i`, the foreign key's number and the block's,
/// both big-endian.
pub(crate) const INDEX: &[u8] = b"i";

/// Prefix of what the index of a key has in the catalog: `j`, the key's number, big-endian, and a letter.
pub(crate) const KEYS: &[u8] = b"j";
/// The letter of an index's tag: the value of [`ROWS`] for which it was written. Builds before 0.2 wrote `t`, with ranges of
/// whole blocks: such an index is taken for none.
pub(crate) const KEY_TAG: u8 = b's';
/// The letter of stretches of rows whose keys ascend: the greatest key follows.
pub(crate) const KEY_RANGE: u8 = b'o';
/// The letter of runs of hashes: the run's number follows, big-endian.
pub(crate) const KEY_RUN: u8 = b'r';
/// The letter of the hashes of a chunk of the tail: the chunk's number follows, big-endian.
pub(crate) const KEY_CHUNK: u8 = b'c';

/// The prefix of one kind of records of the index of key `number`.
pub(crate) fn index(number: u32, letter: u8) -> Vec<u8> {
    [KEYS, &number.to_be_bytes(), &[letter]].concat()
}

/// What all records of the index of key `number` and of later ones are not less than.
pub(crate) fn index_from(number: u32) -> Vec<u8> {
    [KEYS, &number.to_be_bytes()].concat()
}

/// The number of the key whose index a record is of.
pub(crate) fn index_number(key: &[u8]) -> Option<u32> {
    let number = key.get(KEYS.len()..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*number))
}

pub(crate) fn table(name: &str) -> Vec<u8> {
    [TABLE, name.as_bytes()].concat()
}

pub(crate) fn view(name: &str) -> Vec<u8> {
    [VIEW, name.as_bytes()].concat()
}

pub(crate) fn materialized(name: &str) -> Vec<u8> {
    [MATERIALIZED, name.as_bytes()].concat()
}

pub(crate) fn sequence(name: &str) -> Vec<u8> {
    [SEQUENCE, name.as_bytes()].concat()
}

pub(crate) fn comments(name: &str) -> Vec<u8> {
    [COMMENTS, name.as_bytes()].concat()
}

pub(crate) fn role(name: &str) -> Vec<u8> {
    [ROLE, name.as_bytes()].concat()
}

pub(crate) fn acl(name: &str) -> Vec<u8> {
    [ACL, name.as_bytes()].concat()
}

pub(crate) fn named_type(name: &str) -> Vec<u8> {
    [TYPE, name.as_bytes()].concat()
}

pub(crate) fn schema(name: &str) -> Vec<u8> {
    [SCHEMA, name.as_bytes()].concat()
}

pub(crate) fn position(state: u64) -> Vec<u8> {
    [POSITION, &state.to_be_bytes()].concat()
}

/// The number at the end of the key of a position.
pub(crate) fn position_number(key: &[u8]) -> Option<u64> {
    key.last_chunk::<8>()
        .map(|bytes| u64::from_be_bytes(*bytes))
}

pub(crate) fn array(name: &str) -> Vec<u8> {
    [ARRAY, name.as_bytes()].concat()
}

pub(crate) fn setting(name: &str) -> Vec<u8> {
    [SETTING, name.as_bytes()].concat()
}

pub(crate) fn numbered(prefix: &[u8], number: u32) -> Vec<u8> {
    [prefix, &number.to_be_bytes()].concat()
}

pub(crate) fn dictionary(column: usize) -> Vec<u8> {
    numbered(DICTIONARY, column as u32)
}

/// The number at the end of a key.
pub(crate) fn number(key: &[u8]) -> Option<u32> {
    key.last_chunk::<4>()
        .map(|bytes| u32::from_be_bytes(*bytes))
}

/// A directory entry's name and space.
pub(crate) fn directory_entry(key: &[u8], value: &[u8]) -> Result<(String, u32)> {
    let name = std::str::from_utf8(&key[TABLE.len()..]);
    match (name, <[u8; 4]>::try_from(value)) {
        (Ok(name), Ok(space)) => Ok((name.to_owned(), u32::from_le_bytes(space))),
        _ => Err(Error::Damaged {
            table: String::from_utf8_lossy(key).into_owned(),
            what: "its directory entry".to_owned(),
        }),
    }
}

/// The value of a counter; 0 if there is none.
pub(crate) fn counter(value: Option<&[u8]>) -> u64 {
    value
        .and_then(|v| v.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}
