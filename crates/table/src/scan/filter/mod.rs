//! Filters on encoded values.
//!
//! A comparison of whole numbers with constants becomes ranges, tested in the stored width. Any
//! test of one text column is made once per label of its dictionary. Everything else is tested
//! on the decoded values of the rows that are left. Where few rows of a page are left, only these are read.

pub(crate) mod apply;
mod few;
mod gauge;
mod predicate;

pub use gauge::Gauge;
pub use predicate::{Filter, Form, LabelHits, Test};
