//! Whole tables: create, drop, truncate.

use store::Transaction;

use crate::catalog::row_index;
use crate::catalog::space::{changed, definition, free_name, space};
use crate::error::{Error, Result};
use crate::format::block::Block;
use crate::format::definition::DefinitionRecord;
use crate::format::dictionary::DictionaryRecord;
use crate::format::key;
use crate::format::record::decode;
use crate::index::maintain;
use crate::index::settle::Place;
use crate::schema::Definition;
use crate::write::sequences::drop_own;
use crate::write::views::forget_materialized;
use crate::write::{comments, rights};

/// Creates an empty table.
///
/// # Errors
/// [`Error::Exists`]; those of [`Definition::validate`]; [`Error::NoTable`] and [`Error::Key`]
/// for a foreign key to a table or columns that do not exist.
pub fn create(tx: &mut Transaction, definition: &Definition) -> Result<()> {
    definition.validate()?;
    free_name(tx, &definition.name)?;
    for foreign in &definition.foreign_keys {
        let itself = foreign.parent == definition.name;
        let parent = if itself {
            definition.clone()
        } else {
            self::definition(tx, &foreign.parent)?
        };
        for column in &foreign.parent_columns {
            parent.position(column)?;
        }
    }
    // What a version that knows no rights has left of a table that it dropped.
    rights::forget_acl(tx, &definition.name);
    let record = DefinitionRecord::write(definition)?;
    let space = tx.new_space();
    tx.put(
        key::DIRECTORY,
        &key::table(&definition.name),
        &space.to_le_bytes(),
    );
    tx.put(space, key::DEFINITION, &record);
    for key in &definition.keys {
        maintain::create(tx, space, key);
    }
    changed(tx, &definition.name, space)
}

/// Drops a table with the sequences of its columns, and frees its pages.
///
/// # Errors
/// [`Error::NoTable`]; [`Error::Key`] if another table refers to it.
pub fn drop(tx: &mut Transaction, name: &str) -> Result<()> {
    let space = space(tx, name)?;
    let others: Vec<_> = tx.prefix(key::DIRECTORY, key::TABLE).collect();
    for (entry, value) in others {
        let (other, _) = key::directory_entry(&entry, &value)?;
        let refers = other != name
            && definition(tx, &other)?
                .foreign_keys
                .iter()
                .any(|k| k.parent == name);
        if refers {
            let what = format!("table '{other}' refers to it; drop that one first");
            return Err(Error::Key {
                table: name.to_owned(),
                what,
            });
        }
    }
    for column in &definition(tx, name)?.columns {
        drop_own(tx, column)?;
    }
    clear(tx, name, space)?;
    tx.delete_space(space);
    tx.delete(key::DIRECTORY, &key::table(name));
    comments::forget(tx, name);
    rights::forget_acl(tx, name);
    forget_materialized(tx, name);
    Ok(())
}

/// Removes all rows of a table.
///
/// # Errors
/// [`Error::NoTable`].
pub fn truncate(tx: &mut Transaction, name: &str) -> Result<()> {
    let space = space(tx, name)?;
    clear(tx, name, space)?;
    changed(tx, name, space)
}

/// Puts the columns, constraints and rows of the table `from` in the place of those of `name`, which keeps its name and what
/// is known by it: foreign keys that refer to it, comments, rights. `from` is no more. That the keys that others refer to
/// are there is for the caller to know.
///
/// # Errors
/// [`Error::NoTable`]; those of [`Definition::validate`].
pub fn take_over(tx: &mut Transaction, name: &str, from: &str) -> Result<()> {
    let (old, new) = (space(tx, name)?, space(tx, from)?);
    let mut own = definition(tx, from)?;
    clear(tx, name, old)?;
    tx.delete_space(old);
    tx.delete(key::DIRECTORY, &key::table(from));
    tx.put(key::DIRECTORY, &key::table(name), &new.to_le_bytes());
    own.name = name.to_owned();
    own.validate()?;
    tx.put(new, key::DEFINITION, &DefinitionRecord::write(&own)?);
    changed(tx, name, new)
}

/// Frees every page of a table and removes its rows.
fn clear(tx: &mut Transaction, name: &str, space: u32) -> Result<()> {
    for (entry, bytes) in tx.prefix(space, key::BLOCK).collect::<Vec<_>>() {
        let block = Block::decode(&bytes, name)?;
        block.page_ids().for_each(|page| tx.free_page(page));
        tx.delete(space, &entry);
    }
    for (entry, bytes) in tx.prefix(space, key::DICTIONARY).collect::<Vec<_>>() {
        let dictionary: DictionaryRecord = decode(&bytes, name)?;
        dictionary.page_ids().for_each(|page| tx.free_page(page));
        tx.delete(space, &entry);
    }
    row_index::remove(tx, name, space)?;
    let definition = &definition(tx, name)?;
    for key in &definition.keys {
        maintain::clear(tx, Place { space, definition }, key)?;
    }
    for prefix in [key::TAIL, key::DELETED] {
        for (entry, _) in tx.prefix(space, prefix).collect::<Vec<_>>() {
            tx.delete(space, &entry);
        }
    }
    Ok(())
}
