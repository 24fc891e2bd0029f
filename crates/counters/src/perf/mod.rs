//! Events of `perf_event_open(2)`: those of the kernel, and what sysfs says of those of the
//! hardware.

pub(crate) mod event;
pub(crate) mod ring;
pub(crate) mod software;
pub(crate) mod unit;
