//! Stores as commands meet them: files with a name, and what is open for several statements.

pub mod current;
pub mod files;
