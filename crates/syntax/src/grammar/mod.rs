//! Refuses the parts of statements that the parser accepts and this database does not support.
//!
//! The parser reads the union of many dialects, and the planner silently ignores what it does not know: `tablesample`
//! would return all rows, `insert or replace` add a second row with the same key. So every part of a statement is
//! checked before it is planned: it is either supported or an error that names it. The parser's structs are taken
//! apart without `..`, so that a release that adds a part to one does not compile until the part is handled here.

mod catalog;
mod checker;
mod expr;
mod locks;
mod query;
mod refuse;
pub mod sets;
mod statement;

pub use checker::check;
pub use refuse::refused;
pub(crate) use refuse::{none_of, refused_for};
pub use statement::assigned;
pub(crate) use statement::{foreign_key, primary_key_parts, unique_parts};
