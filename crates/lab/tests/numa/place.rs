//! The machine we are on, and whether a test can run here.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use topology::{Machine, Node};

static ALONE: Mutex<()> = Mutex::new(());

/// Keeps other tests from running: cpus that come and go, and memory that fills up, are seen by
/// all.
pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The example that other processes run: `cargo test` builds it beside the tests, in target/PROFILE/examples.
pub fn probe() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own.ancestors().nth(2).unwrap().join("examples/probe");
    assert!(path.is_file(), "cargo build -p lab --examples");
    path
}

/// The machine, as this process may use it.
pub fn machine() -> Machine {
    Machine::live().unwrap()
}

/// Nodes that have cores.
pub fn with_cores(machine: &Machine) -> Vec<&Node> {
    let nodes = machine.nodes().iter();
    nodes.filter(|node| !node.cores.is_empty()).collect()
}

/// The operating system's numbers of a node's cpus.
pub fn cpus(node: &Node) -> Vec<u32> {
    let cores = node.cores.iter();
    cores.flat_map(|core| core.cpus.iter().copied()).collect()
}

/// Whether the machine is fit for a test. Where it is not, the test is said not to have run.
///
/// # Panics
///
/// Where all tests must run.
pub fn fit(needed: &str, fit: bool) -> bool {
    if !fit {
        notrun::not_run(format!("needs {needed}"));
    }
    fit
}

/// Whether there are several nodes with cores.
pub fn several_nodes(machine: &Machine) -> bool {
    fit("several nodes with cores", with_cores(machine).len() > 1)
}
