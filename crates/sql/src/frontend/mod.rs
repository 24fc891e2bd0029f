//! From the text of a statement to a syntax tree that the planner understands as PostgreSQL would.
//!
//! [`parse`] splits the text, checks its depth, rewrites tokens and calls the parser; [`rewrite`] changes the tree and
//! [`grammar`] refuses the parts that would be ignored. [`planners`] and [`symbols`] answer the planner's questions
//! about types and operators, [`definition`] makes tables of `create table` and its [`constraints`], [`readers`] finds calls such as `read_csv(...)`, [`graphs`]
//! those such as `bfs(...)`, [`operators`] those of AFL. [`parameters`] and [`transfer`] are for clients of a server: parameters that come as texts, and
//! `copy` through the connection.
//!
//! Uses `functions`, `resources` and the layers below them.

pub(crate) mod absent;
pub(crate) mod arrays;
pub(crate) mod asked;
pub(crate) mod authorization;
pub(crate) mod begin;
pub(crate) mod call;
pub(crate) mod casts_apart;
pub(crate) mod cells;
pub(crate) mod changes;
mod column_options;
pub(crate) mod columns;
pub(crate) mod composites;
mod conditions;
pub(crate) mod constant;
mod constraint_comments;
pub(crate) mod constraints;
pub(crate) mod copy;
pub(crate) mod copy_options;
pub(crate) mod ctes;
pub(crate) mod definition;
pub(crate) mod deparse;
pub(crate) mod dialect;
mod distinct;
pub(crate) mod domain_casts;
pub(crate) mod domains;
mod encodings;
mod explained;
pub(crate) mod expression;
mod extra;
pub(crate) mod files;
pub(crate) mod fixed;
pub(crate) mod flow;
mod fused;
pub(crate) mod grammar;
pub(crate) mod grants;
pub(crate) mod graphs;
pub(crate) mod identity;
pub(crate) mod kept;
pub(crate) mod key_query;
pub(crate) mod key_text;
pub(crate) mod left_out;
pub(crate) mod lengths;
pub(crate) mod like;
pub(crate) mod limit_columns;
pub(crate) mod locks;
pub(crate) mod maintenance;
pub(crate) mod materialized;
pub(crate) mod mentioned;
pub(crate) mod mentioned_types;
pub(crate) mod merge;
pub(crate) mod merge_returning;
pub(crate) mod missing;
mod not_there;
pub(crate) mod operators;
pub(crate) mod outer_names;
pub(crate) mod outside;
pub(crate) mod overriding;
pub(crate) mod parameters;
pub(crate) mod parse;
pub(crate) mod plain;
pub(crate) mod planners;
pub(crate) mod prepared;
pub(crate) mod quoted;
pub(crate) mod read_values;
pub(crate) mod readers;
pub(crate) mod records;
pub(crate) mod renamed_columns;
pub(crate) mod returning;
pub(crate) mod rewrite;
mod rewritten;
pub(crate) mod role_options;
pub(crate) mod roles;
pub(crate) mod row_insert;
pub(crate) mod row_order;
pub(crate) mod row_values;
mod rows;
mod schema_elements;
pub(crate) mod schemas;
pub mod script;
pub(crate) mod sequences;
pub(crate) mod shapes;
pub(crate) mod sort_names;
mod special;
pub(crate) mod steps;
pub(crate) mod summarize;
pub(crate) mod symbols;
mod table_as;
pub(crate) mod table_options;
pub(crate) mod text_operators;
pub(crate) mod transfer;
pub(crate) mod typed_values;
pub(crate) mod types;
pub(crate) mod verb;
mod view_column;
pub(crate) mod views;
pub(crate) mod walk;
pub(crate) mod ways;
mod windows;
mod words;
