//! Rewrites of statements before they are planned.
//!
//! Numbers and `table t` are rewritten as tokens ([`numbers`](mod@numbers), [`tokens`], [`tables`]), the rest in the [`tree`], in this order: clauses that say the
//! same as others ([`shape`]), names of output columns ([`columns`]), and calls and operators that stand for others
//! ([`calls`]). Names come before calls because a column is named after what the statement wrote, and marks of [`conditions`] after
//! them because calls become conditions.

mod as_of;
mod assignments;
mod bare_select;
mod calls;
mod catalog;
mod columns;
mod comparisons;
mod composed;
mod conditions;
mod escapes;
mod exact;
mod expanded;
mod fetched;
mod folders;
mod fractions;
mod framed;
mod grouped;
mod grouping;
mod hypothetical;
mod introspection;
mod joined;
mod leftmost;
mod locks;
mod named;
mod names;
mod not_finite;
mod numbers;
mod objects;
mod operators;
mod parts;
mod precision;
mod qualified;
mod queried;
mod row_sets;
mod rows;
mod samples;
mod series;
mod sets;
mod shape;
mod similar;
mod special;
mod subscripts;
mod tables;
mod tokens;
mod tree;

pub(crate) use as_of::as_of_joins;
pub(crate) use bare_select::bare_select;
pub use calls::names;
pub(crate) use catalog::is_of_bytes;
pub use conditions::{clause, mark as mark_condition};
pub(crate) use fetched::fetched;
pub(crate) use framed::framed;
pub(crate) use grouped::grouped;
pub(crate) use joined::using_alias;
pub use joined::{alias_of, constraint, marked};
pub(crate) use locks::locks;
pub(crate) use names::{insert_alias, key_columns};
pub(crate) use numbers::numbers;
pub(crate) use parts::all_parts;
pub(crate) use subscripts::subscripts;
pub(crate) use tables::tables;
pub(crate) use tokens::{
    abort, array_types, continued, end, explained, laterals, operators, questions, quotes,
    rows_from, structs, substrings, unnest, without_materialized,
};
pub(crate) use tree::query;
pub use tree::statement;
