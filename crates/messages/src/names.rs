//! Names of the only catalog and its first schema, and names as statements write them.

use crate::error::WITHIN;
use crate::keywords::identifier;

/// The only catalog, as `information_schema` and qualified names call it.
pub const CATALOG: &str = "atoll";

/// The schema that statements see without naming one.
pub const SCHEMA: &str = "public";

/// A name as a statement may write it: in [quotes](identifier) where it must be. One of the catalog gets its schema.
pub fn quoted(name: &str) -> String {
    if let Some((schema, base)) = name.split_once(WITHIN) {
        return format!("{}.{}", quoted(schema), quoted(base));
    }
    identifier(name)
}
