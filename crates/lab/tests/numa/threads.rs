//! Workers run where their layout says, and what they touch first lies on their node.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Barrier, Mutex};

use topology::Machine;
use workers::{Layout, Workers};

use crate::place::{alone, cpus, machine, several_nodes, with_cores};
use crate::system::{Pages, here, migrations};

/// What a worker sees of itself.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub node: usize,
    pub cpu: u32,
    pub os_node: u32,
    pub migrations: Option<u64>,
}

/// Runs something on every worker at once.
pub fn on_each<T: Send + 'static>(
    workers: &Workers,
    work: impl Fn() -> T + Send + Sync + 'static,
) -> BTreeMap<usize, T> {
    let all = Arc::new(Barrier::new(workers.threads()));
    let work = Arc::new(work);
    let results = Arc::new(Mutex::new(BTreeMap::new()));
    let tasks: Vec<_> = (0..workers.threads())
        .map(|_| {
            let (all, work, results) = (all.clone(), work.clone(), results.clone());
            workers.spawn(async move {
                // Each worker waits here with one task until all have one.
                all.wait();
                let worker = workers::here().expect("tasks run on workers").worker;
                let result = work();
                results.lock().unwrap().insert(worker, result);
                all.wait();
            })
        })
        .collect();
    workers.block_on(async move {
        for task in tasks {
            task.await.unwrap();
        }
    });
    Arc::into_inner(results).unwrap().into_inner().unwrap()
}

pub fn look(workers: &Workers) -> BTreeMap<usize, Seen> {
    on_each(workers, || {
        let (cpu, os_node) = here();
        let node = workers::here().unwrap().node;
        Seen {
            node,
            cpu,
            os_node,
            migrations: migrations(),
        }
    })
}

/// Workers of a layout over the whole live machine.
pub fn workers(machine: &Machine, threads: usize) -> Arc<Workers> {
    let workers = Workers::new(Layout::of(machine, machine, threads, true)).unwrap();
    assert_eq!(workers.notes(), [] as [&str; 0]);
    workers
}

#[test]
fn each_on_the_cpu_and_node_of_its_place() {
    let _alone = alone();
    let machine = machine();
    for threads in [
        1,
        machine.cpus().div_ceil(2),
        machine.cpus(),
        machine.cpus() + 3,
    ] {
        let workers = workers(&machine, threads);
        let seen = look(&workers);
        assert_eq!(seen.len(), threads);
        for (worker, seen) in &seen {
            let place = workers.layout().places()[*worker];
            assert_eq!((seen.cpu, seen.node), (place.cpu, place.node));
            assert_eq!(machine.nodes()[seen.node].os_index, seen.os_node);
        }
        let used: HashSet<u32> = seen.values().map(|seen| seen.cpu).collect();
        assert_eq!(
            used.len(),
            threads.min(machine.cpus()),
            "no cpu is left idle"
        );
    }
}

#[test]
fn dealt_evenly_to_the_nodes_with_cores() {
    let _alone = alone();
    let machine = machine();
    if !several_nodes(&machine) {
        return;
    }
    let nodes = with_cores(&machine);
    let workers = workers(&machine, nodes.len());
    let on: HashSet<u32> = look(&workers).values().map(|seen| seen.os_node).collect();
    assert_eq!(on.len(), nodes.len(), "one worker on each node");
}

#[test]
fn what_they_touch_first_lies_on_their_node() {
    let _alone = alone();
    let machine = machine();
    let workers = workers(&machine, machine.cpus());
    let touched = on_each(&workers, || {
        let pages = Pages::new(64);
        pages.touch();
        (here().1, pages.resident())
    });
    for (node, pages) in touched.values() {
        assert_eq!(pages, &[(*node, 64)]);
    }
}

#[test]
fn never_migrated_once_bound() {
    let _alone = alone();
    let machine = machine();
    let workers = workers(&machine, machine.cpus());
    let first = look(&workers);
    for _ in 0..20 {
        on_each(&workers, || {
            std::hint::black_box((0..10_000u64).sum::<u64>())
        });
    }
    for (worker, seen) in look(&workers) {
        assert_eq!(
            seen.migrations, first[&worker].migrations,
            "worker {worker}"
        );
        assert_eq!(seen.cpu, first[&worker].cpu);
    }
}

#[test]
fn a_narrower_width_leaves_them_where_they_are() {
    let _alone = alone();
    let machine = machine();
    if !several_nodes(&machine) {
        return;
    }
    let workers = workers(&machine, machine.cpus());
    let first = look(&workers);
    workers.set_width(1).unwrap();
    workers.set_width(machine.cpus()).unwrap();
    for (worker, seen) in look(&workers) {
        assert_eq!(seen.cpu, first[&worker].cpu);
    }
    let own = cpus(&machine.nodes()[first[&0].node]);
    assert!(own.contains(&first[&0].cpu));
}
