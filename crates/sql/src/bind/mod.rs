//! What the planner asks of PostgreSQL's meaning: the types of constants in quotes, operators, windows, domains and rows; and
//! tables as `create table` defines them.
//!
//! [`planners`] and [`symbols`] answer the planner's questions about types and operators, [`definition`] makes tables of
//! `create table`; [`calls`] refuses what calls of functions cannot have. [`row_insert`] reads inserts of constant rows, whose
//! [values](row_values) need no plan.
//!
//! Uses `search_path`, `planner` and the layers below them.

pub(crate) mod calls;
mod cells;
pub(crate) mod composites;
mod conditions;
pub(crate) mod definition;
pub(crate) mod domain_casts;
pub(crate) mod left_out;
pub(crate) mod planners;
pub(crate) mod read_values;
pub(crate) mod records;
pub(crate) mod row_insert;
pub(crate) mod row_values;
mod rows;
mod special;
pub(crate) mod symbols;
pub(crate) mod text_operators;
pub(crate) mod typed_values;
mod windows;
