//! The logical query: relations, and external sources.

pub(crate) mod aggregate_call;
pub(crate) mod external;
pub(crate) mod order;
pub(crate) mod relation;
