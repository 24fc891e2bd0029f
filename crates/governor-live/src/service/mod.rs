//! Governing as a service: a target with its sensors and its actuator, the loop over all of them, numbers for those who
//! look on, and signals to end.

pub(crate) mod live;
pub(crate) mod metrics;
pub(crate) mod options;
pub(crate) mod signals;
mod unit;
