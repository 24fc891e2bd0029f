//! What people read: types, columns, plans and errors in the words of SQL instead of DataFusion's.
//!
//! Uses `error` only.

mod calls;
mod codes;
mod convert;
pub(crate) mod hidden;
pub(crate) mod keywords;
pub(crate) mod nearest;
pub(crate) mod numbers;
mod overflow;
pub(crate) mod plain;
mod planner_words;
pub(crate) mod tags;
pub(crate) mod translate;
pub(crate) mod types;
