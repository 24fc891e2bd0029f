//! Threads run where they are bound, and memory lies where it is bound or first touched.

use crate::place::{alone, cpus, fit, machine, several_nodes, with_cores};
use crate::system::{Pages, here, migrations, on};

const PAGES: usize = 256;

#[test]
fn a_bound_thread_runs_on_its_cpu_and_node() {
    let _alone = alone();
    let machine = machine();
    for node in with_cores(&machine) {
        for cpu in cpus(node) {
            let seen = on(&[cpu], here);
            assert_eq!(seen, (cpu, node.os_index));
            assert_eq!(machine.node_of_cpu(cpu), Some(node.index));
        }
    }
}

#[test]
fn bound_memory_lies_on_its_node_whoever_touches_it() {
    let _alone = alone();
    let machine = machine();
    if !several_nodes(&machine) {
        return;
    }
    for node in machine.nodes() {
        for toucher in with_cores(&machine) {
            let pages = Pages::new(PAGES);
            pages.policy(libc::MPOL_BIND, &[node.os_index]).unwrap();
            on(&cpus(toucher), || pages.touch());
            assert_eq!(pages.resident(), [(node.os_index, PAGES)]);
        }
    }
}

#[test]
fn unbound_memory_lies_where_it_was_first_touched() {
    let _alone = alone();
    let machine = machine();
    for node in with_cores(&machine) {
        let pages = Pages::new(PAGES);
        on(&cpus(node), || pages.touch());
        assert_eq!(pages.resident(), [(node.os_index, PAGES)]);
        // Being used from elsewhere does not move it.
        for other in with_cores(&machine) {
            on(&cpus(other), || pages.touch());
        }
        assert_eq!(pages.resident(), [(node.os_index, PAGES)]);
    }
}

#[test]
fn interleaved_memory_is_even() {
    let _alone = alone();
    let machine = machine();
    if !several_nodes(&machine) {
        return;
    }
    let nodes: Vec<u32> = machine.nodes().iter().map(|node| node.os_index).collect();
    let pages = Pages::new(PAGES * nodes.len());
    pages.policy(libc::MPOL_INTERLEAVE, &nodes).unwrap();
    pages.touch();
    let expected: Vec<_> = nodes.iter().map(|node| (*node, PAGES)).collect();
    assert_eq!(pages.resident(), expected);
}

#[test]
fn residency_and_numa_maps_agree_before_and_after_a_move() {
    let _alone = alone();
    let machine = machine();
    if !several_nodes(&machine) {
        return;
    }
    let nodes = with_cores(&machine);
    let (from, to) = (nodes[0].os_index, nodes[nodes.len() - 1].os_index);
    let pages = Pages::new(PAGES);
    // A policy of its own keeps the mapping from being merged with a neighbour.
    pages.policy(libc::MPOL_BIND, &[from, to]).unwrap();
    on(&cpus(nodes[0]), || pages.touch());
    let start = pages.addresses().next().unwrap().addr() as u64;
    let mapped = || {
        let mappings = memory::numa_maps(std::process::id()).unwrap();
        let ours = mappings
            .into_iter()
            .find(|mapping| mapping.address == start);
        let pages = ours.expect("the mapping is listed").pages;
        pages
            .into_iter()
            .map(|(node, pages)| (node, pages as usize))
            .collect::<Vec<_>>()
    };
    assert_eq!(pages.resident(), [(from, PAGES)]);
    assert_eq!(mapped(), pages.resident());
    pages.migrate(to).unwrap();
    assert_eq!(pages.resident(), [(to, PAGES)]);
    assert_eq!(mapped(), pages.resident());
}

#[test]
fn a_bound_thread_is_never_migrated() {
    let _alone = alone();
    let machine = machine();
    let cpus = cpus(with_cores(&machine)[0]);
    if !fit("a kernel that counts migrations", migrations().is_some()) {
        return;
    }
    let moved = on(&cpus[..1], || {
        let before = migrations().unwrap();
        for _ in 0..50 {
            std::thread::yield_now();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        migrations().unwrap() - before
    });
    assert_eq!(moved, 0);
}
