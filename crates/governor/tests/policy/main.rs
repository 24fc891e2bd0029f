//! The policy: readings in, decisions out.

#[path = "../curves/mod.rs"]
mod curves;
mod follow;
#[path = "../../../placement/tests/machines/mod.rs"]
mod machines;
mod modes;
mod near;
#[path = "../curves/run.rs"]
mod run;
mod sharing;
mod steps;
mod throughput;
mod traces;

use governor::{BUSY, Governor, Measure, Policy, RESIDENCY, Readings};
use placement::CpuSet;
use topology::Machine;

fn machine(spec: &str) -> Machine {
    Machine::parse(spec).unwrap()
}

fn all(machine: &Machine) -> CpuSet {
    let cores = machine.nodes().iter().flat_map(|node| &node.cores);
    cores.flat_map(|core| core.cpus.iter().copied()).collect()
}

fn governor(policy: Policy, machine: &Machine) -> Governor {
    Governor::new(policy, machine, &governor::elastic_net().unwrap()).unwrap()
}

/// So many cpus busy.
fn busy(time: f64, available: &CpuSet, cpus: f64) -> Readings {
    Readings::new(time, available.clone()).with(BUSY, Measure::new(cpus, "cpus", "test"))
}

/// So many bytes on each node.
fn resident(mut readings: Readings, bytes: &[f64]) -> Readings {
    for (node, bytes) in bytes.iter().enumerate() {
        let name = format!("{RESIDENCY}{node}");
        readings.set(&name, Measure::new(*bytes, "bytes", "test"));
    }
    readings
}
