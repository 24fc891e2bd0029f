//! What is asked for, and what there is: names, patterns, tables, columns, keys.

use adbc_core::error::Result;

use crate::catalog::pattern;
use crate::error::{missing, unknown};

/// The one catalog.
pub(crate) const CATALOG: &str = "atoll";

/// The one schema of it that has tables.
pub(crate) const SCHEMA: &str = "public";

/// The kinds of tables.
pub(crate) const TABLE_TYPES: [&str; 3] = ["TABLE", "VIEW", "MATERIALIZED VIEW"];

/// A name within double quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Checks that a catalog and a schema are those that there are.
///
/// # Errors
/// If they are not.
pub(crate) fn check_place(catalog: Option<&str>, schema: Option<&str>) -> Result<()> {
    let is =
        |given: Option<&str>, own: &str| given.is_none_or(|given| given == own || given.is_empty());
    if !is(catalog, CATALOG) {
        let catalog = catalog.unwrap_or_default();
        return Err(unknown(format!(
            "there is no catalog {catalog:?}: there is one, {CATALOG}"
        )));
    }
    if !is(schema, SCHEMA) {
        let schema = schema.unwrap_or_default();
        return Err(missing(format!(
            "there is no schema {schema:?} of tables: there is one, {SCHEMA}"
        )));
    }
    Ok(())
}

/// What is asked for: patterns of `like`, each of which may be left away.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filter<'f> {
    pub(crate) catalog: Option<&'f str>,
    pub(crate) schema: Option<&'f str>,
    pub(crate) table: Option<&'f str>,
    /// Kinds of tables.
    pub(crate) types: Option<&'f [&'f str]>,
    pub(crate) column: Option<&'f str>,
}

impl Filter<'_> {
    pub(crate) fn has_catalog(&self) -> bool {
        matches(self.catalog, CATALOG)
    }

    pub(crate) fn has_schema(&self) -> bool {
        matches(self.schema, SCHEMA)
    }

    pub(crate) fn has_table(&self, name: &str) -> bool {
        matches(self.table, name)
    }

    pub(super) fn has_type(&self, kind: &str) -> bool {
        self.types
            .is_none_or(|types| types.iter().any(|of| of.eq_ignore_ascii_case(kind)))
    }

    pub(super) fn has_column(&self, name: &str) -> bool {
        matches(self.column, name)
    }
}

fn matches(pattern: Option<&str>, name: &str) -> bool {
    pattern.is_none_or(|pattern| pattern::matches(pattern, name))
}

/// A table, a view or a materialized view.
#[derive(Debug, Default)]
pub(super) struct Relation {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) columns: Vec<Column>,
    pub(super) constraints: Vec<Constraint>,
}

/// A column.
#[derive(Debug, Default)]
pub(super) struct Column {
    pub(super) name: String,
    /// Counted from 1.
    pub(super) position: i32,
    pub(super) remarks: Option<String>,
    pub(super) type_name: Option<String>,
    pub(super) size: Option<i32>,
    pub(super) digits: Option<i16>,
    pub(super) radix: Option<i16>,
    pub(super) nullable: Option<bool>,
    pub(super) default: Option<String>,
    pub(super) identity: Option<bool>,
    pub(super) generated: Option<bool>,
}

/// A key.
#[derive(Debug, Default)]
pub(super) struct Constraint {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) columns: Vec<String>,
    /// The table that a foreign key refers to, and its columns.
    pub(super) parent: Option<(String, Vec<String>)>,
}
