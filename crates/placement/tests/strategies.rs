//! The laws of the strategies, on random machines.

mod machines;

use std::collections::BTreeMap;

use machines::plans;
use placement::{CpuSet, Error, Placement, Site, Strategy, Threads, draws, like};
use proptest::prelude::*;
use topology::Machine;

fn site(machine: &str) -> Site {
    Site::new(&Machine::parse(machine).unwrap())
}

fn cpus(placement: &Placement) -> Vec<u32> {
    let single = |set: &CpuSet| {
        assert_eq!(set.len(), 1, "one cpu per thread");
        set.as_slice()[0]
    };
    placement.sets().iter().map(single).collect()
}

fn place(machine: &str, strategy: &str, threads: usize, groups: usize) -> Vec<u32> {
    let threads = Threads::in_groups(threads, groups).unwrap();
    let strategy: Strategy = strategy.parse().unwrap();
    cpus(&strategy.place(&site(machine), &threads).unwrap())
}

/// Threads per node; nodes without threads included.
fn per_node(site: &Site, placement: &Placement) -> Vec<usize> {
    let mut count = vec![0; site.node_sets().len()];
    for node in placement.nodes(site) {
        count[node.expect("a pinned thread is on one node")] += 1;
    }
    count
}

/// Threads per cpu, for the cpus that have any.
fn per_cpu(placement: &Placement) -> BTreeMap<u32, usize> {
    let mut count = BTreeMap::new();
    for cpu in cpus(placement) {
        *count.entry(cpu).or_default() += 1;
    }
    count
}

#[test]
fn the_strategies_on_the_machine_of_the_paper() {
    // Figure 3: four threads on two nodes, here of six cores.
    assert_eq!(place("2x6", "compact", 4, 2), [0, 1, 2, 3]);
    assert_eq!(place("2x6", "sparse", 4, 2), [0, 6, 1, 7]);
    assert_eq!(place("2x6", "shared", 4, 2), [0, 1, 6, 7]);
    assert_eq!(place("2x6", "compact", 12, 1), (0..12).collect::<Vec<_>>());
    let os = Strategy::Os.place(&site("2x6"), &Threads::in_groups(3, 1).unwrap());
    assert_eq!(os.unwrap().sets()[2].to_string(), "0-11");
}

#[test]
fn hardware_threads_come_last_in_their_node() {
    // hwloc numbers the two threads of a core one after the other here.
    let smt = "node:2 core:3 pu:2";
    assert_eq!(place(smt, "compact", 4, 1), [0, 2, 4, 1]);
    assert_eq!(place(smt, "sparse", 8, 1), [0, 6, 2, 8, 4, 10, 1, 7]);
    assert_eq!(place(smt, "shared", 8, 2), [0, 2, 4, 1, 6, 8, 10, 7]);
}

#[test]
fn sparse_spreads_over_the_caches_of_a_node_too() {
    assert_eq!(
        place("node:2 l3:2 core:2", "sparse", 6, 1),
        [0, 4, 2, 6, 1, 5]
    );
}

#[test]
fn compact_takes_nodes_that_are_near_each_other() {
    // A square: 0 and 3 are far from each other, and so are 1 and 2.
    let plan = machines::Plan {
        nodes: vec![vec![vec![1, 1]]; 4],
        distances: vec![
            10, 20, 16, 30, 20, 10, 30, 16, 16, 30, 10, 20, 30, 16, 20, 10,
        ],
        caches: true,
    };
    let site = Site::new(&plan.machine());
    let threads = Threads::in_groups(4, 1).unwrap();
    let placed = Strategy::Compact.place(&site, &threads).unwrap();
    assert_eq!(per_node(&site, &placed), [2, 0, 2, 0]);
}

#[test]
fn more_threads_than_cpus_start_over() {
    assert_eq!(place("2x2", "compact", 6, 1), [0, 1, 2, 3, 0, 1]);
    assert_eq!(place("2x2", "sparse", 6, 1), [0, 2, 1, 3, 0, 2]);
    assert_eq!(place("2x2", "shared", 6, 2), [0, 1, 0, 2, 3, 2]);
}

#[test]
fn a_group_larger_than_a_cache_is_refused() {
    let threads = Threads::in_groups(12, 1).unwrap();
    let error = Strategy::Shared.place(&site("2x6"), &threads).unwrap_err();
    assert!(matches!(
        error,
        Error::GroupTooLarge {
            threads: 12,
            cpus: 6
        }
    ));
    assert!(error.to_string().contains("more groups"), "{error}");
}

#[test]
fn groups_that_fit_only_when_packed_are_packed() {
    // 3 + 3 + 2 + 2 + 2 threads on two caches of six: spreading the largest first gives 5 and 5.
    let threads = Threads::with_groups(vec![0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4]).unwrap();
    let site = site("2x6");
    let placed = Strategy::Shared.place(&site, &threads).unwrap();
    assert_eq!(per_cpu(&placed).len(), 12, "{placed:?}");
    together(&site, &threads, &placed);
}

#[test]
fn random_draws_differ_from_compact_and_sparse_and_from_each_other() {
    let site = site("2x6");
    let threads = Threads::in_groups(12, 2).unwrap();
    let twenty = draws(&site, &threads, 7, 20).unwrap();
    assert_eq!(twenty.len(), 20);
    assert_eq!(twenty[..5], draws(&site, &threads, 7, 5).unwrap());
    assert_ne!(twenty, draws(&site, &threads, 8, 20).unwrap());
    let classes = placement::Classes::new(&site, &threads).unwrap();
    let own: std::collections::HashSet<_> = twenty
        .iter()
        .map(|drawn| classes.canonical(&site, drawn).unwrap())
        .collect();
    assert_eq!(own.len(), 20, "no symmetric ones");
    for strategy in [Strategy::Compact, Strategy::Sparse] {
        let known = strategy.place(&site, &threads).unwrap();
        assert!(like(&site, &known, &known));
        assert!(twenty.iter().all(|drawn| !like(&site, &known, drawn)));
    }
    // Three classes: compact, sparse, and one that is neither.
    let four = Threads::in_groups(4, 2).unwrap();
    let small = Site::new(&Machine::parse("2x2").unwrap());
    assert_eq!(draws(&small, &four, 1, 20).unwrap().len(), 1);
}

#[test]
fn where_all_is_compact_nothing_is_random() {
    let threads = Threads::in_groups(2, 1).unwrap();
    let error = Strategy::Random { seed: 1 }.place(&site("1x2"), &threads);
    assert!(matches!(error, Err(Error::NothingRandom { threads: 2 })));
}

#[test]
fn mappings_are_checked_against_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("map");
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let threads = Threads::in_groups(3, 1).unwrap();
        Strategy::File(path.clone()).place(&site("2x2"), &threads)
    };
    let placed = read("0\n2-3\n").unwrap();
    let texts: Vec<String> = placed.sets().iter().map(CpuSet::to_string).collect();
    assert_eq!(texts, ["0", "2-3", "0"], "it starts over");
    let error = read("0\n4\n").unwrap_err().to_string();
    assert!(
        error.contains("thread 1") && error.contains("0-3"),
        "{error}"
    );
    let error = read("0\nfour\n").unwrap_err().to_string();
    assert!(error.contains("map: line 2"), "{error}");
    std::fs::remove_file(&path).unwrap();
    let threads = Threads::in_groups(3, 1).unwrap();
    let gone = Strategy::File(path.clone()).place(&site("2x2"), &threads);
    assert!(matches!(gone, Err(Error::File { .. })));
}

/// Each group is under one last-level cache.
fn together(site: &Site, threads: &Threads, placed: &Placement) {
    let caches = site.cache_sets();
    let cpus = cpus(placed);
    for group in threads.by_group() {
        let one = |cache: &&CpuSet| group.iter().all(|&thread| cache.contains(cpus[thread]));
        assert!(
            caches.iter().any(|cache| one(&cache)),
            "{group:?} in {cpus:?}"
        );
    }
}

/// The fewest nodes that have a cpu for each thread.
fn fewest(site: &Site, threads: usize) -> usize {
    let mut sizes: Vec<usize> = site.node_sets().iter().map(CpuSet::len).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let with = sizes.iter().filter(|size| **size > 0).count();
    let mut sum = 0;
    let needed = sizes.iter().position(|size| {
        sum += size;
        sum >= threads
    });
    needed.map_or(with, |last| last + 1)
}

proptest! {
    #[test]
    fn laws(
        plan in plans(1..6, 3, 4, 2),
        threads in 1usize..40,
        groups in 1usize..6,
        seed in any::<u64>(),
        forbidden in prop::collection::vec(0u32..40, 0..8),
    ) {
        let machine = plan.machine();
        let all = Site::new(&machine).allowed();
        let allowed: CpuSet = all.iter().filter(|cpu| !forbidden.contains(cpu)).collect();
        let Ok(site) = Site::within(&machine, &allowed) else {
            prop_assert!(allowed.is_empty());
            return Ok(());
        };
        let threads = Threads::in_groups(threads, groups.min(threads)).unwrap();
        let count = threads.count();
        for name in ["os", "compact", "sparse", "shared", "random"] {
            let strategy = match name {
                "random" => Strategy::Random { seed },
                name => name.parse().unwrap(),
            };
            let placed = match strategy.place(&site, &threads) {
                Ok(placed) => placed,
                Err(Error::GroupTooLarge { .. }) => {
                    prop_assert_eq!(name, "shared");
                    let largest = threads.by_group().iter().map(Vec::len).max().unwrap();
                    let most = site.cache_sets().iter().map(CpuSet::len).max().unwrap();
                    prop_assert!(largest > most * count.div_ceil(site.cpus()));
                    continue;
                }
                Err(Error::NothingRandom { .. }) => {
                    prop_assert_eq!(name, "random");
                    continue;
                }
                Err(other) => return Err(TestCaseError::fail(other.to_string())),
            };
            prop_assert_eq!(placed.threads(), count);
            prop_assert!(placed.cpus().iter().all(|cpu| allowed.contains(cpu)), "{}", name);
            prop_assert_eq!(&strategy.place(&site, &threads).unwrap(), &placed);
            if name == "os" {
                continue;
            }
            let load = per_cpu(&placed);
            if name != "shared" {
                let (least, most) = (load.values().min().unwrap(), load.values().max().unwrap());
                prop_assert!(most - least <= 1, "{} loads {:?}", name, load);
                prop_assert!(*most == 1 || load.len() == site.cpus(), "{} loads {:?}", name, load);
            }
            let nodes = per_node(&site, &placed);
            match name {
                "compact" => {
                    let used = nodes.iter().filter(|threads| **threads > 0).count();
                    prop_assert_eq!(used, fewest(&site, count));
                }
                "sparse" => {
                    let sizes: Vec<usize> = site.node_sets().iter().map(CpuSet::len).collect();
                    for (at, more) in nodes.iter().enumerate() {
                        for (other, less) in nodes.iter().enumerate() {
                            let full = *less >= sizes[other] * (count / site.cpus()).max(1);
                            prop_assert!(
                                *more <= less + 1 || full,
                                "nodes {} and {} of {:?}", at, other, nodes
                            );
                        }
                    }
                }
                "shared" => together(&site, &threads, &placed),
                _ => for known in ["compact", "sparse"] {
                    let known: Strategy = known.parse().unwrap();
                    let known = known.place(&site, &threads).unwrap();
                    prop_assert!(!like(&site, &known, &placed));
                },
            }
        }
    }
}
