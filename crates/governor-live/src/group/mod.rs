//! What is governed: a target, the processes it consists of, and their control group.

pub(crate) mod cgroup;
pub(crate) mod partition;
pub(crate) mod target;
