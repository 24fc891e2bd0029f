//! Families that judge the search: none of its settings was chosen by looking at them.

use placement::Random;

use super::{Law, World, between, nodes_of, one, shuffle};

/// Machines and numbers of threads: 462, 1,749, 1,716, 5,775 and 15,400 classes.
const MACHINES: [(&str, usize); 6] = [
    ("2x6", 12),
    ("2x8", 12),
    ("2x6", 12),
    ("2x7", 14),
    ("3x4", 12),
    ("4x3", 12),
];

/// World `seed` of the family `seed % 6`.
pub fn world(seed: u64) -> World {
    let random = &mut Random::new(seed.wrapping_mul(0x9d2c_5680_ca87_6e4b) ^ 0x51ed);
    let (machine, threads) = MACHINES[(seed / 6) as usize % MACHINES.len()];
    let noise = one(random, &[0.0, 0.02, 0.05]);
    let (name, law): (&str, Law) = match seed % 6 {
        0 => ("torus", torus(random, threads)),
        1 => ("windows", windows(random, threads)),
        2 => ("locks", locks(random, threads)),
        3 => ("footprints", footprints(random, threads)),
        4 => ("reduction", reduction(random, threads)),
        _ => ("clocks", clocks(random, threads)),
    };
    World::new(
        format!("{name} {seed} on {machine}"),
        machine,
        threads,
        noise,
        law,
    )
}

/// The first numbers, in order or shuffled.
fn order(random: &mut Random, threads: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..threads).collect();
    if random.index(3) == 0 {
        shuffle(random, &mut order);
    }
    order
}

/// Each thread has a tile of a torus and exchanges its edges with four neighbours; the slowest
/// threads decide, and rows cost more than columns.
fn torus(random: &mut Random, threads: usize) -> Law {
    let order = order(random, threads);
    let wide = one(random, &[2, 3, 4]);
    let rows = threads.div_ceil(wide);
    let at = move |row: usize, column: usize| (row % rows * wide + column % wide).min(threads - 1);
    let work: Vec<f64> = (0..threads).map(|_| between(random, 0.8, 1.3)).collect();
    let (along, across) = (between(random, 0.05, 0.5), between(random, 0.05, 0.5));
    let crowd = random.unit() * 0.3;
    Box::new(move |nodes| {
        let mut load = vec![0.0; nodes_of(nodes)];
        nodes.iter().for_each(|&node| load[node] += 1.0);
        let time = |tile: usize| {
            let (row, column) = (tile / wide, tile % wide);
            let own = nodes[order[tile]];
            let far = |other: usize, cost: f64| {
                if nodes[order[other]] == own {
                    0.0
                } else {
                    cost
                }
            };
            work[tile]
                + far(at(row, column + 1), along)
                + far(at(row, column + wide - 1), along)
                + far(at(row + 1, column), across)
                + far(at(row + rows - 1, column), across)
                + crowd * load[own] / threads as f64
        };
        let sum: f64 = (0..threads).map(|tile| time(tile).powi(4)).sum();
        (sum / threads as f64).powf(0.25)
    })
}

/// An array lies where its parts were written; each thread reads a window of it, wherever that is.
/// A memory that is asked for more than its share gives it more slowly.
fn windows(random: &mut Random, threads: usize) -> Law {
    const PARTS: usize = 48;
    let stripe = one(random, &[1, 2, 4]);
    let writer: Vec<usize> = (0..PARTS)
        .map(|part| {
            if stripe == 4 {
                part * threads / PARTS
            } else {
                part / stripe % threads
            }
        })
        .collect();
    let common = random.index(2) == 0;
    let reads: Vec<(usize, usize)> = (0..threads)
        .map(|thread| {
            let length = 2 + random.index(PARTS / 3);
            let begin = if common {
                random.index(PARTS)
            } else {
                thread * PARTS / threads + random.index(6)
            };
            (begin, length)
        })
        .collect();
    let hop = between(random, 0.2, 1.2);
    let slope = between(random, 0.1, 2.0);
    let base = random.unit() * 4.0;
    Box::new(move |nodes| {
        let count = nodes_of(nodes);
        let mut asked = vec![0.0; count];
        let mut cost = base * threads as f64;
        for (thread, &(begin, length)) in reads.iter().enumerate() {
            for part in begin..begin + length {
                let home = nodes[writer[part % PARTS]];
                asked[home] += 1.0;
                cost += if home == nodes[thread] {
                    1.0
                } else {
                    1.0 + hop
                };
            }
        }
        let fair = asked.iter().sum::<f64>() / count as f64;
        let over = asked.iter().map(|asked| (asked - 1.2 * fair).max(0.0));
        cost + slope * over.sum::<f64>()
    })
}

/// Threads take locks in turn; a lock that was last held on another node takes longer to get, the
/// more so the more threads want it.
fn locks(random: &mut Random, threads: usize) -> Law {
    let count = 2 + random.index(5);
    let wants: Vec<Vec<f64>> = (0..count)
        .map(|lock| {
            let want = |thread: usize, random: &mut Random| match random.index(4) {
                0 => between(random, 0.2, 1.0),
                _ if thread % count == lock => between(random, 0.5, 2.0),
                _ => 0.0,
            };
            (0..threads).map(|thread| want(thread, random)).collect()
        })
        .collect();
    let handover = between(random, 0.5, 4.0);
    let base = threads as f64 * between(random, 0.3, 1.5);
    Box::new(move |nodes| {
        let lock = |wants: &Vec<f64>| {
            let all: f64 = wants.iter().sum();
            let mut held = vec![0.0; nodes_of(nodes)];
            nodes
                .iter()
                .zip(wants)
                .for_each(|(&node, want)| held[node] += want);
            let stays: f64 = held.iter().map(|held| (held / all.max(1e-9)).powi(2)).sum();
            all * (1.0 + handover * (1.0 - stays)).powf(1.3)
        };
        base + wants.iter().map(lock).sum::<f64>()
    })
}

/// Each thread has a working set, an interval or two of the data; a cache holds what the threads of
/// its node have together, each piece once, and what does not fit is read again.
fn footprints(random: &mut Random, threads: usize) -> Law {
    const DATA: usize = 64;
    let sets: Vec<u64> = (0..threads)
        .map(|thread| {
            let mut set = 0u64;
            for _ in 0..1 + random.index(2) {
                let begin = match random.index(3) {
                    0 => random.index(DATA),
                    _ => (thread * 2 + random.index(8)) * DATA / (2 * threads + 8),
                };
                for piece in begin..begin + 4 + random.index(12) {
                    set |= 1 << (piece % DATA);
                }
            }
            set
        })
        .collect();
    let all = sets.iter().fold(0, |all, set| all | set).count_ones();
    let room = f64::from(all) * between(random, 0.4, 0.9);
    let again = between(random, 0.5, 3.0);
    let base = f64::from(all) * random.unit();
    Box::new(move |nodes| {
        let mut held = vec![0u64; nodes_of(nodes)];
        nodes
            .iter()
            .zip(&sets)
            .for_each(|(&node, set)| held[node] |= set);
        let cost = held.iter().map(|held| {
            let held = f64::from(held.count_ones());
            held + again * (held - room).max(0.0)
        });
        base + cost.sum::<f64>()
    })
}

/// Results are joined pairwise, level by level; each level waits for its slowest pair. Before that
/// each thread reads from the one that had its input.
fn reduction(random: &mut Random, threads: usize) -> Law {
    let order = order(random, threads);
    let far = between(random, 0.3, 3.0);
    let growth = between(random, 0.7, 2.0);
    let jump = 1 + random.index(threads - 1);
    let input: Vec<f64> = (0..threads)
        .map(|_| between(random, 0.1, 1.0) * far)
        .collect();
    let base = between(random, 0.5, 3.0);
    Box::new(move |nodes| {
        let mut cost = base;
        let inputs = (0..threads).filter(|&at| nodes[at] != nodes[(at + jump) % threads]);
        cost += inputs.map(|at| input[at]).sum::<f64>() / threads as f64 * 4.0;
        let (mut step, mut size) = (1, 1.0);
        while step < threads {
            let pairs = (0..threads - step)
                .step_by(2 * step)
                .map(|at| (order[at], order[at + step]));
            let remote = pairs.clone().filter(|(a, b)| nodes[*a] != nodes[*b]);
            let share = remote.count() as f64 / pairs.count() as f64;
            // Some waiting is hidden.
            cost += size * (1.0 + far * share.sqrt());
            step *= 2;
            size *= growth;
        }
        cost
    })
}

/// A node's clock falls with the work of its threads, some of which use wide vectors; threads that
/// follow each other hand over data.
fn clocks(random: &mut Random, threads: usize) -> Law {
    let order = order(random, threads);
    let wide: Vec<f64> = (0..threads)
        .map(|_| {
            if random.index(3) == 0 {
                between(random, 1.5, 4.0)
            } else {
                1.0
            }
        })
        .collect();
    let total: f64 = wide.iter().sum();
    let fall = between(random, 0.2, 1.0);
    let hand = between(random, 0.02, 0.3);
    Box::new(move |nodes| {
        let mut work = vec![0.0; nodes_of(nodes)];
        nodes
            .iter()
            .zip(&wide)
            .for_each(|(&node, work_of)| work[node] += work_of);
        let clock = |node: usize| 1.0 / (1.0 + fall * (work[node] / total).powi(2) * 4.0);
        let slowest = (0..threads).map(|thread| wide[thread].sqrt() / clock(nodes[thread]));
        let slowest = slowest.fold(0.0, f64::max);
        let cut = (1..threads).filter(|&at| nodes[order[at]] != nodes[order[at - 1]]);
        slowest + hand * cut.count() as f64
    })
}
