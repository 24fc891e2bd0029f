//! Stores as commands use them: their files, and stores that stay open for several statements.

pub mod current;
pub mod files;
