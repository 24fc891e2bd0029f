//! Families with other laws than `tuned`: written to judge the first search, and since then what
//! later ones were tuned with.

use placement::Random;

use super::{Law, MACHINES, World, between, groups, nodes_of, one, shuffle};

/// World `seed` of the family `seed % 5`.
pub fn world(seed: u64) -> World {
    let random = &mut Random::new(seed.wrapping_mul(0xfeed_face_cafe_f00d) ^ 77);
    let (machine, threads) = MACHINES[(seed / 5) as usize % MACHINES.len()];
    let noise = one(random, &[0.0, 0.02, 0.05]);
    let (name, law): (&str, Law) = match seed % 5 {
        0 => ("queues", queues(random, threads)),
        1 => ("messages", messages(random, threads)),
        2 => ("steps", steps(random, threads)),
        3 => ("phases", phases(random, threads)),
        _ => ("rugged", rugged(random, threads)),
    };
    World::new(
        format!("{name} {seed} on {machine}"),
        machine,
        threads,
        noise,
        law,
    )
}

/// Latency grows without bound as a memory or a link fills; demands follow Zipf's law; data lies on
/// the nodes of some threads.
fn queues(random: &mut Random, threads: usize) -> Law {
    let power = random.unit() * 1.2;
    let mut demand: Vec<f64> = (1..=threads)
        .map(|rank| (rank as f64).powf(-power))
        .collect();
    shuffle(random, &mut demand);
    let total: f64 = demand.iter().sum();
    let makers: Vec<usize> = (0..1 + random.index(3))
        .map(|_| random.index(threads))
        .collect();
    let reads: Vec<usize> = (0..threads).map(|_| random.index(makers.len())).collect();
    let own = random.unit();
    let memory = total * between(random, 0.45, 1.1);
    let link = total * between(random, 0.3, 1.0);
    let hop = between(random, 0.2, 1.5);
    Box::new(move |nodes| {
        let count = nodes_of(nodes);
        let mut load = vec![0.0; count];
        let mut crossing = 0.0;
        for thread in 0..threads {
            let at = nodes[makers[reads[thread]]];
            load[nodes[thread]] += demand[thread] * own;
            load[at] += demand[thread] * (1.0 - own);
            if at != nodes[thread] {
                crossing += demand[thread] * (1.0 - own);
            }
        }
        let wait = |load: f64, limit: f64| 1.0 / (1.0 - (load / limit).min(0.95));
        let sum = (0..threads).map(|thread| {
            let at = nodes[makers[reads[thread]]];
            let far = if at == nodes[thread] {
                0.0
            } else {
                hop * wait(crossing, link)
            };
            let local = own * wait(load[nodes[thread]], memory);
            demand[thread] * (local + (1.0 - own) * (wait(load[at], memory) + far))
        });
        sum.sum()
    })
}

/// Threads send to each other along a graph; a last-level cache holds the buffers of so many.
fn messages(random: &mut Random, threads: usize) -> Law {
    let mut order: Vec<usize> = (0..threads).collect();
    if random.index(2) == 0 {
        shuffle(random, &mut order);
    }
    let mut edges: Vec<(usize, usize, f64)> = Vec::new();
    let kind = random.index(4);
    for at in 1..threads {
        let volume = between(random, 0.5, 2.0);
        let other = match kind {
            // A pipeline, a grid of three columns, a tree, a master with workers.
            0 => at - 1,
            1 => at.saturating_sub(3),
            2 => (at - 1) / 2,
            _ => 0,
        };
        edges.push((order[at], order[other], volume));
        if kind == 1 && at % 3 != 0 {
            edges.push((order[at], order[at - 1], volume));
        }
    }
    let remote = between(random, 0.3, 3.0);
    let crowd = random.unit() * 0.6;
    let buffers: Vec<f64> = (0..threads).map(|_| between(random, 0.5, 2.0)).collect();
    let room = buffers.iter().sum::<f64>() / 2.0;
    let base = threads as f64 * between(random, 0.2, 1.0);
    Box::new(move |nodes| {
        let cut = edges.iter().filter(|(a, b, _)| nodes[*a] != nodes[*b]);
        let cut: f64 = cut.map(|(_, _, volume)| volume).sum();
        let mut held = vec![0.0; nodes_of(nodes)];
        for (thread, &node) in nodes.iter().enumerate() {
            held[node] += buffers[thread];
        }
        let crowded = held
            .iter()
            .map(|held| 1.0 / (1.0 + (-8.0 * (held / room - 1.0)).exp()));
        base + remote * cut + crowd * base * crowded.sum::<f64>()
    })
}

/// Costs in steps: a group that is whole on one node runs from cache, one that is torn in two reads
/// remotely, one that is torn in more pieces does so twice.
fn steps(random: &mut Random, threads: usize) -> Law {
    let groups = groups(random, threads);
    let count = groups.iter().max().unwrap() + 1;
    let weight: Vec<f64> = (0..count).map(|_| between(random, 0.5, 2.0)).collect();
    let (torn, scattered) = (between(random, 1.2, 2.0), between(random, 1.1, 1.5));
    let uneven = random.unit() * 0.5;
    Box::new(move |nodes| {
        let cost = (0..count).map(|group| {
            let own = (0..threads).filter(|&thread| groups[thread] == group);
            let on: Vec<usize> = own.map(|thread| nodes[thread]).collect();
            let mut pieces = on.clone();
            pieces.sort_unstable();
            pieces.dedup();
            let lone = pieces
                .iter()
                .filter(|&&node| on.iter().filter(|at| **at == node).count() == 1);
            let lone = lone.count();
            weight[group]
                * match pieces.len() {
                    1 => 1.0,
                    2 if lone == 0 => torn,
                    _ => torn * scattered,
                }
        });
        let mut load = vec![0usize; nodes_of(nodes)];
        nodes.iter().for_each(|&node| load[node] += 1);
        let most = *load.iter().max().unwrap() as f64;
        cost.sum::<f64>() * (1.0 + uneven * (most / (threads as f64 / 2.0) - 1.0).max(0.0))
    })
}

/// Phases with a barrier after each: in each some threads are active, and the busiest node decides.
fn phases(random: &mut Random, threads: usize) -> Law {
    let count = 2 + random.index(5);
    let stripes = random.index(2) == 0;
    let phases: Vec<Vec<f64>> = (0..count)
        .map(|phase| {
            let active = |thread: usize, random: &mut Random| {
                if stripes {
                    (thread / 2) % count == phase
                } else {
                    random.index(count) == 0
                }
            };
            (0..threads)
                .map(|thread| {
                    if active(thread, random) {
                        between(random, 0.5, 2.0)
                    } else {
                        0.05
                    }
                })
                .collect()
        })
        .collect();
    let shared = random.unit() * 0.5;
    Box::new(move |nodes| {
        let phase = |work: &Vec<f64>| {
            let mut load = vec![0.0; nodes_of(nodes)];
            nodes
                .iter()
                .zip(work)
                .for_each(|(&node, work)| load[node] += work);
            let most = load.iter().copied().fold(0.0, f64::max);
            let used = load.iter().filter(|load| **load > 0.3).count() as f64;
            most + shared * used
        };
        phases.iter().map(phase).sum()
    })
}

/// Some pairs of threads disturb, others help each other; the first thread's node is good for some;
/// and each placement has a part of its own that nothing explains.
fn rugged(random: &mut Random, threads: usize) -> Law {
    let mut pairs = Vec::new();
    for a in 0..threads {
        for b in a + 1..threads {
            if random.index(4) == 0 {
                pairs.push((a, b, random.normal()));
            }
        }
    }
    let fond: Vec<f64> = (0..threads).map(|_| 0.6 * random.normal()).collect();
    let own = 0.3;
    let salt = random.bits();
    Box::new(move |nodes| {
        let near = pairs.iter().filter(|(a, b, _)| nodes[*a] == nodes[*b]);
        let near: f64 = near.map(|(_, _, effect)| effect).sum();
        let first: f64 = (1..threads)
            .filter(|&thread| nodes[thread] == nodes[0])
            .map(|thread| fond[thread])
            .sum();
        let code = nodes.iter().fold(salt, |code, &node| {
            code.wrapping_mul(31).wrapping_add(node as u64)
        });
        20.0 + near + first + own * Random::new(code).normal()
    })
}
