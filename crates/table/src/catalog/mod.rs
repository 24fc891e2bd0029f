//! What a store knows of its tables: their records, decoded, and what follows from these without
//! reading a page.

mod body;
pub(crate) mod extremes;
pub(crate) mod parts;
pub(crate) mod rights;
pub(crate) mod row_index;
pub(crate) mod sample;
pub(crate) mod setting;
pub(crate) mod space;
pub(crate) mod statistics;
pub(crate) mod table;
pub(crate) mod tables;
mod thin;
