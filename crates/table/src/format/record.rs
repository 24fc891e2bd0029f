//! Records of the catalog, in the postcard format.

use crate::error::{Error, Result};

/// The error of a record or page of table `name` that passed its checksum but does not decode.
pub(crate) fn damaged(name: &str, what: &str) -> Error {
    Error::Damaged {
        table: name.to_owned(),
        what: what.to_owned(),
    }
}

/// A record of table `name` from its bytes.
///
/// # Errors
/// [`Error::Damaged`].
pub(crate) fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8], name: &str) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|_| damaged(name, "a record of its catalog"))
}

/// The bytes of a record of table `name`.
///
/// # Errors
/// Of no record that there is.
pub(crate) fn encode<T: serde::Serialize>(record: &T, name: &str) -> Result<Vec<u8>> {
    postcard::to_stdvec(record).map_err(|e| Error::Mismatch {
        table: name.to_owned(),
        what: format!("its record cannot be written: {e}"),
    })
}
