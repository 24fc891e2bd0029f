//! Settings that a store keeps: defaults for the programs that open it.

use store::{Snapshot, Transaction};

use crate::error::{Error, Result};
use crate::format::key;

/// The value of a setting; `None` where it was never set.
///
/// # Errors
/// [`Error::Damaged`] if it is no text.
pub fn setting(snapshot: &Snapshot, name: &str) -> Result<Option<String>> {
    let Some(value) = snapshot.get(key::DIRECTORY, &key::setting(name)) else {
        return Ok(None);
    };
    match std::str::from_utf8(&value) {
        Ok(text) => Ok(Some(text.to_owned())),
        Err(_) => Err(Error::Damaged {
            table: format!("the setting {name}"),
            what: "its value".to_owned(),
        }),
    }
}

/// Sets a setting, or removes it where `value` is `None`. Programs that open the store after `tx` is
/// committed see it.
pub fn set(tx: &mut Transaction, name: &str, value: Option<&str>) {
    let key = key::setting(name);
    match value {
        Some(value) => tx.put(key::DIRECTORY, &key, value.as_bytes()),
        None => tx.delete(key::DIRECTORY, &key),
    }
}
