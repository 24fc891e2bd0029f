//! The catalog as a transaction sees it.

use store::Transaction;

use crate::catalog::row_index;
use crate::error::{Error, Result};
use crate::format::definition::DefinitionRecord;
use crate::format::key;
use crate::schema::Definition;

/// The space of table `name` in the catalog.
///
/// # Errors
/// [`Error::NoTable`].
pub(crate) fn space(tx: &Transaction, name: &str) -> Result<u32> {
    let entry = key::table(name);
    match tx.get(key::DIRECTORY, &entry) {
        Some(value) => Ok(key::directory_entry(&entry, &value)?.1),
        None => Err(Error::NoTable {
            name: name.to_owned(),
        }),
    }
}

/// That no table, view, sequence, type or array has this name.
///
/// # Errors
/// [`Error::Exists`]; [`Error::Taken`] if it is an array's.
pub(crate) fn free_name(tx: &Transaction, name: &str) -> Result<()> {
    let taken = |key: Vec<u8>| tx.get(key::DIRECTORY, &key).is_some();
    let relation = taken(key::table(name)) || taken(key::view(name));
    if relation || taken(key::sequence(name)) || taken(key::named_type(name)) {
        return Err(Error::Exists {
            name: name.to_owned(),
        });
    }
    if taken(key::array(name)) {
        return Err(Error::Taken {
            name: name.to_owned(),
        });
    }
    Ok(())
}

/// The names of all tables, and their spaces.
///
/// # Errors
/// [`Error::Damaged`].
pub(crate) fn all(tx: &Transaction) -> Result<Vec<(String, u32)>> {
    let entries = tx.prefix(key::DIRECTORY, key::TABLE);
    entries
        .map(|(entry, value)| key::directory_entry(&entry, &value))
        .collect()
}

/// The definition of a table as the transaction sees it.
///
/// # Errors
/// [`Error::NoTable`]; [`Error::Damaged`].
pub fn definition(tx: &Transaction, name: &str) -> Result<Definition> {
    let space = space(tx, name)?;
    DefinitionRecord::read(tx.get(space, key::DEFINITION).as_deref(), name)
}

/// Notes a change of the table's rows, which the indexes of its keys have taken part in.
///
/// An earlier version, which knows of no index, raises the counter but not the tags: whoever reads a tag that is behind
/// knows that the index is of no use.
///
/// # Errors
/// [`Error::Damaged`] if what an earlier version left does not decode.
pub(crate) fn changed(tx: &mut Transaction, name: &str, space: u32) -> Result<()> {
    row_index::remove(tx, name, space)?;
    let before = key::counter(tx.get(space, key::ROWS).as_deref());
    for counter in [key::ROWS, key::STAMP] {
        let value = key::counter(tx.get(space, counter).as_deref()) + 1;
        tx.put(space, counter, &value.to_le_bytes());
    }
    // From index to index: one has an entry for each block, and more.
    let mut number = Some(0);
    while let Some(from) = number {
        let next = tx.prefix_from(space, key::KEYS, &key::index_from(from));
        let Some(found) = next.map(|(entry, _)| key::index_number(&entry)).next() else {
            break;
        };
        let Some(found) = found else { break };
        let tag = key::index(found, key::KEY_TAG);
        let value = tx.get(space, &tag);
        if value.is_some() && key::counter(value.as_deref()) == before {
            tx.put(space, &tag, &(before + 1).to_le_bytes());
        }
        number = found.checked_add(1);
    }
    Ok(())
}
