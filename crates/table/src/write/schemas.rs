//! Schemas: they are created and dropped by themselves, and what is in one has its name in front of its own.

use store::Transaction;

use crate::catalog::space::{all, definition, free_name};
use crate::error::{Error, Result};
use crate::format::named_type::NamedType;
use crate::format::{key, named_type};
use crate::schema::{Generated, schema_of, within};
use crate::write::alter::{redefine, rename};
use crate::write::domains::change_domain;
use crate::write::types::change_type;
use crate::write::{comments, rights};

/// The record of a schema: the version of the record.
const RECORD: &[u8] = &[1];

/// Creates an empty schema.
///
/// # Errors
/// [`Error::Exists`].
pub fn create_schema(tx: &mut Transaction, name: &str) -> Result<()> {
    let entry = key::schema(name);
    if tx.get(key::DIRECTORY, &entry).is_some() {
        return Err(Error::Exists {
            name: name.to_owned(),
        });
    }
    tx.put(key::DIRECTORY, &entry, RECORD);
    Ok(())
}

/// Drops a schema in which there is nothing.
///
/// # Errors
/// [`Error::NoTable`] if there is none; [`Error::Mismatch`] if something is in it.
pub fn drop_schema(tx: &mut Transaction, name: &str) -> Result<()> {
    let entry = key::schema(name);
    if tx.get(key::DIRECTORY, &entry).is_none() {
        return Err(Error::NoTable {
            name: name.to_owned(),
        });
    }
    if !inside(tx, name)?.is_empty() {
        return Err(Error::Mismatch {
            table: name.to_owned(),
            what: "something is in the schema".to_owned(),
        });
    }
    tx.delete(key::DIRECTORY, &entry);
    comments::forget(tx, &within(name, ""));
    rights::forget_acl(tx, &within(name, ""));
    Ok(())
}

/// Gives a schema another name, and with it all that is in it. Texts of views and defaults stay as they are.
///
/// # Errors
/// [`Error::NoTable`] if there is none; [`Error::Exists`] if there is one of the new name.
pub fn rename_schema(tx: &mut Transaction, name: &str, to: &str) -> Result<()> {
    let entry = key::schema(name);
    if tx.get(key::DIRECTORY, &entry).is_none() {
        return Err(Error::NoTable {
            name: name.to_owned(),
        });
    }
    create_schema(tx, to)?;
    for (kind, from) in inside(tx, name)? {
        let base = crate::schema::base_of(&from);
        let to = within(to, base);
        match kind {
            Kind::Table => rename(tx, &from, &to)?,
            Kind::View => rename_view(tx, &from, &to)?,
            Kind::Sequence => rename_sequence(tx, &from, &to)?,
            Kind::Type => rename_type(tx, &from, &to)?,
        }
    }
    tx.delete(key::DIRECTORY, &entry);
    comments::rename(tx, &within(name, ""), &within(to, ""));
    rights::rename(tx, &within(name, ""), &within(to, ""));
    Ok(())
}

/// Renames a view.
///
/// # Errors
/// [`Error::NoTable`]; [`Error::Exists`].
pub fn rename_view(tx: &mut Transaction, name: &str, to: &str) -> Result<()> {
    moved(tx, key::view, name, to)
}

/// Renames a sequence, also where columns have it. Texts of defaults that name it stay as they are.
///
/// # Errors
/// [`Error::NoTable`]; [`Error::Exists`].
pub fn rename_sequence(tx: &mut Transaction, name: &str, to: &str) -> Result<()> {
    moved(tx, key::sequence, name, to)?;
    for (table, _) in all(tx)? {
        let own = definition(tx, &table)?;
        let mut sequences = own.columns.iter().flat_map(|column| &column.sequences);
        if !sequences.any(|sequence| sequence == name) {
            continue;
        }
        redefine(tx, &table, |own| {
            for column in &mut own.columns {
                for sequence in column.sequences.iter_mut().filter(|own| *own == name) {
                    to.clone_into(sequence);
                }
                if let Some(Generated::Identity { sequence, .. }) = &mut column.generated
                    && sequence == name
                {
                    to.clone_into(sequence);
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Renames a type, also in the definitions of tables.
fn rename_type(tx: &mut Transaction, name: &str, to: &str) -> Result<()> {
    let Some(record) = tx.get(key::DIRECTORY, &key::named_type(name)) else {
        return Err(Error::NoTable {
            name: name.to_owned(),
        });
    };
    match named_type::read(&record, name)? {
        NamedType::Enum(mut own) => {
            to.clone_into(&mut own.name);
            change_type(tx, name, &own)
        }
        NamedType::Domain(mut own) => {
            to.clone_into(&mut own.name);
            change_domain(tx, name, &own)
        }
    }
}

/// Puts an entry of the directory under another name.
fn moved(tx: &mut Transaction, entry: fn(&str) -> Vec<u8>, name: &str, to: &str) -> Result<()> {
    let Some(record) = tx.get(key::DIRECTORY, &entry(name)) else {
        return Err(Error::NoTable {
            name: name.to_owned(),
        });
    };
    free_name(tx, to)?;
    tx.put(key::DIRECTORY, &entry(to), &record);
    tx.delete(key::DIRECTORY, &entry(name));
    comments::rename(tx, name, to);
    rights::rename(tx, name, to);
    Ok(())
}

/// What is in a schema.
#[derive(Clone, Copy)]
enum Kind {
    Table,
    View,
    Sequence,
    Type,
}

/// The names of all that is in a schema.
fn inside(tx: &Transaction, schema: &str) -> Result<Vec<(Kind, String)>> {
    let kinds = [
        (Kind::Table, key::TABLE),
        (Kind::View, key::VIEW),
        (Kind::Sequence, key::SEQUENCE),
        (Kind::Type, key::TYPE),
    ];
    let mut found = Vec::new();
    for (kind, prefix) in kinds {
        let begins = [prefix, within(schema, "").as_bytes()].concat();
        for (entry, _) in tx.prefix(key::DIRECTORY, &begins) {
            let name = std::str::from_utf8(&entry[prefix.len()..]).map_err(|_| Error::Damaged {
                table: String::from_utf8_lossy(&entry).into_owned(),
                what: "its directory entry".to_owned(),
            })?;
            debug_assert_eq!(schema_of(name), Some(schema), "it begins with it");
            found.push((kind, name.to_owned()));
        }
    }
    Ok(found)
}
