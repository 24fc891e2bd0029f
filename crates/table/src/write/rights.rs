//! Roles, and whom things belong to. What is said of a thing goes and is renamed with it.

use store::Transaction;

use crate::error::{Error, Result};
use crate::format::{key, rights};
use crate::schema::{Acl, Role};

/// Creates a role, or changes the one of that name.
///
/// # Errors
/// Of none that there are.
pub fn put_role(tx: &mut Transaction, name: &str, role: &Role) -> Result<()> {
    let record = rights::write_role(role, name)?;
    tx.put(key::DIRECTORY, &key::role(name), &record);
    Ok(())
}

/// Drops a role. That nothing is said of it is for the caller to know.
///
/// # Errors
/// [`Error::NoTable`] if there is none.
pub fn drop_role(tx: &mut Transaction, name: &str) -> Result<()> {
    let entry = key::role(name);
    if tx.get(key::DIRECTORY, &entry).is_none() {
        return Err(Error::NoTable {
            name: name.to_owned(),
        });
    }
    tx.delete(key::DIRECTORY, &entry);
    Ok(())
}

/// Whom the table, view, sequence, array or schema of this name belongs to, as the transaction sees it; none if nothing is
/// said.
///
/// # Errors
/// [`Error::Damaged`].
pub fn acl(tx: &Transaction, name: &str) -> Result<Option<Acl>> {
    let record = tx.get(key::DIRECTORY, &key::acl(name));
    record.map(|record| rights::read(&record, name)).transpose()
}

/// Says whom the table, view, sequence, array or schema of this name belongs to. That there is one is for the caller to
/// know.
///
/// # Errors
/// Of none that there are.
pub fn put_acl(tx: &mut Transaction, name: &str, acl: &Acl) -> Result<()> {
    let record = rights::write(acl, name)?;
    tx.put(key::DIRECTORY, &key::acl(name), &record);
    Ok(())
}

/// Removes what is said about rights on `name`.
pub fn forget_acl(tx: &mut Transaction, name: &str) {
    let entry = key::acl(name);
    if tx.get(key::DIRECTORY, &entry).is_some() {
        tx.delete(key::DIRECTORY, &entry);
    }
}

/// The rights on `name` are those on `to`.
pub(super) fn rename(tx: &mut Transaction, name: &str, to: &str) {
    if let Some(record) = tx.get(key::DIRECTORY, &key::acl(name)) {
        tx.put(key::DIRECTORY, &key::acl(to), &record);
        tx.delete(key::DIRECTORY, &key::acl(name));
    }
}
