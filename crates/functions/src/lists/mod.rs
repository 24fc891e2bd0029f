//! Arrays of SQL: lists of Arrow, with PostgreSQL's meaning.
//!
//! Positions count from 1, and what is outside is NULL. A NULL item is equal to a NULL item and greater than all others, as
//! PostgreSQL compares arrays. An array of two dimensions is a list of lists: its dimensions belong to its type.

mod access;
mod assign;
mod change;
pub(crate) mod compare;
mod dimensions;
mod expanded;
mod identifiers;
mod make;
pub mod names;
pub mod ordered;
mod quantified;
pub(crate) mod read;
pub(super) mod records;
mod search;
mod series;
pub(crate) mod splits;
mod texts;
pub mod types;
pub(crate) mod write;

use crate::own::Own;

pub use compare::is_plain;
pub(crate) use quantified::quantified;
pub use quantified::{called, is_quantified};

pub(super) fn all() -> Vec<Own> {
    access::all()
        .into_iter()
        .chain(assign::all())
        .chain(change::all())
        .chain(dimensions::all())
        .chain(expanded::all())
        .chain(identifiers::all())
        .chain(make::all())
        .chain(ordered::all())
        .chain(search::all())
        .chain(series::all())
        .chain(splits::all())
        .chain(texts::all())
        .collect()
}
