//! From hwloc's object tree to a [`Machine`](crate::Machine).
