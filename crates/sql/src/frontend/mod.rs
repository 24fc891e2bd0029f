//! From text to a statement that DataFusion plans: splitting and parsing, PostgreSQL's dialect, what of the grammar is
//! refused, and the rewriting of what DataFusion knows by another name.
//!
//! Uses [`functions`](crate::functions) and [`resources`](crate::resources); nothing here knows a plan or a table.

pub(crate) mod dialect;
pub(crate) mod distinct;
pub(crate) mod file_names;
pub(crate) mod grammar;
pub(crate) mod names;
pub(crate) mod parse;
pub(crate) mod plain;
pub(crate) mod rewrite;
