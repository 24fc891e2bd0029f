//! The family the search was built with: private, grouped and common data; remote factor, cache
//! sharing and contention, saturated memory; the slowest thread or node decides.

use placement::Random;

use super::{MACHINES, World, between, groups, one};

pub fn world(seed: u64) -> World {
    let random = &mut Random::new(seed.wrapping_mul(0x1234_5678_9abc_def1));
    let (machine, threads) = one(random, &MACHINES);
    let groups = groups(random, threads);
    let kind = random.index(3);
    let demand: Vec<f64> = (0..threads)
        .map(|thread| match kind {
            0 => 1.0,
            1 => [1.6, 0.4][thread % 2],
            _ => between(random, 0.3, 3.0),
        })
        .collect();
    let grouped = random.unit();
    let common = random.unit() * (1.0 - grouped);
    let private = 1.0 - grouped - common;
    let home = if random.index(2) == 0 {
        0
    } else {
        random.index(threads)
    };
    let remote = between(random, 1.2, 2.5);
    let sharing = random.unit() * 0.8;
    let contention = random.unit();
    let room = between(random, 0.3, 1.2) * threads as f64 / 2.0;
    let bandwidth = between(random, 0.4, 2.0) * threads as f64 / 2.0;
    let compute = between(random, 0.1, 1.0);
    let noise = one(random, &[0.0, 0.01, 0.03, 0.05]);
    let name = format!("tuned {seed} on {machine}");
    let law = move |nodes: &[usize]| {
        let count = nodes.iter().max().unwrap() + 1;
        let mut memory = vec![0.0; count];
        let mut used = vec![0.0; count];
        for (thread, &node) in nodes.iter().enumerate() {
            used[node] += demand[thread];
        }
        let mut slowest = Vec::new();
        for (thread, &node) in nodes.iter().enumerate() {
            let fellows = (0..threads)
                .filter(|&other| nodes[other] == node && groups[other] == groups[thread])
                .count() as f64;
            let first = (0..threads)
                .find(|&other| groups[other] == groups[thread])
                .unwrap();
            let misses = 1.0 + contention * (used[node] / room - 1.0).max(0.0);
            let kept = 1.0 - sharing * (1.0 - 1.0 / fellows);
            let parts = [
                (private, node),
                (grouped * kept, nodes[first]),
                (common, nodes[home]),
            ];
            let mut time = compute * demand[thread];
            for (part, at) in parts {
                let bytes = part * demand[thread] * misses;
                memory[at] += bytes;
                time += bytes * if at == node { 1.0 } else { remote };
            }
            slowest.push(time);
        }
        slowest.extend(memory.iter().map(|bytes| bytes / bandwidth * 3.0));
        slowest
            .iter()
            .map(|time| time.powi(6))
            .sum::<f64>()
            .powf(1.0 / 6.0)
    };
    World::new(name, machine, threads, noise, law)
}
