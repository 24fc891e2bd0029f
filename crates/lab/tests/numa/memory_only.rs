//! Nodes that have memory and no cores.

use memory::Arena;
use topology::{Machine, Node};

use crate::place::{alone, fit, machine, with_cores};
use crate::system::{Pages, pages_of, resident};
use crate::threads::{look, workers};

/// The nodes without cores.
fn without_cores(machine: &Machine) -> Vec<&Node> {
    let nodes = machine.nodes().iter();
    let found: Vec<_> = nodes.filter(|node| node.cores.is_empty()).collect();
    if fit("a node without cores", !found.is_empty()) {
        found
    } else {
        Vec::new()
    }
}

#[test]
fn they_are_seen_with_their_memory_and_distances() {
    let _alone = alone();
    let machine = machine();
    for node in without_cores(&machine) {
        assert!(node.memory_bytes > 0);
        assert_eq!(machine.distance(node.index, node.index), 10);
        for other in with_cores(&machine) {
            assert!(machine.distance(other.index, node.index) > 10);
        }
    }
}

#[test]
fn memory_can_be_put_there() {
    let _alone = alone();
    let machine = machine();
    for node in without_cores(&machine) {
        let arena = Arena::new(4 << 20, Some(node.os_index)).unwrap();
        let pages = pages_of(&arena);
        for page in &pages {
            // SAFETY: inside the arena, which is ours alone.
            unsafe { page.cast_mut().write(1) };
        }
        assert_eq!(resident(&pages), [(node.os_index, pages.len())]);
        let moved = Pages::new(16);
        moved.touch();
        moved.migrate(node.os_index).unwrap();
        assert_eq!(moved.resident(), [(node.os_index, 16)]);
    }
}

#[test]
fn no_worker_is_placed_there() {
    let _alone = alone();
    let machine = machine();
    let without: Vec<usize> = without_cores(&machine)
        .iter()
        .map(|node| node.index)
        .collect();
    let workers = workers(&machine, machine.cpus());
    assert_eq!(
        workers.nodes(),
        machine.nodes().len(),
        "layouts have all nodes"
    );
    let seen = look(&workers);
    assert_eq!(seen.len(), machine.cpus());
    assert!(
        seen.values().all(|seen| !without.contains(&seen.node)),
        "{seen:?}"
    );
}
