//! Strategies, checked by where threads really ran and where their memory really lies.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Barrier;

use placement::apply::{self, Keeper, Options};
use placement::{Placement, Site, Strategy, Threads};
use topology::Machine;

use crate::place::{alone, machine, probe, several_nodes, with_cores};
use crate::system::{Pages, here};

/// Where a thread was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    cpu: u32,
    os_node: u32,
}

/// Runs a thread for each set of a placement, all at once. Where each was, after it has used its
/// time slice, and where the pages it touched first lie.
fn run(placement: &Placement) -> Vec<(Place, Vec<(u32, usize)>)> {
    let all = Barrier::new(placement.threads());
    std::thread::scope(|scope| {
        let threads: Vec<_> = placement
            .sets()
            .iter()
            .map(|set| {
                let all = &all;
                scope.spawn(move || {
                    let pinned = apply::pin(set).unwrap();
                    all.wait();
                    for _ in 0..20 {
                        std::hint::black_box((0..20_000u64).sum::<u64>());
                        std::thread::yield_now();
                    }
                    let pages = Pages::new(32);
                    pages.touch();
                    let (cpu, os_node) = here();
                    all.wait();
                    drop(pinned);
                    (Place { cpu, os_node }, pages.resident())
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

/// Places by a strategy, runs, and checks what holds of all strategies.
fn placed(machine: &Machine, strategy: &Strategy, threads: &Threads) -> Vec<Place> {
    let site = Site::new(machine);
    let placement = strategy.place(&site, threads).unwrap();
    let ran = run(&placement);
    for (thread, (place, pages)) in ran.iter().enumerate() {
        assert!(
            placement.of(thread).contains(place.cpu),
            "{strategy}: thread {thread} ran on cpu {}, not in {:?}",
            place.cpu,
            placement.of(thread)
        );
        let node = machine.node_of_cpu(place.cpu).unwrap();
        assert_eq!(machine.nodes()[node].os_index, place.os_node);
        if placement.of(thread).len() == 1 {
            assert_eq!(
                pages,
                &[(place.os_node, 32)],
                "{strategy}: thread {thread}'s memory"
            );
        }
    }
    ran.into_iter().map(|(place, _)| place).collect()
}

fn per_node(places: &[Place]) -> BTreeMap<u32, usize> {
    let mut counts = BTreeMap::new();
    for place in places {
        *counts.entry(place.os_node).or_insert(0) += 1;
    }
    counts
}

/// Numbers of threads from one to more than there are cpus.
fn sizes(machine: &Machine) -> [usize; 4] {
    let cpus = machine.cpus();
    [1, with_cores(machine).len() + 1, cpus, cpus + 3]
}

#[test]
fn compact_runs_on_the_fewest_nodes() {
    let _alone = alone();
    let machine = machine();
    for count in sizes(&machine) {
        let threads = Threads::in_groups(count, 1).unwrap();
        let nodes = per_node(&placed(&machine, &Strategy::Compact, &threads)).len();
        let mut room: Vec<usize> = machine.nodes().iter().map(|node| node.cpus()).collect();
        room.sort_unstable_by(|a, b| b.cmp(a));
        let (mut least, mut sum) = (0, 0);
        while sum < count && least < with_cores(&machine).len() {
            sum += room[least];
            least += 1;
        }
        assert_eq!(nodes, least, "{count} threads");
    }
}

#[test]
fn sparse_runs_evenly_on_all_nodes() {
    let _alone = alone();
    let machine = machine();
    if !several_nodes(&machine) {
        return;
    }
    for count in [2, with_cores(&machine).len() + 1, machine.cpus()] {
        let threads = Threads::in_groups(count, 1).unwrap();
        let counts = per_node(&placed(&machine, &Strategy::Sparse, &threads));
        assert_eq!(counts.len(), count.min(with_cores(&machine).len()));
        let (least, most) = (
            counts.values().min().unwrap(),
            counts.values().max().unwrap(),
        );
        // Nodes of these machines have the same number of cpus.
        assert!(most - least <= 1, "{count} threads: {counts:?}");
    }
}

#[test]
fn shared_keeps_a_group_under_one_cache() {
    let _alone = alone();
    let machine = machine();
    if !several_nodes(&machine) {
        return;
    }
    let groups = with_cores(&machine).len();
    let threads = Threads::in_groups(groups * 2, groups).unwrap();
    let places = placed(&machine, &Strategy::Shared, &threads);
    let site = Site::new(&machine);
    let cache = |cpu| site.cache_sets().iter().position(|set| set.contains(cpu));
    let mut used = HashSet::new();
    for group in threads.by_group() {
        let caches: HashSet<_> = group
            .iter()
            .map(|thread| cache(places[*thread].cpu))
            .collect();
        assert_eq!(caches.len(), 1, "{group:?} ran under {caches:?}");
        used.extend(caches);
    }
    assert_eq!(
        used.len(),
        groups.min(site.cache_sets().len()),
        "groups are spread"
    );
}

#[test]
fn random_and_os_run_where_they_may() {
    let _alone = alone();
    let machine = machine();
    if !several_nodes(&machine) {
        return;
    }
    let threads = Threads::in_groups(machine.cpus() / 2 + 1, 1).unwrap();
    for seed in 0..3 {
        placed(&machine, &Strategy::Random { seed }, &threads);
    }
    placed(&machine, &Strategy::Os, &threads);
}

/// A program that knows nothing of placements, whose threads are placed as they come.
#[test]
fn the_threads_of_another_program_run_where_they_are_put() {
    let _alone = alone();
    let machine = machine();
    if !several_nodes(&machine) {
        return;
    }
    let count = with_cores(&machine).len() + 1;
    let site = Site::new(&machine);
    for strategy in [
        Strategy::Sparse,
        Strategy::Compact,
        Strategy::Random { seed: 5 },
    ] {
        let threads = Threads::in_groups(count, 1).unwrap();
        let placement = strategy.place(&site, &threads).unwrap();
        let mut command = Command::new(probe());
        command
            .args(["spin", &count.to_string(), "1.5"])
            .stdout(Stdio::piped());
        let mut child = apply::start(&mut command, &placement).unwrap();
        // The first thread only waits for the others.
        let options = Options {
            skip: 1,
            ..Options::default()
        };
        let mut keeper = Keeper::attach(child.id() as i32, &placement, options).unwrap();
        while child.try_wait().unwrap().is_none() {
            keeper.step().unwrap();
            std::thread::sleep(keeper.pause());
        }
        let mut text = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert!(child.wait().unwrap().success(), "{text}");
        assert_eq!(text.lines().count(), count);
        for line in text.lines() {
            let [thread, cpu, node] = line
                .split(' ')
                .map(|word| word.parse::<u32>().unwrap())
                .collect::<Vec<_>>()[..]
            else {
                panic!("{line}");
            };
            let set = placement.of(thread as usize);
            assert!(
                set.contains(cpu),
                "{strategy}: thread {thread} ended on {cpu}, not in {set:?}"
            );
            let index = machine.node_of_cpu(cpu).unwrap();
            assert_eq!(machine.nodes()[index].os_index, node);
        }
    }
}
