//! What plans read: tables and arrays of the store, files, graphs, and the views of `information_schema`.
//!
//! A [`provider`] is a table as the planner sees it, [`exec`] its scan as an operator of DataFusion. Filters become
//! tests of stored columns in [`predicate`] and [`like`], and those that name a key choose its rows in [`point`].
//!
//! Uses `names` and the layers below it.

pub(crate) mod arrays;
pub(crate) mod catalog;
pub(crate) mod context;
mod exec;
pub(crate) mod files;
pub(crate) mod graphs;
pub(crate) mod information;
mod like;
pub(crate) mod numbers;
mod point;
mod predicate;
pub(crate) mod provider;
mod ranges;
pub(crate) mod read_once;
mod runs;
mod wide;
pub(crate) mod written_rows;
