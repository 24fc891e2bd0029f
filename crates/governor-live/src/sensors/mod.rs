//! The sensors, which are read at each check. One that is missing says why.

pub(crate) mod energy;
mod instructions;
pub(crate) mod memory;
pub(crate) mod pressure;
mod published;
pub(crate) mod throughput;
pub(crate) mod traffic;
pub(crate) mod waiting;
