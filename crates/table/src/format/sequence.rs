//! The records of sequences.

use crate::error::Result;
use crate::format::record::{damaged, encode};
use crate::schema::{Position, Sequence};

/// The first byte of a record: what follows is as this version writes it. Another byte is of a later one.
const VERSION: u8 = 1;

/// The record of a sequence.
///
/// # Errors
/// Of no sequence that there is.
pub(crate) fn write(sequence: &Sequence, name: &str) -> Result<Vec<u8>> {
    Ok([&[VERSION][..], &encode(sequence, name)?].concat())
}

/// The sequence `name` from its record.
///
/// # Errors
/// [`crate::Error::Damaged`] if it does not decode.
pub(crate) fn read(bytes: &[u8], name: &str) -> Result<Sequence> {
    let record = bytes.strip_prefix(&[VERSION]);
    let sequence = record.and_then(|record| postcard::from_bytes::<Sequence>(record).ok());
    sequence
        .filter(Sequence::is_sound)
        .ok_or_else(|| damaged(name, "the definition of the sequence"))
}

/// The record of a position: the value, little-endian, and whether it was given.
pub(crate) fn write_position(position: Position) -> [u8; 9] {
    let mut bytes = [0; 9];
    bytes[..8].copy_from_slice(&position.value.to_le_bytes());
    bytes[8] = u8::from(position.called);
    bytes
}

/// The position of the sequence `name` from its record.
///
/// # Errors
/// [`crate::Error::Damaged`] if it does not decode.
pub(crate) fn read_position(bytes: &[u8], name: &str) -> Result<Position> {
    match bytes.split_first_chunk::<8>() {
        Some((value, [called @ (0 | 1)])) => Ok(Position {
            value: i64::from_le_bytes(*value),
            called: *called == 1,
        }),
        _ => Err(damaged(name, "the position of the sequence")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_record_is_refused() {
        let sequence = Sequence {
            number: 3,
            state: 4,
            bytes: 4,
            start: -7,
            increment: -2,
            min: -100,
            max: -7,
            cycle: true,
            first: Position {
                value: -9,
                called: true,
            },
        };
        let bytes = write(&sequence, "s").unwrap();
        assert_eq!(read(&bytes, "s").unwrap(), sequence);
        let mut later = bytes.clone();
        later[0] = 2;
        for bad in [&later[..], &bytes[..4], &[], &[VERSION]] {
            assert!(read(bad, "s").is_err());
        }
        let outside = Sequence {
            start: 5,
            ..sequence.clone()
        };
        assert!(read(&write(&outside, "s").unwrap(), "s").is_err());
        let bytes = write_position(sequence.first);
        assert_eq!(read_position(&bytes, "s").unwrap(), sequence.first);
        assert!(read_position(&bytes[..8], "s").is_err());
        assert!(read_position(&[2; 9], "s").is_err());
    }
}
