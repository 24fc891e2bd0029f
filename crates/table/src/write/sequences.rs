//! Sequences: created, changed and dropped within a transaction. Where they have come to is kept beside it: see
//! [`keep_sequence_position`].

use std::sync::Arc;

use store::{Snapshot, Store, Transaction};

use crate::catalog::space::free_name;
use crate::error::{Error, Result};
use crate::format::{key, sequence};
use crate::schema::{Column, Position, Sequence};
use crate::write::{comments, rights};

/// Creates a sequence.
///
/// # Errors
/// [`Error::Exists`] and [`Error::Taken`] if something else has the name; [`Error::Mismatch`] if it can be none.
pub fn create_sequence(tx: &mut Transaction, name: &str, own: &Sequence) -> Result<()> {
    free_name(tx, name)?;
    rights::forget_acl(tx, name);
    put(tx, name, own)
}

/// Changes what a sequence is.
///
/// # Errors
/// [`Error::NoTable`] if there is none; [`Error::Mismatch`] if it can be none.
pub fn change_sequence(tx: &mut Transaction, name: &str, own: &Sequence) -> Result<()> {
    let before = find(tx, name)?;
    if before.state != own.state {
        tx.delete(key::DIRECTORY, &key::position(before.state));
    }
    put(tx, name, own)
}

/// Drops a sequence.
///
/// # Errors
/// [`Error::NoTable`] if there is none.
pub fn drop_sequence(tx: &mut Transaction, name: &str) -> Result<()> {
    let own = find(tx, name)?;
    tx.delete(key::DIRECTORY, &key::position(own.state));
    tx.delete(key::DIRECTORY, &key::sequence(name));
    comments::forget(tx, name);
    rights::forget_acl(tx, name);
    Ok(())
}

/// Drops the sequences that belong to a column, of which some may be gone already.
pub(super) fn drop_own(tx: &mut Transaction, column: &Column) -> Result<()> {
    for name in &column.sequences {
        match drop_sequence(tx, name) {
            Ok(()) | Err(Error::NoTable { .. }) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn put(tx: &mut Transaction, name: &str, own: &Sequence) -> Result<()> {
    if !own.is_sound() {
        return Err(Error::Mismatch {
            table: name.to_owned(),
            what: "a sequence cannot be so".to_owned(),
        });
    }
    let record = sequence::write(own, name)?;
    tx.put(key::DIRECTORY, &key::sequence(name), &record);
    Ok(())
}

fn find(tx: &Transaction, name: &str) -> Result<Sequence> {
    match tx.get(key::DIRECTORY, &key::sequence(name)) {
        Some(record) => sequence::read(&record, name),
        None => Err(Error::NoTable {
            name: name.to_owned(),
        }),
    }
}

/// A number that neither a sequence nor a position has, as the transaction sees them, and that is greater than all of
/// them.
///
/// # Errors
/// [`Error::Damaged`].
pub fn new_sequence_number(tx: &Transaction) -> Result<u64> {
    let mut greatest = 0;
    for (entry, record) in tx.prefix(key::DIRECTORY, key::SEQUENCE) {
        let own = sequence::read(&record, &String::from_utf8_lossy(&entry))?;
        greatest = greatest.max(own.number).max(own.state);
    }
    // Of sequences that never came to be there may be positions.
    for (entry, _) in tx
        .base()
        .store()
        .snapshot()
        .prefix(key::DIRECTORY, key::POSITION)
    {
        greatest = greatest.max(key::position_number(&entry).unwrap_or(0));
    }
    Ok(greatest + 1)
}

/// Where the sequence `name` is that keeps its position under `state`; `None` if it has not moved. It is what was last
/// committed, whoever asks.
///
/// # Errors
/// [`Error::Damaged`].
pub fn sequence_position(store: &Arc<Store>, name: &str, state: u64) -> Result<Option<Position>> {
    let record = store.snapshot().get(key::DIRECTORY, &key::position(state));
    let read = record.map(|record| sequence::read_position(&record, name));
    read.transpose()
}

/// Whether something is kept under `state`.
pub fn has_sequence_position(snapshot: &Snapshot, state: u64) -> bool {
    snapshot
        .get(key::DIRECTORY, &key::position(state))
        .is_some()
}

/// Keeps where a sequence is, durably when this returns, whether a transaction is under way or not: whatever becomes of
/// that, the position stays.
///
/// # Errors
/// Those of [`Store::put_aside`].
pub fn keep_sequence_position(store: &Arc<Store>, state: u64, position: Position) -> Result<()> {
    let record = sequence::write_position(position);
    store.put_aside(key::DIRECTORY, &key::position(state), &record)?;
    Ok(())
}
