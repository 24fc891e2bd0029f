//! Views: queries that have names. What a text means is the business of the language above.

use store::Transaction;

use crate::catalog::space::free_name;
use crate::error::{Error, Result};
use crate::format::key;

/// Keeps the text of a query under a name.
///
/// # Errors
/// [`Error::Exists`] if a table or a view has the name.
pub fn create_view(tx: &mut Transaction, name: &str, text: &str) -> Result<()> {
    free_name(tx, name)?;
    tx.put(key::DIRECTORY, &key::view(name), text.as_bytes());
    Ok(())
}

/// Removes a view.
///
/// # Errors
/// [`Error::NoTable`].
pub fn drop_view(tx: &mut Transaction, name: &str) -> Result<()> {
    let entry = key::view(name);
    if tx.get(key::DIRECTORY, &entry).is_none() {
        return Err(Error::NoTable {
            name: name.to_owned(),
        });
    }
    tx.delete(key::DIRECTORY, &entry);
    Ok(())
}
