//! The logical query: relations, and external sources.

pub(crate) mod external;
pub(crate) mod relation;
