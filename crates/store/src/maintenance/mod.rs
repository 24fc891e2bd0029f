//! Looking into a store: verifying it, where its pages are, figures; and giving up the damaged end
//! of a log.

pub(crate) mod check;
pub(crate) mod place;
pub(crate) mod repair;
pub(crate) mod statistics;
pub(crate) mod vacuum;
