//! The logical query: relations, scans of tables, results of parts of rows, and external sources,
//! functions of rows.

pub(crate) mod aggregate;
pub(crate) mod aggregate_call;
pub(crate) mod external;
pub(crate) mod opening;
pub(crate) mod parts;
pub(crate) mod relation;
pub(crate) mod row_function;
pub(crate) mod samples;
pub(crate) mod scan;
pub(crate) mod window;
pub(crate) mod working;
