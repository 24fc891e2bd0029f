//! The records of types that have been created.

use crate::error::Result;
use crate::format::record::{damaged, encode};
use crate::schema::EnumType;

/// The first byte of a record: what follows is as this version writes it. Another byte is of a later one.
const VERSION: u8 = 1;
/// The letter of an enum.
const ENUM: u8 = b'e';

/// The record of an enum.
///
/// # Errors
/// Of none that there are.
pub(crate) fn write(own: &EnumType) -> Result<Vec<u8>> {
    Ok([&[VERSION, ENUM][..], &encode(own, &own.name)?].concat())
}

/// The enum `name` from its record.
///
/// # Errors
/// [`crate::Error::Damaged`] if it does not decode.
pub(crate) fn read(bytes: &[u8], name: &str) -> Result<EnumType> {
    let record = bytes.strip_prefix(&[VERSION, ENUM]);
    let own = record.and_then(|record| postcard::from_bytes::<EnumType>(record).ok());
    own.filter(|own| own.is_sound() && own.name == name)
        .ok_or_else(|| damaged(name, "the definition of the type"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Label;

    #[test]
    fn what_is_no_record_is_refused() {
        let own = EnumType::new("mood", ["sad", "ok"].map(str::to_owned));
        let bytes = write(&own).unwrap();
        assert_eq!(read(&bytes, "mood").unwrap(), own);
        assert!(read(&bytes, "other").is_err());
        let mut later = bytes.clone();
        later[0] = 2;
        for bad in [&later[..], &bytes[..4], &[], &[VERSION], &[VERSION, b'x']] {
            assert!(read(bad, "mood").is_err());
        }
        let mut twice = own.clone();
        twice.labels.push(Label {
            number: 0,
            text: "glad".into(),
        });
        assert!(read(&write(&twice).unwrap(), "mood").is_err());
    }
}
