//! Files as tables: `select ... from 'file.parquet'`, `from read_csv('file', ...)`, and the source of `copy ... from`.
//!
//! The crate `ingest` knows what a file holds and how to read it. Here it becomes a [`table`] and, from there, a source
//! of the engine ([`external`]).

pub(crate) mod external;
mod prune;
mod reader;
pub(crate) mod table;
