//! What queries of the tests run with.

use std::sync::Arc;

use engine::Runtime;
use workers::{Layout, Workers};

/// `threads` workers, laid out as on `machine` (`live` is the one at hand), with a budget of 1 GiB.
pub fn on(machine: &str, threads: usize) -> Runtime {
    let live = topology::Machine::live().unwrap();
    let machine = topology::Machine::parse(machine).unwrap();
    let workers = Workers::new(Layout::of(&machine, &live, threads, false)).unwrap();
    Runtime {
        nearness: workers.layout().nearness().clone(),
        traffic: Arc::new(memory::Traffic::new(workers.nodes())),
        budget: memory::Budget::new(1 << 30),
        workers,
        stop: engine::Stop::default(),
    }
}
