//! Comments on tables, views and sequences. They go and are renamed with what they are on.

use store::Transaction;

use crate::error::Result;
use crate::format::{comments, key};
use crate::schema::Comments;

/// Changes what is said about `name`. That there is such a thing, and that it has the columns and keys, is for the caller
/// to know.
///
/// # Errors
/// [`Error::Damaged`](crate::Error::Damaged).
pub fn comment(tx: &mut Transaction, name: &str, change: impl FnOnce(&mut Comments)) -> Result<()> {
    let entry = key::comments(name);
    let mut all = match tx.get(key::DIRECTORY, &entry) {
        Some(record) => comments::read(&record, name)?,
        None => Comments::default(),
    };
    change(&mut all);
    if all.is_empty() {
        tx.delete(key::DIRECTORY, &entry);
    } else {
        let record = comments::write(&all, name)?;
        tx.put(key::DIRECTORY, &entry, &record);
    }
    Ok(())
}

/// Removes what is said about `name`.
pub(super) fn forget(tx: &mut Transaction, name: &str) {
    let entry = key::comments(name);
    if tx.get(key::DIRECTORY, &entry).is_some() {
        tx.delete(key::DIRECTORY, &entry);
    }
}

/// What is said about `name` is said about `to`.
pub(super) fn rename(tx: &mut Transaction, name: &str, to: &str) {
    if let Some(record) = tx.get(key::DIRECTORY, &key::comments(name)) {
        tx.put(key::DIRECTORY, &key::comments(to), &record);
        tx.delete(key::DIRECTORY, &key::comments(name));
    }
}
