//! Domains: created, changed and dropped within a transaction. A column names the domain that it is of, and a domain the one
//! that it was made from; these names change with it.

use store::Transaction;

use crate::catalog::space::{all, definition, free_name};
use crate::error::{Error, Result};
use crate::format::named_type::NamedType;
use crate::format::{key, named_type};
use crate::schema::Domain;
use crate::write::{alter, comments, rights};

/// Creates a domain.
///
/// # Errors
/// [`Error::Exists`] and [`Error::Taken`] if something else has the name; [`Error::Mismatch`] if it can be none, or its
/// parent is not there; [`Error::Unsupported`] if its values cannot be stored.
pub fn create_domain(tx: &mut Transaction, own: &Domain) -> Result<()> {
    free_name(tx, &own.name)?;
    rights::forget_acl(tx, &own.name);
    if let Some(parent) = &own.parent {
        find(tx, parent)?;
    }
    put(tx, own)
}

/// Says something else of a domain, or gives it another name, also where columns and domains name it. All tables that have
/// columns of it, or of domains made from it, count as changed: who writes to one meanwhile has seen other conditions. Whether
/// rows satisfy them is for the caller to know.
///
/// # Errors
/// [`Error::NoTable`] if there is none; [`Error::Exists`] if the new name is taken; [`Error::Mismatch`] if it would be of
/// another type, or can be none.
pub fn change_domain(tx: &mut Transaction, name: &str, own: &Domain) -> Result<()> {
    let before = find(tx, name)?;
    if before.data_type != own.data_type
        || before.text != own.text
        || before.parent != own.parent
        || before.composite != own.composite
    {
        return Err(Error::Mismatch {
            table: name.to_owned(),
            what: "the type of a domain is not changed".to_owned(),
        });
    }
    if own.name != name {
        free_name(tx, &own.name)?;
        tx.delete(key::DIRECTORY, &key::named_type(name));
        comments::rename(tx, name, &own.name);
        rights::rename(tx, name, &own.name);
    }
    put(tx, own)?;
    let mut of_it = vec![own.name.clone()];
    let others = every(tx)?;
    let mut at = 0;
    while let Some(parent) = of_it.get(at).cloned() {
        let names_it = |other: &Domain| {
            let named = other.parent.as_deref();
            named == Some(parent.as_str()) || at == 0 && named == Some(name)
        };
        for other in others.iter().filter(|other| names_it(other)) {
            if other.parent.as_ref() != Some(&parent) {
                put(
                    tx,
                    &Domain {
                        parent: Some(parent.clone()),
                        ..other.clone()
                    },
                )?;
            }
            of_it.push(other.name.clone());
        }
        at += 1;
    }
    for (table, _) in all(tx)? {
        let mut other = definition(tx, &table)?;
        let mut changed = false;
        for domain in other.columns.iter_mut().filter_map(|c| c.domain.as_mut()) {
            if domain == name {
                own.name.clone_into(domain);
            }
            changed |= of_it.contains(domain);
        }
        if changed {
            alter::put(tx, &other)?;
        }
    }
    Ok(())
}

/// Drops a domain that no column is of, and of which no other is made.
///
/// # Errors
/// [`Error::NoTable`] if there is none; [`Error::Mismatch`] if a column or a domain is of it.
pub fn drop_domain(tx: &mut Transaction, name: &str) -> Result<()> {
    find(tx, name)?;
    for (table, _) in all(tx)? {
        let own = definition(tx, &table)?;
        let mut columns = own.columns.iter();
        if let Some(column) = columns.find(|own| own.domain.as_deref() == Some(name)) {
            return Err(Error::Mismatch {
                table,
                what: format!("column '{}' is of domain '{name}'", column.name),
            });
        }
    }
    let mut others = every(tx)?.into_iter();
    if let Some(other) = others.find(|other| other.parent.as_deref() == Some(name)) {
        return Err(Error::Mismatch {
            table: other.name,
            what: format!("the domain is made from '{name}'"),
        });
    }
    tx.delete(key::DIRECTORY, &key::named_type(name));
    comments::forget(tx, name);
    rights::forget_acl(tx, name);
    Ok(())
}

/// Keeps a domain.
pub(super) fn put(tx: &mut Transaction, own: &Domain) -> Result<()> {
    if !own.is_sound() {
        return Err(Error::Mismatch {
            table: own.name.clone(),
            what: "a domain cannot be so".to_owned(),
        });
    }
    let record = named_type::write_domain(own)?;
    tx.put(key::DIRECTORY, &key::named_type(&own.name), &record);
    Ok(())
}

/// All domains as the transaction sees them.
pub(super) fn every(tx: &Transaction) -> Result<Vec<Domain>> {
    let mut found = Vec::new();
    for (entry, record) in tx.prefix(key::DIRECTORY, key::TYPE) {
        let name = String::from_utf8_lossy(&entry[key::TYPE.len()..]).into_owned();
        if let NamedType::Domain(own) = named_type::read(&record, &name)? {
            found.push(own);
        }
    }
    Ok(found)
}

/// The domain of this name as the transaction sees it.
pub(super) fn find(tx: &Transaction, name: &str) -> Result<Domain> {
    let record = tx.get(key::DIRECTORY, &key::named_type(name));
    let found = record.map(|record| named_type::read(&record, name));
    match found.transpose()? {
        Some(NamedType::Domain(own)) => Ok(own),
        Some(NamedType::Enum(_)) | None => Err(Error::NoTable {
            name: name.to_owned(),
        }),
    }
}
