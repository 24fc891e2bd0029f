//! What a query asks for: relations, and rows that somebody outside the engine decodes.

pub(crate) mod external;
pub(crate) mod relation;
