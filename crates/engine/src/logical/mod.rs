//! The logical query: relations, and external sources.

pub(crate) mod external;
pub(crate) mod relation;
pub(crate) mod row_order;
