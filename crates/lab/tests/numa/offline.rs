//! Cores that are switched off are not used.

use std::fs;
use std::path::PathBuf;

use workers::{Layout, Workers};

use crate::place::{alone, cpus, fit, machine};
use crate::threads::{look, workers};

/// A cpu that is switched off until this is dropped.
struct Off(PathBuf);

impl Off {
    fn new(cpu: u32) -> std::io::Result<Off> {
        let switch = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
        fs::write(&switch, "0")?;
        Ok(Off(switch))
    }
}

impl Drop for Off {
    fn drop(&mut self) {
        fs::write(&self.0, "1").expect("the cpu can be switched on again");
    }
}

/// Cores are switched off only where nobody else is disturbed by it.
fn may_switch() -> bool {
    let own = std::env::var_os(emulator::MACHINE_VARIABLE).is_some();
    fit(
        "a machine of our own (emulated), whose cores can be switched off",
        own,
    )
}

#[test]
fn workers_keep_off_a_core_that_is_off() {
    let _alone = alone();
    let whole = machine();
    if !may_switch() {
        return;
    }
    let node = whole.nodes().iter().rfind(|node| node.cpus() > 1).unwrap();
    let gone = *cpus(node).last().unwrap();
    let off = Off::new(gone).unwrap();
    let smaller = machine();
    assert_eq!(smaller.cpus(), whole.cpus() - 1);
    assert_eq!(smaller.node_of_cpu(gone), None);
    assert_eq!(smaller.nodes()[node.index].cpus(), node.cpus() - 1);
    let seen = look(&workers(&smaller, whole.cpus()));
    assert!(seen.values().all(|seen| seen.cpu != gone), "{seen:?}");
    drop(off);
    assert_eq!(machine().cpus(), whole.cpus());
}

#[test]
fn a_layout_made_before_the_core_went_off_still_works_and_says_so() {
    let _alone = alone();
    let whole = machine();
    if !may_switch() {
        return;
    }
    let node = whole.nodes().iter().rfind(|node| node.cpus() > 1).unwrap();
    let gone = *cpus(node).last().unwrap();
    let layout = Layout::of(&whole, &whole, whole.cpus(), true);
    let _off = Off::new(gone).unwrap();
    let workers = Workers::new(layout).unwrap();
    assert_eq!(workers.notes().len(), 1, "{:?}", workers.notes());
    assert!(workers.notes()[0].contains(&format!("cpu {gone}")));
    let seen = look(&workers);
    assert_eq!(seen.len(), whole.cpus(), "all workers work");
}

#[test]
fn a_whole_node_without_its_cores_is_memory_only() {
    let _alone = alone();
    let whole = machine();
    if !may_switch() || !crate::place::several_nodes(&whole) {
        return;
    }
    let node = whole.nodes().iter().rfind(|node| node.cpus() > 0).unwrap();
    let _off: Vec<Off> = cpus(node)
        .into_iter()
        .map(|cpu| Off::new(cpu).unwrap())
        .collect();
    let smaller = machine();
    assert_eq!(
        smaller.nodes().len(),
        whole.nodes().len(),
        "its memory is still there"
    );
    assert!(smaller.nodes()[node.index].cores.is_empty());
    let seen = look(&workers(&smaller, whole.cpus()));
    assert!(
        seen.values().all(|seen| seen.os_node != node.os_index),
        "{seen:?}"
    );
}
