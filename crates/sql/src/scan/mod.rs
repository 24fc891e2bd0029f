//! What plans read: tables and arrays of the store, files, graphs, and the views of `information_schema`.
//!
//! A [`provider`] is a table of the store as the planner sees it; a [`view`] is a query in the place of one, and [`rows`] are
//! made by code outside the engine. Filters become tests of stored columns in [`predicate`] and [`like`], those that name a
//! key choose its rows in [`point`], and what of files and arrays need not be read is found in [`prune`].
//!
//! Uses `names` and the layers below it.

pub(crate) mod arrays;
pub(crate) mod files;
pub(crate) mod graphs;
mod like;
pub(crate) mod numbers;
mod point;
mod predicate;
pub(crate) mod provider;
mod prune;
mod ranges;
pub(crate) mod rows;
pub(crate) mod series;
pub(crate) mod view;
mod wide;
pub(crate) mod written_rows;
