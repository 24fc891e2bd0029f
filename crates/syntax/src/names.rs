//! Names of tables and columns as statements write them.

use std::sync::Arc;

use datafusion_common::TableReference;
use datafusion_sql::planner::object_name_to_table_reference;
use ingest::{Compression, Format};
use messages::error::WITHIN;
use messages::{Error, Result};
use sqlparser::ast::{Ident, ObjectName};
use table::{ROW_COLUMN, within};

pub use messages::names::{CATALOG, SCHEMA, quoted};

/// What a path of schemas is set to; none for what it is at first: `"$user", public`.
pub type PathSetting = Option<Arc<[String]>>;

/// What PostgreSQL says of it, until somebody says something else.
pub const PUBLIC: &str = "standard public schema";

/// The schema of what clients of PostgreSQL ask about a database.
pub const PG_CATALOG: &str = "pg_catalog";

/// The schema of what the standard has clients ask.
pub const INFORMATION_SCHEMA: &str = "information_schema";

/// What statements call the schema of their session's temporary tables.
pub const PG_TEMP: &str = "pg_temp";

/// What the rows of an `insert` are called that are planned by themselves, which no statement can name.
pub const INSERTED_ROWS: &str = "\u{2}rows";

/// What the rows of a union are called that is planned by itself, before a number.
pub const UNITED_ROWS: &str = "\u{2}united";

/// What a statement calls a table, view or sequence, in lower case unless quoted: its name alone, or its schema, what
/// [separates](WITHIN) them in the catalog, and the name.
///
/// # Errors
///
/// For names in other databases.
pub fn written(name: &ObjectName) -> Result<String> {
    let reference: TableReference = object_name_to_table_reference(name.clone(), true)?;
    if let Some(catalog) = reference.catalog().filter(|catalog| *catalog != CATALOG) {
        return Err(Error::unsupported(format!(
            "cross-database references are not implemented: {catalog} in {reference}, which is the name of another database than {CATALOG}"
        )));
    }
    Ok(match reference.schema() {
        Some(schema) => within(schema, reference.table()),
        None => reference.table().to_string(),
    })
}

/// The name in the catalog of what has been found, or names its schema: a name without one is in `public`.
///
/// # Errors
///
/// As [`written`].
pub fn table_name(name: &ObjectName) -> Result<String> {
    written(name).map(|written| known(&written))
}

/// The name in the catalog of what is [written](written) so: without a schema it is in `public`.
pub fn known(written: &str) -> String {
    match written.split_once(WITHIN) {
        Some((SCHEMA, name)) => name.to_owned(),
        _ => written.to_owned(),
    }
}

/// The name in the catalog as a part of a statement that is looked up in no [path](crate::search_path).
pub fn exact(name: &str) -> String {
    if name.contains(WITHIN) {
        name.to_owned()
    } else {
        within(SCHEMA, name)
    }
}

/// The name in the catalog of `name` in a schema.
pub fn catalog_name(schema: &str, name: &str) -> String {
    if schema == SCHEMA {
        name.to_owned()
    } else {
        within(schema, name)
    }
}

/// The name in the catalog of a temporary table of the session with this schema.
pub fn temporary(schema: &str, name: &str) -> String {
    within(schema, name)
}

/// The schema of a session whose temporary table has this name in the catalog.
pub fn session_of(name: &str) -> Option<&str> {
    table::schema_of(name).filter(|schema| schema.starts_with("pg_temp_"))
}

/// The schema of what has this name in the catalog.
pub fn schema_of(name: &str) -> &str {
    table::schema_of(name).unwrap_or(SCHEMA)
}

/// The name of a table without its schema.
pub fn base(name: &str) -> &str {
    table::base_of(name)
}

/// What a comment on a constraint is kept under, beside those on keys and indexes, whose names have no such character.
pub fn of_constraint(name: &str) -> String {
    within("", name)
}

/// The constraint that a comment is on which is [kept](of_constraint) under this.
pub fn constraint_of(key: &str) -> Option<&str> {
    key.strip_prefix(WITHIN)
}

/// `names` without those of temporary tables.
pub fn permanent(mut names: Vec<&str>) -> Vec<&str> {
    names.retain(|name| session_of(name).is_none());
    names
}

/// What stands in the place of a name for the schema itself.
pub fn of_schema(schema: &str) -> String {
    within(schema, "")
}

/// Refuses names that a new table must not have.
pub fn check_new(name: &str) -> Result<()> {
    let name = base(name);
    if name.is_empty() || name.len() > 255 || name.chars().any(char::is_control) {
        return Err(Error::coded(
            "42602",
            format!("{name:?} cannot name a table: 1 to 255 bytes without control characters"),
        ));
    }
    if looks_like_file(name) {
        Err(Error::coded(
            "42602",
            format!("{name:?} cannot name a table: in a query it would name a file"),
        ))
    } else {
        Ok(())
    }
}

/// Whether a name that no table has is the path of a file, also of one that is compressed in a way that is not read.
pub fn looks_like_file(name: &str) -> bool {
    let is_packed = || {
        let inner = name.rsplit_once('.').map(|(inner, _)| inner);
        inner.is_some_and(|inner| Format::of_name(inner).is_some())
            && Compression::to_write(name).is_err()
    };
    name.contains(std::path::MAIN_SEPARATOR) || Format::of_name(name).is_some() || is_packed()
}

/// Whether a name stands in single quotes, as that of a file may.
pub fn is_literal(name: &Ident) -> bool {
    name.quote_style == Some('\'')
}

/// A column's name: lower case unless quoted.
pub fn column_name(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// Refuses the name of the hidden column.
pub fn check_column(name: &str) -> Result<()> {
    if name == ROW_COLUMN {
        Err(Error::coded(
            "42701",
            format!("{ROW_COLUMN} is reserved; choose another column name"),
        ))
    } else {
        Ok(())
    }
}
