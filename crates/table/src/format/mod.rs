//! The bytes of a table, as docs/reference/file-format.md describes them: keys and records of the catalog, row ids,
//! and pages. Nothing here knows what a table does with them.

pub(crate) mod block;
pub(crate) mod comments;
pub(crate) mod definition;
pub(crate) mod dictionary;
pub(crate) mod key;
pub(crate) mod keys;
pub(crate) mod named_type;
pub(crate) mod nested;
pub(crate) mod page;
pub(crate) mod record;
pub(crate) mod rights;
pub(crate) mod row_id;
pub(crate) mod run;
pub(crate) mod sequence;
pub(crate) mod tail;
