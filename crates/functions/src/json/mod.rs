//! JSON: texts that are known to be valid, of the types `json` and `jsonb`.
//!
//! A value of `json` is as it was written, one of `jsonb` in [normal] form: each key once, in PostgreSQL's order,
//! numbers without exponents, one space behind `:` and `,`. Functions take a value apart by cutting its text (`cut`), or
//! walk (`walk`) to the part that they look for.

pub(crate) mod assign;
mod build;
mod change;
mod contain;
mod contained;
pub(crate) mod cut;
pub mod found;
pub(crate) mod get;
mod holds;
pub mod normal;
pub(crate) mod order;
mod parts;
pub mod path;
pub mod populate;
mod pretty;
pub(crate) mod read;
pub mod value;
pub(crate) mod walk;
pub mod wrong;

use crate::own::Own;

pub(crate) use build::json_of;
pub use parts::TABLES;
pub use pretty::IS_JSON;

pub(super) fn all() -> Vec<Own> {
    build::all()
        .into_iter()
        .chain(change::all())
        .chain(contain::all())
        .chain(get::all())
        .chain(order::all())
        .chain(parts::all())
        .chain(path::all())
        .chain(populate::all())
        .chain(pretty::all())
        .collect()
}
