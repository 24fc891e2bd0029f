//! The statements, a file for each kind, and the session that runs them one after the other.

pub(crate) mod copy;
pub(crate) mod ddl;
pub(crate) mod dml;
pub(crate) mod explain;
pub(crate) mod session;
pub(crate) mod write;
