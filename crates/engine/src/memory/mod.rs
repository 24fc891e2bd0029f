//! Memory of a query: what it holds of the limit, and the file for what does not fit.

pub(crate) mod reservation;
pub(crate) mod spill;
