//! The logical query: relations, results of parts of rows, and external sources.

pub(crate) mod external;
pub(crate) mod parts;
pub(crate) mod relation;
