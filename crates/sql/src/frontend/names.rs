//! Names of tables and columns as statements write them.

use datafusion::common::TableReference;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};

use crate::error::{Error, Result};
use crate::types::{CATALOG, ROW_ID, SCHEMA};

/// The plain name of a table of ours: lower case unless quoted, `public.` and `atoll.public.` taken off.
///
/// # Errors
///
/// For names in other schemas, and for names that would be taken for a file.
pub(crate) fn table_name(name: &ObjectName) -> Result<String> {
    let reference: TableReference = object_name_to_table_reference(name.clone(), true)?;
    let elsewhere = reference.schema().is_some_and(|schema| schema != SCHEMA)
        || reference
            .catalog()
            .is_some_and(|catalog| catalog != CATALOG);
    match elsewhere {
        true => Err(Error::unsupported(format!(
            "there is one schema, {SCHEMA}: write {} instead of {reference}",
            reference.table()
        ))),
        false => Ok(reference.table().to_string()),
    }
}

/// Refuses names that a new table must not have.
pub(crate) fn check_new(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > 255 || name.chars().any(char::is_control) {
        return Err(Error::invalid(format!(
            "{name:?} cannot name a table: 1 to 255 bytes without control characters"
        )));
    }
    match crate::frontend::file_names::looks_like_file(name) {
        true => Err(Error::invalid(format!(
            "{name:?} cannot name a table: in a query it would name a file"
        ))),
        false => Ok(()),
    }
}

/// A column's name: lower case unless quoted.
pub(crate) fn column_name(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// Refuses the name of the hidden column.
pub(crate) fn check_column(name: &str) -> Result<()> {
    match name == ROW_ID {
        true => Err(Error::invalid(format!(
            "{ROW_ID} is reserved; choose another column name"
        ))),
        false => Ok(()),
    }
}
