//! Names of tables, views and sequences: those of a schema begin with its name.
//!
//! What is in the schema that statements see without naming one, `public`, is called by its name alone, as everything is in
//! stores that were made before there were schemas.

use std::borrow::Cow;

/// What stands in the catalog between the name of a schema and a name in it. No name that a statement writes has it.
pub const WITHIN: char = '\u{1}';

/// The name in the catalog of `name` in `schema`.
pub fn within(schema: &str, name: &str) -> String {
    format!("{schema}{WITHIN}{name}")
}

/// The schema of what has this name in the catalog, if it is in another than `public`.
pub fn schema_of(name: &str) -> Option<&str> {
    name.split_once(WITHIN).map(|(schema, _)| schema)
}

/// The name as people see it: after its schema and a point, if it is in another than `public`. A temporary table is called
/// as its session calls it.
pub fn titled(name: &str) -> Cow<'_, str> {
    match name.split_once(WITHIN) {
        None => Cow::Borrowed(name),
        Some((schema, base)) if schema.starts_with("pg_temp_") => Cow::Borrowed(base),
        Some((schema, base)) => Cow::Owned(format!("{schema}.{base}")),
    }
}

/// The name without the schema.
pub fn base_of(name: &str) -> &str {
    name.split_once(WITHIN).map_or(name, |(_, base)| base)
}
