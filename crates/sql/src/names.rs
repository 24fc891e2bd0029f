//! Names of tables and columns as statements write them.

use datafusion::common::TableReference;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use ingest::Format;
use table::{ROW_COLUMN, Tables};

use crate::error::{Error, Result, WITHIN};

/// The only catalog, as `information_schema` and qualified names call it.
pub(crate) const CATALOG: &str = "atoll";

/// The only schema.
pub(crate) const SCHEMA: &str = "public";

/// The schema of what clients of PostgreSQL ask about a database.
pub(crate) const PG_CATALOG: &str = "pg_catalog";

/// The name of a table without `public.` or `atoll.public.`, in lower case unless quoted.
///
/// # Errors
///
/// For names in other schemas.
pub(crate) fn table_name(name: &ObjectName) -> Result<String> {
    let reference: TableReference = object_name_to_table_reference(name.clone(), true)?;
    let elsewhere = reference.schema().is_some_and(|schema| schema != SCHEMA)
        || reference
            .catalog()
            .is_some_and(|catalog| catalog != CATALOG);
    if elsewhere {
        Err(Error::unsupported(format!(
            "there is one schema, {SCHEMA}: write {} instead of {reference}",
            reference.table()
        )))
    } else {
        Ok(reference.table().to_string())
    }
}

/// The name in the catalog of a temporary table of the session with this schema.
pub(crate) fn temporary(schema: &str, name: &str) -> String {
    format!("{schema}{WITHIN}{name}")
}

/// The schema of a session whose temporary table has this name in the catalog.
pub(crate) fn session_of(name: &str) -> Option<&str> {
    name.split_once(WITHIN).map(|(schema, _)| schema)
}

/// The name of a table as statements write it.
pub(crate) fn base(name: &str) -> &str {
    name.split_once(WITHIN).map_or(name, |(_, base)| base)
}

/// `names` without those of temporary tables.
pub(crate) fn permanent(mut names: Vec<&str>) -> Vec<&str> {
    names.retain(|name| session_of(name).is_none());
    names
}

/// The name in the catalog of what a session with this schema of temporary tables calls `name`.
pub(crate) fn seen(schema: Option<&str>, tables: &Tables, name: &str) -> String {
    let own = schema.map(|schema| temporary(schema, name));
    let own = own.filter(|own| tables.get(own).is_some());
    own.unwrap_or_else(|| name.to_string())
}

/// Refuses names that a new table must not have.
pub(crate) fn check_new(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > 255 || name.chars().any(char::is_control) {
        return Err(Error::invalid(format!(
            "{name:?} cannot name a table: 1 to 255 bytes without control characters"
        )));
    }
    if looks_like_file(name) {
        Err(Error::invalid(format!(
            "{name:?} cannot name a table: in a query it would name a file"
        )))
    } else {
        Ok(())
    }
}

/// Whether a name that no table has is the path of a file.
pub(crate) fn looks_like_file(name: &str) -> bool {
    name.contains(std::path::MAIN_SEPARATOR) || Format::of_name(name).is_some()
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
    if name == ROW_COLUMN {
        Err(Error::invalid(format!(
            "{ROW_COLUMN} is reserved; choose another column name"
        )))
    } else {
        Ok(())
    }
}

/// A name as a statement may write it: in quotes unless it is one in lower case.
pub(crate) fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.chars().all(plain)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
    {
        return name.to_string();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}
