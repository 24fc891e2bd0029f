//! Memory of a query: reservations from the memory limit, and the spill file.

pub(crate) mod reservation;
pub(crate) mod spill;
