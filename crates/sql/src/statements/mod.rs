//! Sessions, and what each kind of statement does.
//!
//! A [`session`] parses a text and hands each statement to [`dispatch`]. Queries go to
//! [`run::query`](crate::run::query); statements that write do so through [`write`]. Where a statement reads and writes
//! is its [`scope`]: a transaction of its own, or the open [`transaction`] of its session.
//!
//! The highest layer: uses all others.

mod access;
mod alter;
mod arrays;
mod asked;
mod assigned;
mod beside;
mod cascade;
mod claims;
mod comments;
mod composites;
mod conflict;
mod constant_rows;
mod constrain;
mod control;
mod copied_types;
mod copy;
mod ddl;
mod default;
mod deferred;
mod describe;
pub(crate) mod described;
mod dispatch;
mod dml;
mod domains;
mod drop_columns;
mod elements;
mod entered;
mod existing;
mod explain;
mod extended;
mod gathered;
mod gathered_columns;
mod gathered_defaults;
mod gathered_references;
mod gathering;
mod grants;
mod identity;
mod indexes;
mod kept_texts;
mod keyed;
mod larger;
mod like;
mod locking;
mod looked_up;
mod lookup;
mod maintenance;
mod materialized;
mod merge;
mod merge_returning;
mod owned;
mod owner;
mod parameter_types;
mod plan_json;
mod prepare;
mod rebuild;
mod references;
mod referred;
mod relation_kinds;
mod relations;
mod remove;
mod renames;
mod roles;
mod schemas;
mod scope;
mod seen;
mod sequences;
pub(crate) mod session;
mod show;
mod signals;
mod steps;
mod summarize;
mod targets;
mod temporary;
mod texts;
mod transaction;
mod types;
mod using;
mod views;
mod ways;
mod write;
mod written;
