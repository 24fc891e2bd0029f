//! From the text of statements to syntax trees: PostgreSQL's dialect, read, checked and rewritten.
//!
//! [`parse`] splits a text, checks its [depth], rewrites tokens and calls the parser; [`rewrite`] changes the tree so that
//! the planner understands it as PostgreSQL would, and [`grammar`] refuses the parts that would be ignored. [`readers`] finds
//! calls such as `read_csv(...)`, [`graphs`] those such as `bfs(...)`, [`operators`] those of AFL. [`parameters`] and
//! [`transfer`] are for clients of a server: parameters that come as texts, and `copy` through the connection. [`deparse`]
//! and [`expression`] write expressions as PostgreSQL shows them, and read those that the catalog keeps.
//!
//! Nothing here knows a plan, a snapshot or a session. Statements are trees of the crate `sqlparser` so far, whose types
//! do not tell a tree that was rewritten from one that was not.
//!
//! # Example
//!
//! ```
//! # fn main() -> messages::Result<()> {
//! let parsed = syntax::parse::parse("select 1; create table t (n int)")?;
//! assert_eq!(parsed.len(), 2);
//! assert!(syntax::parse::parse("select 1 +").is_err());
//! # Ok(())
//! # }
//! ```

pub mod absent;
pub mod arrays;
pub mod asked;
pub mod authorization;
pub mod begin;
pub mod call;
pub mod casts_apart;
pub mod changes;
mod column_options;
pub mod columns;
pub mod constant;
mod constraint_comments;
pub mod constraints;
pub mod copy;
pub mod copy_options;
pub mod ctes;
pub mod deparse;
pub mod depth;
pub mod dialect;
mod distinct;
pub mod domains;
mod encodings;
mod explained;
pub mod expression;
mod extra;
pub mod files;
pub mod fixed;
pub mod flow;
mod fused;
pub mod grammar;
pub mod grants;
pub mod graphs;
pub mod identity;
pub mod kept;
pub mod key_query;
pub mod key_text;
pub mod lengths;
pub mod like;
pub mod limit_columns;
pub mod locks;
pub mod maintenance;
pub mod materialized;
pub mod mentioned;
pub mod mentioned_types;
pub mod merge;
pub mod merge_returning;
pub mod missing;
pub mod modes;
pub mod names;
mod not_there;
pub mod operators;
pub mod outer_names;
mod outside;
pub mod overriding;
pub mod parameters;
pub mod parse;
pub mod plain;
pub mod prepared;
pub mod quoted;
pub mod readers;
pub mod renamed_columns;
pub mod returning;
pub mod rewrite;
mod rewritten;
pub mod role_options;
pub mod roles;
pub mod row_order;
mod schema_elements;
pub mod schemas;
pub mod script;
pub mod sequences;
pub mod shapes;
pub mod sort_names;
mod statement;
pub mod steps;
pub mod summarize;
pub mod system;
mod table_as;
pub mod table_options;
pub mod transfer;
pub mod types;
pub mod verb;
mod view_column;
pub mod views;
pub mod walk;
pub mod ways;
mod words;
