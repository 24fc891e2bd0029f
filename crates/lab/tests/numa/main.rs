//! What a NUMA machine must do for us, checked from inside one: binding, first touch, residency,
//! arenas, workers, placement strategies, processes that are watched, pages that follow cores, offline cores, cpusets, nodes without cores, a single node.
//!
//! The same tests run natively (`cargo test -p lab --test numa`) and on emulated machines
//! (`./test-lab`). A test that this machine cannot run says so, `NOT RUN: ...`; with
//! `ATOLL_ALL_MUST_RUN=1`, as `./test-lab` has it, that is a failure.

mod arena;
mod binding;
mod cpuset;
mod memory_only;
mod migrating;
mod offline;
mod partition;
mod place;
mod single;
mod strategies;
mod system;
mod threads;
mod watching;
