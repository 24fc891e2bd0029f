//! Modelled machines and workloads with hidden parameters, for comparing searches.
//!
//! `tuned` and `varied` hold the families the search was built with. `unseen` holds families with other
//! laws, written to judge it: nothing in the search is to be changed to please them.

pub mod tuned;
pub mod unseen;
pub mod varied;

use placement::{Classes, CpuSet, Placement, Random, Site, Threads};
use topology::Machine;

/// The cost of every class of placements of one modelled workload.
pub struct World {
    pub name: String,
    pub site: Site,
    pub threads: Threads,
    pub placements: Vec<Placement>,
    pub costs: Vec<f64>,
    /// The coefficient of variation of a run.
    pub noise: f64,
}

impl World {
    /// A world of one law: `law(nodes)` is the cost where thread `i` is on node `nodes[i]`.
    pub fn new(
        name: String,
        machine: &str,
        threads: usize,
        noise: f64,
        law: impl Fn(&[usize]) -> f64,
    ) -> World {
        let site = Site::new(&Machine::parse(machine).unwrap());
        let threads = Threads::in_groups(threads, 1).unwrap();
        let classes = Classes::new(&site, &threads).unwrap();
        let mut placements: Vec<Placement> = classes.iter().collect();
        // To be looked up.
        placements.sort();
        let node = |set: &CpuSet| site.machine().node_of_cpu(set.as_slice()[0]).unwrap();
        let nodes = |placed: &Placement| placed.sets().iter().map(node).collect::<Vec<_>>();
        let costs = placements
            .iter()
            .map(|placed| law(&nodes(placed)))
            .collect();
        World {
            name,
            site,
            threads,
            placements,
            costs,
            noise,
        }
    }

    /// The cost of one run.
    pub fn run(&self, cost: f64, random: &mut Random) -> f64 {
        cost * (self.noise * random.normal()).exp()
    }

    /// The part of the best gain over the mean that this cost has.
    pub fn gain(&self, cost: f64) -> f64 {
        let mean = self.costs.iter().sum::<f64>() / self.costs.len() as f64;
        let least = self.costs.iter().copied().fold(f64::INFINITY, f64::min);
        (mean - cost) / (mean - least).max(1e-12)
    }
}

/// Machines and numbers of threads: 462, 1,749 and 15,400 classes.
pub const MACHINES: [(&str, usize); 5] = [
    ("2x6", 12),
    ("2x6", 12),
    ("2x6", 12),
    ("2x8", 12),
    ("4x3", 12),
];

/// The cost where each thread is on a node.
pub type Law = Box<dyn Fn(&[usize]) -> f64>;

/// How many nodes there are up to the last that has threads.
pub fn nodes_of(nodes: &[usize]) -> usize {
    nodes.iter().max().unwrap() + 1
}

/// A value between two bounds, small ones as likely as large ones.
pub fn between(random: &mut Random, least: f64, most: f64) -> f64 {
    least * (most / least).powf(random.unit())
}

/// One of these.
pub fn one<T: Clone>(random: &mut Random, of: &[T]) -> T {
    of[random.index(of.len())].clone()
}

/// Threads in groups: runs, stripes or by chance.
pub fn groups(random: &mut Random, threads: usize) -> Vec<usize> {
    let count = one(random, &[2, 3, 4, 6]);
    let mut groups: Vec<usize> = match random.index(3) {
        0 => (0..threads)
            .map(|thread| thread * count / threads)
            .collect(),
        1 => (0..threads).map(|thread| thread % count).collect(),
        _ => {
            let mut groups: Vec<usize> = (0..threads).map(|thread| thread % count).collect();
            shuffle(random, &mut groups);
            groups
        }
    };
    groups.truncate(threads);
    groups
}

pub fn shuffle<T>(random: &mut Random, things: &mut [T]) {
    for at in (1..things.len()).rev() {
        things.swap(at, random.index(at + 1));
    }
}
