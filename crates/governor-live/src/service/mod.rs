//! Governing as a service: targets with their sensors and actuators, the loop over all of them, metrics, and signals.

pub(crate) mod live;
pub(crate) mod metrics;
pub(crate) mod options;
pub(crate) mod signals;
mod unit;
