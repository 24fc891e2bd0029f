//! What is governed: a target, its processes, and their control group.

pub(crate) mod cgroup;
pub(crate) mod named;
pub(crate) mod partition;
pub(crate) mod target;
