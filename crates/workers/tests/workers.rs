//! Workers, layouts and tasks.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use topology::Machine;
use workers::{Error, Here, Layout, MAX_THREADS, Morsels, Workers, here};

fn live() -> Machine {
    Machine::live().unwrap()
}

fn cpus(machine: &Machine) -> HashSet<u32> {
    let cores = machine.nodes().iter().flat_map(|node| &node.cores);
    cores.flat_map(|core| core.cpus.iter().copied()).collect()
}

#[test]
fn a_synthetic_machine_maps_onto_allowed_cpus() {
    let live = live();
    let allowed = cpus(&live);
    for (spec, threads) in [("4x4", 16), ("4x4", 3), ("opteron-8387", 40), ("1x1", 7)] {
        let machine = Machine::parse(spec).unwrap();
        let layout = Layout::of(&machine, &live, threads, true);
        assert_eq!(
            (layout.threads(), layout.nodes()),
            (threads, machine.nodes().len())
        );
        let mut per_node = vec![0usize; machine.nodes().len()];
        for place in layout.places() {
            assert!(
                allowed.contains(&place.cpu),
                "cpu {} is not allowed",
                place.cpu
            );
            per_node[place.node] += 1;
        }
        let (least, most) = (
            per_node.iter().min().unwrap(),
            per_node.iter().max().unwrap(),
        );
        assert!(most - least <= 1, "{spec}: uneven shares {per_node:?}");
        let used: HashSet<u32> = layout.places().iter().map(|place| place.cpu).collect();
        assert_eq!(
            used.len(),
            allowed.len().min(threads),
            "{spec} leaves cpus idle"
        );
    }
}

#[test]
fn uneven_nodes_get_their_share() {
    let machine = Machine::parse("xeon-4657l").unwrap();
    let layout = Layout::of(&machine, &machine, 96, true);
    let used: HashSet<u32> = layout.places().iter().map(|place| place.cpu).collect();
    assert_eq!(
        used.len(),
        96,
        "on the machine itself each worker has its own cpu"
    );
    for place in layout.places() {
        assert_eq!(machine.node_of_cpu(place.cpu), Some(place.node));
    }
    // Half of them: each core once, before any SMT sibling.
    let half = Layout::of(&machine, &machine, 48, true);
    for core in machine.nodes().iter().flat_map(|node| &node.cores) {
        let on = half
            .places()
            .iter()
            .filter(|place| core.cpus.contains(&place.cpu))
            .count();
        assert_eq!(on, 1, "core {:?}", core.cpus);
    }
}

#[test]
fn every_worker_knows_where_it_is() {
    let live = live();
    let machine = Machine::parse("4x2").unwrap();
    let workers = Workers::new(Layout::of(&machine, &live, 8, true)).unwrap();
    assert_eq!(here(), None, "the test's own thread is no worker");
    let places = workers.layout().places().to_vec();
    // Blocks each worker until all have one of these tasks.
    let barrier = Arc::new(std::sync::Barrier::new(8));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let barrier = barrier.clone();
            workers.spawn(async move {
                barrier.wait();
                here()
            })
        })
        .collect();
    let seen: Vec<Here> = workers.block_on(async move {
        let mut seen = Vec::new();
        for task in tasks {
            seen.push(task.await.unwrap().expect("on a worker"));
        }
        seen
    });
    let distinct: HashSet<usize> = seen.iter().map(|here| here.worker).collect();
    assert_eq!(distinct.len(), 8);
    for here in seen {
        assert_eq!(here.node, places[here.worker].node);
    }
    let elsewhere = workers.handle().spawn_blocking(here);
    assert_eq!(
        workers.block_on(elsewhere).unwrap(),
        None,
        "a blocking thread is no worker"
    );
}

/// The mask of a thread, as the system reports it.
fn mask() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("Cpus_allowed_list"))
        .unwrap();
    line.split_whitespace().last().unwrap().to_owned()
}

#[test]
fn workers_are_pinned_and_others_are_not() {
    let live = live();
    let workers = Workers::new(Layout::of(&live, &live, 2, true)).unwrap();
    assert_eq!(
        workers.notes(),
        Vec::<String>::new(),
        "binding is allowed where tests run"
    );
    let places = workers.layout().places().to_vec();
    let before = mask();
    let (here, mine, blocking) = workers.block_on(async {
        let blocking = tokio::task::spawn_blocking(mask).await.unwrap();
        (here().unwrap(), mask(), blocking)
    });
    // `here` and `mask` are taken without a suspension between them.
    assert_eq!(mine, places[here.worker].cpu.to_string());
    assert_eq!(
        blocking, before,
        "blocking threads may use all allowed cpus"
    );
    assert_eq!(mask(), before, "the caller keeps its mask");
}

/// A thread for a blocking call starts as soon as there are workers, and takes no worker's place.
#[test]
fn workers_are_the_threads_that_were_pinned() {
    let live = live();
    for _ in 0..300 {
        let workers = Workers::new(Layout::of(&live, &live, 2, true)).unwrap();
        let blocking = workers.handle().spawn_blocking(here);
        let tasks: Vec<_> = (0..4).map(|_| workers.spawn(async { here() })).collect();
        assert_eq!(workers.block_on(async { blocking.await.unwrap() }), None);
        for task in tasks {
            assert!(workers.block_on(task).unwrap().is_some());
        }
    }
}

#[test]
fn unpinned_workers_keep_the_mask() {
    let live = live();
    let workers = Workers::new(Layout::of(&live, &live, 2, false)).unwrap();
    let before = mask();
    assert_eq!(workers.block_on(async { mask() }), before);
}

/// A cpu that does not exist is refused by the system like one that is forbidden.
#[test]
fn refused_binding_is_noted_and_work_goes_on() {
    let other = Machine::parse("node:2 core:1 pu:1(indexes=4000,4001)").unwrap();
    let workers = Workers::new(Layout::of(&other, &other, 2, true)).unwrap();
    assert_eq!(workers.notes().len(), 1);
    assert!(
        workers.notes()[0].contains("cpu 400"),
        "{:?}",
        workers.notes()
    );
    assert_eq!(workers.block_on(async { 41 + 1 }), 42);
}

#[test]
fn impossible_numbers_of_threads_are_refused() {
    let live = live();
    for threads in [0, MAX_THREADS + 1, usize::MAX] {
        let error = Workers::new(Layout::of(&live, &live, threads, false)).unwrap_err();
        assert!(matches!(error, Error::Threads { .. }), "{error}");
    }
}

#[test]
fn panics_and_cancellation_reach_the_handle() {
    let live = live();
    let workers = Workers::new(Layout::of(&live, &live, 1, false)).unwrap();
    let failed = workers.spawn(async { panic!("the {} fell over", "tower") });
    let result: Result<(), Error> = workers.block_on(failed);
    assert!(
        matches!(&result, Err(Error::Panicked { message }) if message == "the tower fell over")
    );
    let endless = workers.spawn(std::future::pending::<()>());
    endless.abort();
    assert!(matches!(workers.block_on(endless), Err(Error::Cancelled)));
    let inner = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        workers.block_on(async { panic!("through") })
    }));
    assert!(inner.is_err(), "block_on passes the panic on");
}

/// Sets its flag when dropped.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_dropped_handle_aborts_only_if_asked() {
    let live = live();
    let workers = Workers::new(Layout::of(&live, &live, 2, false)).unwrap();
    for abort in [false, true] {
        let gone = Arc::new(AtomicBool::new(false));
        let flag = Flag(gone.clone());
        let task = workers.spawn(async move {
            let _flag = flag;
            std::future::pending::<()>().await;
        });
        let task = if abort { task.abort_on_drop() } else { task };
        drop(task);
        // Long enough for an abort to happen; where one is expected, waited for.
        for _ in 0..if abort { 10_000 } else { 20 } {
            if gone.load(Ordering::SeqCst) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(gone.load(Ordering::SeqCst), abort);
    }
}

#[test]
fn four_nodes_on_the_cpus_there_are_share_out_all_morsels() {
    let live = live();
    let machine = Machine::parse("opteron-8387").unwrap();
    let workers = Workers::new(Layout::of(&machine, &live, 4, true)).unwrap();
    let items = (0..10_000u32).map(|n| (n as usize % 4, n));
    let morsels = Arc::new(Morsels::near(workers.layout().nearness(), items));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let morsels = morsels.clone();
            workers.spawn(async move {
                let mut mine = Vec::new();
                loop {
                    let node = here().expect("on a worker").node;
                    let Some(item) = morsels.claim(node) else {
                        break mine;
                    };
                    mine.push(item);
                    if item % 64 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            })
        })
        .collect();
    let mut all: Vec<u32> = workers.block_on(async move {
        let mut all = Vec::new();
        for task in tasks {
            all.extend(task.await.unwrap());
        }
        all
    });
    all.sort_unstable();
    assert!(all.iter().copied().eq(0..10_000), "each exactly once");
}

#[test]
fn instances_stay_on_their_nodes_and_share_the_width() {
    let live = live();
    let machine = Machine::parse("3x2").unwrap();
    // Nodes 0 and 1 have two workers, node 2 has one.
    let workers = Workers::new(Layout::of(&machine, &live, 5, true)).unwrap();
    let nodes: Vec<(usize, usize)> = workers
        .clone()
        .block_on(async move { workers.instances().unwrap() })
        .iter()
        .map(|own| {
            let tasks: Vec<_> = (0..20)
                .map(|_| own.spawn(async { here().unwrap().node }))
                .collect();
            let node = own.layout().places()[0].node;
            for task in tasks {
                assert_eq!(own.block_on(task).unwrap(), node);
            }
            (node, own.width())
        })
        .collect();
    assert_eq!(nodes, [(0, 2), (1, 2), (2, 1)]);
    let workers = Workers::new(Layout::of(&machine, &live, 5, true)).unwrap();
    let first = workers.instances().unwrap();
    workers.set_width(3).unwrap();
    let again = workers.instances().unwrap();
    assert!(Arc::ptr_eq(&first, &again));
    assert_eq!([0, 1, 2].map(|n: usize| again[n].width()), [1, 1, 1]);
}

#[test]
fn parts_of_a_layout_keep_the_workers_of_a_node_together() {
    let machine = Machine::parse("2x4").unwrap();
    let live = Machine::live().unwrap();
    let layout = Layout::of(&machine, &live, 8, false);
    let nodes = |count: usize| -> Vec<Vec<usize>> {
        let part = |part: Layout| part.places().iter().map(|place| place.node).collect();
        layout.parts(count).into_iter().map(part).collect()
    };
    assert_eq!(nodes(2), [[0; 4], [1; 4]]);
    assert_eq!(nodes(4), [[0; 2], [0; 2], [1; 2], [1; 2]]);
    assert_eq!(nodes(3).iter().map(Vec::len).collect::<Vec<_>>(), [2, 3, 3]);
    assert_eq!(nodes(0).len(), 1);
    assert_eq!(nodes(9).iter().filter(|part| part.is_empty()).count(), 1);
}
