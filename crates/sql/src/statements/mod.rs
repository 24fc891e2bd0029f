//! Sessions, and what each kind of statement does.
//!
//! A [`session`] parses a text and hands each statement to [`dispatch`]. Queries go to
//! [`run::query`](crate::run::query); statements that write do so through [`write`].
//!
//! The highest layer: uses all others.

mod copy;
mod ddl;
mod dispatch;
mod dml;
mod explain;
pub(crate) mod session;
mod show;
mod write;
