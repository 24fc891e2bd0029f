//! Views: queries that have names. What a text means is the business of the language above.

use store::Transaction;

use crate::catalog::space::free_name;
use crate::error::{Error, Result};
use crate::format::key;
use crate::write::{comments, rights};

/// Keeps the text of a query under a name.
///
/// # Errors
/// [`Error::Exists`] if a table or a view has the name.
pub fn create_view(tx: &mut Transaction, name: &str, text: &str) -> Result<()> {
    free_name(tx, name)?;
    rights::forget_acl(tx, name);
    tx.put(key::DIRECTORY, &key::view(name), text.as_bytes());
    Ok(())
}

/// Keeps another text under the name of a view.
///
/// # Errors
/// [`Error::NoTable`].
pub fn change_view(tx: &mut Transaction, name: &str, text: &str) -> Result<()> {
    let entry = key::view(name);
    if tx.get(key::DIRECTORY, &entry).is_none() {
        return Err(Error::NoTable {
            name: name.to_owned(),
        });
    }
    tx.put(key::DIRECTORY, &entry, text.as_bytes());
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
    comments::forget(tx, name);
    rights::forget_acl(tx, name);
    Ok(())
}

/// Says of a table that its rows are those of a query, and whether they are there.
///
/// # Errors
/// [`Error::NoTable`].
pub fn set_materialized(
    tx: &mut Transaction,
    name: &str,
    text: &str,
    populated: bool,
) -> Result<()> {
    if tx.get(key::DIRECTORY, &key::table(name)).is_none() {
        return Err(Error::NoTable {
            name: name.to_owned(),
        });
    }
    let record = [&[VERSION, u8::from(populated)], text.as_bytes()].concat();
    tx.put(key::DIRECTORY, &key::materialized(name), &record);
    Ok(())
}

/// The first byte of the record of such a table.
const VERSION: u8 = 1;

/// Forgets that the rows of a table are those of a query.
pub(super) fn forget_materialized(tx: &mut Transaction, name: &str) {
    let entry = key::materialized(name);
    if tx.get(key::DIRECTORY, &entry).is_some() {
        tx.delete(key::DIRECTORY, &entry);
    }
}
