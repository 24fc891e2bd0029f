//! The model: types, coordinates, dimensions and schemas. No data yet.

pub(crate) mod chunking;
pub(crate) mod decimal;
pub(crate) mod dimension;
pub(crate) mod metadata;
pub(crate) mod schema;
pub(crate) mod time;
pub(crate) mod types;
