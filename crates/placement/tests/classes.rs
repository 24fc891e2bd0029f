//! Enumeration and sampling, against the paper's numbers and against brute force.

mod machines;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Instant;

use machines::{Plan, plans};
use placement::{Classes, CpuSet, Placement, Random, Siblings, Site, Threads};
use proptest::prelude::*;
use topology::Machine;

fn site(machine: &str) -> Site {
    Site::new(&Machine::parse(machine).unwrap())
}

fn classes(machine: &str, threads: usize) -> Classes {
    Classes::new(&site(machine), &Threads::in_groups(threads, 1).unwrap()).unwrap()
}

#[test]
fn the_numbers_of_the_paper() {
    for (machine, threads, count) in [
        ("xeon-2630", 12, 462),
        ("2x6", 12, 462),
        ("package:2 numa:1 l3:1 core:6 pu:2", 12, 462),
        ("xeon-4114", 20, 92_378),
        ("node:2 l3:1 core:10 pu:2", 20, 92_378),
    ] {
        assert_eq!(classes(machine, threads).count(), Some(count), "{machine}");
    }
}

#[test]
fn numbers_that_can_be_worked_out_by_hand() {
    for (machine, threads, count) in [
        // One of the four halves of {0,1}, {2,3}: who is with thread 0?
        ("2x2", 4, 3),
        // 8! / (2!^4 4!).
        ("4x2", 8, 105),
        // With fewer threads than cores some stay empty: 2^3 / 2.
        ("2x6", 4, 8),
        ("1x8", 5, 1),
        ("2x6", 1, 1),
        ("1x1", 3, 1),
        ("node:1 core:1 pu:2", 3, 1),
        // Three levels: 8 threads on 2 nodes x 2 caches x 2 cores: 8! / (2!^4 (2!)^2 2!).
        ("node:2 l3:2 core:2", 8, 315),
        // Every core has one thread and one has two: C(5,2) pairs, the rest in order; the pair is on
        // either node: which two of the other three are together is 3 choices.
        ("node:2 core:2 pu:2", 5, 30),
        // Twice as many threads as cpus: 8 threads in pairs on four cpus of two nodes.
        ("2x2", 8, 315),
        // Two packages of two nodes: 4! / 2^2 / 2.
        ("package:2 node:2 core:1", 4, 3),
    ] {
        let classes = classes(machine, threads);
        assert_eq!(classes.count(), Some(count), "{machine}, {threads} threads");
        assert_eq!(classes.iter().count() as u128, count);
        assert!((classes.log10() - (count as f64).log10()).abs() < 1e-9);
    }
    let free = Classes::with_siblings(
        &site("node:2 core:1 pu:2"),
        &Threads::in_groups(2, 1).unwrap(),
        Siblings::Free,
    );
    // Both on one core, or each on its own.
    assert_eq!(free.unwrap().count(), Some(2));
}

#[test]
fn all_92378_are_listed_in_a_second_and_differ() {
    let site = site("xeon-4114");
    let threads = Threads::in_groups(20, 1).unwrap();
    let list = || {
        let begun = Instant::now();
        let all: Vec<Placement> = Classes::new(&site, &threads).unwrap().iter().collect();
        (begun.elapsed(), all)
    };
    // The best of three, as other tests run beside this one.
    let (took, all) = (0..3).map(|_| list()).min().unwrap();
    println!("92,378 classes in {took:?}");
    assert_eq!(all.len(), 92_378);
    // Thread 0 is on node 0: each is told by who is with it.
    let mut seen = HashSet::new();
    for placed in &all {
        let nodes = placed.nodes(&site);
        assert_eq!(nodes.iter().filter(|node| **node == nodes[0]).count(), 10);
        let with_first: Vec<bool> = nodes.iter().map(|node| *node == nodes[0]).collect();
        assert!(seen.insert(with_first));
        assert_eq!(placed.cpus().len(), 20);
    }
    // Under a second on a quiet machine; a busy one may take longer.
    assert!(took.as_secs_f64() < 5.0, "{took:?}");
}

#[test]
fn large_machines_are_counted_and_sampled() {
    let machine = "node:64 l3:2 core:8 pu:2";
    let site = site(machine);
    let classes = classes(machine, 1024);
    assert_eq!(classes.count(), None, "more than 128 bits");
    assert!(classes.log10() > 1000.0);
    let mut random = Random::new(1);
    let (one, other) = (classes.sample(&mut random), classes.sample(&mut random));
    assert_ne!(one, other);
    assert_eq!(one.cpus().len(), 1024);
    assert_eq!(classes.canonical(&site, &one), Some(one));
    let first: Vec<Placement> = classes.iter().take(3).collect();
    assert_eq!(first.iter().collect::<HashSet<_>>().len(), 3);
}

#[test]
fn distances_decide_which_nodes_may_be_exchanged() {
    let count = |distances: Vec<u32>, nodes: usize| {
        let plan = Plan {
            nodes: vec![vec![vec![1]]; nodes],
            distances,
            caches: true,
        };
        let site = Site::new(&plan.machine());
        let threads = Threads::in_groups(nodes, 1).unwrap();
        Classes::new(&site, &threads).unwrap().count().unwrap()
    };
    let ring = |nodes: usize| -> Vec<u32> {
        let cells = (0..nodes * nodes).map(|at| (at / nodes, at % nodes));
        let hops = |a: usize, b: usize| a.abs_diff(b).min(nodes - a.abs_diff(b)) as u32;
        cells.map(|(a, b)| 10 + 10 * hops(a, b)).collect()
    };
    // n! / 2n: turned and mirrored.
    assert_eq!(count(ring(4), 4), 3);
    assert_eq!(count(ring(5), 5), 12);
    assert_eq!(count(ring(6), 6), 60);
    assert_eq!(count(ring(8), 8), 2520);
    // A chain of three: only its ends.
    assert_eq!(count(vec![10, 20, 30, 20, 10, 20, 30, 20, 10], 3), 3);
    // One way is longer than the other: a circle with a direction.
    assert_eq!(count(vec![10, 20, 30, 30, 10, 20, 20, 30, 10], 3), 2);
    // A cube: 8! / 48.
    let cells = (0..64).map(|at: u32| 10 + 10 * ((at / 8) ^ (at % 8)).count_ones());
    assert_eq!(count(cells.collect(), 8), 840);
}

#[test]
fn nodes_without_cores_count_with_the_node_they_are_near() {
    // 0 and 1 have cores; memory 2 is near 0, memory 3 near 1: a mirror.
    let mut plan = Plan {
        nodes: vec![vec![vec![1, 1]], vec![vec![1, 1]], vec![], vec![]],
        distances: vec![
            10, 20, 17, 28, 20, 10, 28, 17, 17, 28, 10, 30, 28, 17, 30, 10,
        ],
        caches: true,
    };
    let count = |plan: &Plan| {
        let site = Site::new(&plan.machine());
        let threads = Threads::in_groups(4, 1).unwrap();
        Classes::new(&site, &threads).unwrap().count().unwrap()
    };
    assert_eq!(count(&plan), 3);
    // Without the second there is none: the nodes differ.
    plan.nodes.pop();
    plan.distances = vec![10, 20, 17, 20, 10, 28, 17, 28, 10];
    assert_eq!(count(&plan), 6);
    // As far from one as from the other.
    plan.distances = vec![10, 20, 28, 20, 10, 28, 28, 28, 10];
    assert_eq!(count(&plan), 3);
    // Eight nodes, each with a memory of its own, exchange freely: 8!/8! = 1.
    let cell = |a: usize, b: usize| match (a == b, a % 8 == b % 8) {
        (true, _) => 10,
        (_, true) => 17,
        _ => 30,
    };
    let mut nodes = vec![vec![vec![1]]; 8];
    nodes.extend(vec![vec![]; 8]);
    let distances = (0..256).map(|at| cell(at / 16, at % 16)).collect();
    let site = Site::new(
        &Plan {
            nodes,
            distances,
            caches: true,
        }
        .machine(),
    );
    let threads = Threads::in_groups(8, 1).unwrap();
    assert_eq!(Classes::new(&site, &threads).unwrap().count(), Some(1));
}

#[test]
fn what_is_not_allowed_makes_nodes_uneven() {
    let machine = Machine::parse("2x3").unwrap();
    let site = Site::within(&machine, &"0-4".parse().unwrap()).unwrap();
    let threads = Threads::in_groups(5, 1).unwrap();
    // C(5, 3), and no exchange of nodes.
    assert_eq!(Classes::new(&site, &threads).unwrap().count(), Some(10));
}

/// Chi-square of `samples` draws against the uniform distribution over `classes`.
fn chi_square(seen: &HashMap<Placement, u32>, classes: usize, samples: u32) -> f64 {
    let expected = f64::from(samples) / classes as f64;
    let square = |count: u32| (f64::from(count) - expected).powi(2) / expected;
    let unseen = (classes - seen.len()) as f64;
    seen.values().copied().map(square).sum::<f64>() + unseen * expected
}

#[test]
fn sampling_is_uniform() {
    let ring = Plan {
        nodes: vec![vec![vec![1, 1]]; 5],
        distances: (0..25)
            .map(|at: u32| {
                let hops = (at / 5).abs_diff(at % 5);
                10 + 10 * hops.min(5 - hops)
            })
            .collect(),
        caches: true,
    };
    let sites = [
        (site("node:2 l3:2 core:2"), 6),
        (site("node:3 core:2 pu:2"), 4),
        (
            Site::within(&Machine::parse("3x2").unwrap(), &"0-4".parse().unwrap()).unwrap(),
            4,
        ),
        (Site::new(&ring.machine()), 4),
    ];
    for (site, threads) in sites {
        let classes = Classes::new(&site, &Threads::in_groups(threads, 1).unwrap()).unwrap();
        let count = classes.count().unwrap() as usize;
        assert!((9..500).contains(&count), "{count}");
        let samples = 200 * count as u32;
        let mut random = Random::new(11);
        let mut seen: HashMap<Placement, u32> = HashMap::new();
        for _ in 0..samples {
            *seen.entry(classes.sample(&mut random)).or_default() += 1;
        }
        let all: HashSet<Placement> = classes.iter().collect();
        assert!(seen.keys().all(|drawn| all.contains(drawn)));
        let free = (count - 1) as f64;
        let square = chi_square(&seen, count, samples);
        // Mean and deviation of the chi-square distribution; both tails are suspicious.
        let off = (square - free) / (2.0 * free).sqrt();
        assert!(
            off.abs() < 4.0,
            "{count} classes: chi-square {square} for {free}"
        );
    }
}

/// A placement as the core of each thread, by the plan's order.
type Cores = Vec<usize>;

/// The plan's cores: node, cache, hardware threads.
fn cores(plan: &Plan) -> Vec<(usize, usize, usize)> {
    let mut cores = Vec::new();
    let mut cache = 0;
    for (node, caches) in plan.nodes.iter().enumerate() {
        for of_cache in caches {
            cores.extend(of_cache.iter().map(|&threads| (node, cache, threads)));
            cache += 1;
        }
    }
    cores
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for at in 0..count {
        let grown = all.iter().flat_map(|order: &Vec<usize>| {
            (0..=at).map(move |place| {
                let mut order = order.clone();
                order.insert(place, at);
                order
            })
        });
        all = grown.collect();
    }
    all
}

/// All ways to exchange cores that change neither caches, nodes nor distances.
fn automorphisms(plan: &Plan) -> Vec<Vec<usize>> {
    let cores = cores(plan);
    let nodes = plan.nodes.len();
    let distance = |a: usize, b: usize| plan.distances[a * nodes + b];
    let with: BTreeSet<usize> = cores.iter().map(|core| core.0).collect();
    let without: Vec<usize> = (0..nodes).filter(|node| !with.contains(node)).collect();
    let rest = permutations(without.len());
    let keeps = |map: &Vec<usize>| {
        let mut image: BTreeMap<usize, usize> = BTreeMap::new();
        for (at, &to) in map.iter().enumerate() {
            if cores[at].2 != cores[to].2 {
                return false;
            }
            if *image.entry(cores[at].0).or_insert(cores[to].0) != cores[to].0 {
                return false;
            }
            for (other, &other_to) in map.iter().enumerate() {
                let together = cores[at].1 == cores[other].1;
                if plan.caches && together != (cores[to].1 == cores[other_to].1) {
                    return false;
                }
            }
        }
        if image.values().collect::<BTreeSet<_>>().len() != image.len() {
            return false;
        }
        rest.iter().any(|order| {
            let mut image = image.clone();
            image.extend(without.iter().zip(order).map(|(&a, &b)| (a, without[b])));
            (0..nodes).all(|a| (0..nodes).all(|b| distance(a, b) == distance(image[&a], image[&b])))
        })
    };
    permutations(cores.len())
        .into_iter()
        .filter(keeps)
        .collect()
}

/// All placements that fill cores evenly.
fn placements(plan: &Plan, threads: usize) -> Vec<Cores> {
    let cores = cores(plan);
    let mut all: Vec<Cores> = vec![vec![]];
    for _ in 0..threads {
        let grown = all.iter().flat_map(|placed| {
            (0..cores.len()).map(move |core| {
                let mut placed = placed.clone();
                placed.push(core);
                placed
            })
        });
        all = grown.collect();
    }
    let round = |core: usize, load: usize| {
        let own = cores[core].2;
        (load / own, load % own)
    };
    all.retain(|placed| {
        let load = |core: usize| placed.iter().filter(|at| **at == core).count();
        let last = (0..cores.len()).filter(|&core| load(core) > 0);
        let last = last.map(|core| round(core, load(core) - 1)).max();
        let next = (0..cores.len()).map(|core| round(core, load(core))).min();
        last <= next
    });
    all
}

/// The cores of a placement, by the plan's order.
fn read(plan: &Plan, placed: &Placement) -> Cores {
    let owners: Vec<usize> = cores(plan)
        .iter()
        .enumerate()
        .flat_map(|(core, (_, _, threads))| vec![core; *threads])
        .collect();
    let cpu = |set: &CpuSet| owners[set.as_slice()[0] as usize];
    placed.sets().iter().map(cpu).collect()
}

fn small() -> impl Strategy<Value = (Plan, usize)> {
    let plan = plans(1..5, 2, 2, 2).prop_filter("few cores", |plan| cores(plan).len() <= 6);
    (plan, 1usize..6).prop_filter("few placements", |(plan, threads)| {
        cores(plan).len().pow(*threads as u32) <= 8000
    })
}

proptest! {
    #[test]
    fn classes_are_disjoint_and_complete((plan, threads) in small()) {
        let site = Site::new(&plan.machine());
        let classes = Classes::new(&site, &Threads::in_groups(threads, 1).unwrap()).unwrap();
        let maps = automorphisms(&plan);
        // The least of all equivalent placements stands for them.
        let least = |placed: &Cores| -> Cores {
            let images = maps.iter().map(|map| placed.iter().map(|&core| map[core]).collect());
            images.min().unwrap()
        };
        let all = placements(&plan, threads);
        let expected: BTreeSet<Cores> = all.iter().map(&least).collect();
        let listed: Vec<Cores> = classes.iter().map(|placed| read(&plan, &placed)).collect();
        prop_assert_eq!(classes.count(), Some(listed.len() as u128));
        let found: BTreeSet<Cores> = listed.iter().map(least).collect();
        prop_assert_eq!(found.len(), listed.len(), "two of one class");
        prop_assert_eq!(found, expected);
        prop_assert_eq!(classes.class(listed.len() as u128), None);
    }

    #[test]
    fn equivalent_placements_have_one_canonical_form((plan, threads) in small(), pick in any::<u64>()) {
        let site = Site::new(&plan.machine());
        let classes = Classes::new(&site, &Threads::in_groups(threads, 1).unwrap()).unwrap();
        let mut random = Random::new(pick);
        let placed = classes.sample(&mut random);
        let canonical = classes.canonical(&site, &placed);
        prop_assert_eq!(canonical.as_ref(), Some(&placed));
        let maps = automorphisms(&plan);
        let map = &maps[random.index(maps.len())];
        let first = |core: usize| -> u32 {
            cores(&plan)[..core].iter().map(|core| core.2 as u32).sum()
        };
        let moved = read(&plan, &placed).iter().map(|&core| first(map[core])).collect::<Vec<_>>();
        let moved = moved.into_iter().map(|cpu| CpuSet::from(vec![cpu])).collect();
        let moved = Placement::explicit(&site, moved).unwrap();
        prop_assert_eq!(classes.canonical(&site, &moved), Some(placed));
    }
}
