//! Arrays as tables: a row for each cell, with a column for each dimension and one for each attribute.
//!
//! A [`definition`] has the columns of an array, a [`table`] is it as the planner sees it. What filters say of dimensions becomes a box of cells, and chunks whose
//! statistics rule them out are left out ([`prune`]); no other chunk is read. [`pieces`] cuts what is left, [`columns`]
//! makes Arrow columns of cells. Coordinates are computed, never stored, and only where a
//! query wants them; attributes that it does not want are not read. [`query`] is what AFL computes, as a table, and
//! [`said`] what the files of arrays say of them.

mod columns;
pub(crate) mod definition;
mod pieces;
mod prune;
pub(crate) mod query;
pub(crate) mod said;
pub(crate) mod table;
