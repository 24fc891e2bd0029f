//! Stores as commands use them: their files, and a store that stays open for several statements.

pub mod current;
pub mod files;
