//! Types: created, changed and dropped within a transaction. Tables have the labels of their columns' types in their own
//! definitions, which change with the type.

use store::Transaction;

use crate::catalog::space::{all, definition, free_name};
use crate::error::{Error, Result};
use crate::format::named_type::NamedType;
use crate::format::{key, named_type};
use crate::schema::{EnumType, enum_within, replaced};
use crate::write::{alter, comments, domains, rights};

/// Creates an enum.
///
/// # Errors
/// [`Error::Exists`] and [`Error::Taken`] if something else has the name; [`Error::Mismatch`] if it can be none.
pub fn create_type(tx: &mut Transaction, own: &EnumType) -> Result<()> {
    free_name(tx, &own.name)?;
    rights::forget_acl(tx, &own.name);
    put(tx, own)
}

/// Gives an enum other labels, or another name, in all tables that have columns of it. A label that was there keeps its
/// number, and none goes.
///
/// # Errors
/// [`Error::NoTable`] if there is none; [`Error::Exists`] if the new name is taken; [`Error::Mismatch`] if a label went, or
/// if it can be none.
pub fn change_type(tx: &mut Transaction, name: &str, own: &EnumType) -> Result<()> {
    let before = find(tx, name)?;
    let kept = |number: u16| own.labels.iter().any(|label| label.number == number);
    if !before.labels.iter().all(|label| kept(label.number)) {
        return Err(Error::Mismatch {
            table: name.to_owned(),
            what: "a label of a type is not dropped".to_owned(),
        });
    }
    if own.name != name {
        free_name(tx, &own.name)?;
        tx.delete(key::DIRECTORY, &key::named_type(name));
        comments::rename(tx, name, &own.name);
        rights::rename(tx, name, &own.name);
    }
    put(tx, own)?;
    for (table, _) in all(tx)? {
        let mut other = definition(tx, &table)?;
        let mut changed = false;
        for column in &mut other.columns {
            if let Some(new) = replaced(&column.data_type, name, own) {
                column.data_type = new;
                changed = true;
            }
        }
        if changed {
            alter::put(tx, &other)?;
        }
    }
    for mut other in domains::every(tx)? {
        if let Some(new) = replaced(&other.data_type, name, own) {
            other.data_type = new;
            domains::put(tx, &other)?;
        }
    }
    Ok(())
}

/// Drops an enum that no column is of.
///
/// # Errors
/// [`Error::NoTable`] if there is none; [`Error::Mismatch`] if a column or a domain is of it.
pub fn drop_type(tx: &mut Transaction, name: &str) -> Result<()> {
    find(tx, name)?;
    for (table, _) in all(tx)? {
        let own = definition(tx, &table)?;
        let mut columns = own.columns.iter();
        if let Some(column) = columns.find(|own| enum_within(&own.data_type) == Some(name)) {
            return Err(Error::Mismatch {
                table,
                what: format!("column '{}' is of type '{name}'", column.name),
            });
        }
    }
    let mut others = domains::every(tx)?.into_iter();
    if let Some(domain) = others.find(|own| enum_within(&own.data_type) == Some(name)) {
        return Err(Error::Mismatch {
            table: domain.name,
            what: format!("the domain is of type '{name}'"),
        });
    }
    tx.delete(key::DIRECTORY, &key::named_type(name));
    comments::forget(tx, name);
    rights::forget_acl(tx, name);
    Ok(())
}

fn put(tx: &mut Transaction, own: &EnumType) -> Result<()> {
    if !own.is_sound() {
        return Err(Error::Mismatch {
            table: own.name.clone(),
            what: "a type cannot be so".to_owned(),
        });
    }
    let record = named_type::write(own)?;
    tx.put(key::DIRECTORY, &key::named_type(&own.name), &record);
    Ok(())
}

/// The enum of this name as the transaction sees it.
fn find(tx: &Transaction, name: &str) -> Result<EnumType> {
    let record = tx.get(key::DIRECTORY, &key::named_type(name));
    let found = record.map(|record| named_type::read(&record, name));
    match found.transpose()? {
        Some(NamedType::Enum(own)) => Ok(own),
        Some(NamedType::Domain(_)) | None => Err(Error::NoTable {
            name: name.to_owned(),
        }),
    }
}
