//! Maps of SQL, as DuckDB writes them: keys of one type, each once and none NULL, with values of one type, which may be NULL.
//!
//! They are maps of Arrow, in the form of [`table::map_type`]. The order of the entries is that in which they were given, and
//! says nothing: maps are equal that have equal values under the same keys.

mod access;
mod layout;
mod make;
mod read;

use crate::own::Own;

pub(crate) use access::{equal, map_and_key, value};
pub(crate) use layout::of;
pub(crate) use read::read;

pub(super) fn all() -> Vec<Own> {
    access::all().into_iter().chain(make::all()).collect()
}
