//! The operators of a pipeline and what they keep: selections and readers of columns, join tables, aggregates, orders
//! and limits. They know programs and vectors, but neither stages nor workers.

pub(crate) mod aggregate;
pub(crate) mod external_scan;
pub(crate) mod external_sort;
pub(crate) mod join_table;
pub(crate) mod limit;
pub(crate) mod meter;
pub(crate) mod pipeline;
pub(crate) mod sort;
pub(crate) mod source;
pub(crate) mod top_k;
