//! Stores as commands use them: their files, and a store that stays open for several statements.

#[cfg(feature = "sql")]
pub mod current;
#[cfg(feature = "sql")]
pub mod database;
pub mod files;
pub mod plain;
#[cfg(feature = "sql")]
pub mod temporary;
