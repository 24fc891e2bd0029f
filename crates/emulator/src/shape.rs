//! What machine to emulate.

use topology::{CacheKind, Machine};

use crate::error::{Error, Result};

/// The most nodes that are emulated, those without cores included.
pub const MAX_NODES: usize = 32;

/// The most hardware threads that are emulated.
pub const MAX_CPUS: usize = 128;

/// Memory of each node where nothing else is asked for, in MiB.
pub const DEFAULT_MEMORY_MIB: u64 = 512;

/// The least memory of a node, in MiB: less and the kernel does not put it to use.
pub const MIN_MEMORY_MIB: u64 = 64;

/// The least memory of all nodes together, in MiB: the kernel and the modules take 100.
pub const MIN_TOTAL_MIB: u64 = 256;

/// The largest distance that firmware tables hold; 255 means out of reach.
const MAX_DISTANCE: u32 = 254;

/// The distance of a node that was added without being described.
const ADDED: u32 = 20;

/// A node of the emulated machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Its cores; 0 for memory only.
    pub cores: usize,
    /// Its memory in MiB.
    pub memory_mib: u64,
}

/// One level of cache in the model of the access counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Capacity of each cache of this level, in bytes.
    pub bytes: u64,
    /// The cache that each cpu uses, from 0 without gaps.
    pub of_cpu: Vec<usize>,
}

/// The machine to emulate: nodes, cores, distances, and the caches to model.
///
/// Cpus are numbered node by node and core by core, the hardware threads of a core next to each
/// other, whatever the description numbers them as. A description's memory is not taken over:
/// each node gets what is asked for.
///
/// Invariants: 1 to [`MAX_NODES`] nodes, of which the first has cores; 1 to [`MAX_CPUS`] cpus;
/// distances form a full matrix of 10 to 254 with 10 on the diagonal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    name: String,
    nodes: Vec<Node>,
    threads: usize,
    /// Row-major.
    distances: Vec<u32>,
    /// Nearest to the core first; the last is the last-level cache.
    caches: [Level; 3],
}

impl Shape {
    /// The machine that is described, with `memory_mib` MiB on each node and `memory_only` more
    /// nodes that have no cores.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] for a machine that cannot be emulated, with the reason.
    pub fn of(machine: &Machine, memory_mib: u64, memory_only: usize) -> Result<Shape> {
        let wrong = |why: String| Error::Shape {
            machine: machine.name().to_owned(),
            why,
        };
        let count = machine.nodes().len().saturating_add(memory_only);
        if count > MAX_NODES {
            let why = format!("it has {count} nodes, at most {MAX_NODES} are emulated");
            return Err(wrong(why));
        }
        let cpus = machine.cpus();
        if cpus > MAX_CPUS {
            let why = format!("it has {cpus} hardware threads, at most {MAX_CPUS} are emulated");
            return Err(wrong(why));
        }
        let total = memory_mib.saturating_mul(count as u64);
        if memory_mib < MIN_MEMORY_MIB || total < MIN_TOTAL_MIB {
            let why = format!(
                "{memory_mib} MiB on each of {count} nodes are too little: give each at least \
                 {MIN_MEMORY_MIB}, and all together {MIN_TOTAL_MIB}"
            );
            return Err(wrong(why));
        }
        let available = memory::available().unwrap_or(u64::MAX) >> 20;
        if total > available {
            let why = format!(
                "{count} nodes with {memory_mib} MiB each take {total} MiB, {available} MiB are \
                 available: give each node less (--mem)"
            );
            return Err(wrong(why));
        }
        if machine.nodes()[0].cores.is_empty() {
            return Err(wrong("its first node has no cores".to_owned()));
        }
        let threads = threads(machine).ok_or_else(|| {
            wrong("its cores have different numbers of hardware threads".to_owned())
        })?;
        let cores = machine.nodes().iter().map(|node| node.cores.len());
        let cores = cores.chain(std::iter::repeat_n(0, memory_only));
        Ok(Shape {
            name: machine.name().to_owned(),
            nodes: cores.map(|cores| Node { cores, memory_mib }).collect(),
            threads,
            distances: distances(machine, count),
            caches: caches(machine),
        })
    }

    /// What it was made from, in a word.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Number of cores.
    pub fn cores(&self) -> usize {
        self.nodes.iter().map(|node| node.cores).sum()
    }

    /// Hardware threads of each core.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Number of hardware threads.
    pub fn cpus(&self) -> usize {
        self.cores() * self.threads
    }

    /// The node of each cpu.
    pub fn node_of_cpu(&self) -> Vec<usize> {
        let nodes = self.nodes.iter().enumerate();
        nodes
            .flat_map(|(at, node)| std::iter::repeat_n(at, node.cores * self.threads))
            .collect()
    }

    /// How far node `b` is from node `a`; 10 is local.
    pub fn distance(&self, a: usize, b: usize) -> u32 {
        self.distances[a * self.nodes.len() + b]
    }

    /// The caches that the access counter models: first, second and last level.
    pub fn caches(&self) -> &[Level; 3] {
        &self.caches
    }

    /// Divides the capacity of all caches by `by` (at least 1), so that small data sets exceed
    /// them as large ones do the real ones. No cache gets smaller than 16 lines.
    #[must_use]
    pub fn with_caches_scaled_down(mut self, by: u64) -> Shape {
        for level in &mut self.caches {
            level.bytes = (level.bytes / by.max(1)).max(16 * 64);
        }
        self
    }

    /// Sets the capacities of the three levels, in bytes.
    #[must_use]
    pub fn with_cache_bytes(mut self, bytes: [u64; 3]) -> Shape {
        for (level, bytes) in self.caches.iter_mut().zip(bytes) {
            level.bytes = bytes.max(16 * 64);
        }
        self
    }
}

/// Hardware threads of each core, if all have the same number.
fn threads(machine: &Machine) -> Option<usize> {
    let mut counts = machine
        .nodes()
        .iter()
        .flat_map(|node| &node.cores)
        .map(|core| core.cpus.len());
    let first = counts.next()?;
    counts.all(|count| count == first).then_some(first)
}

/// The matrix of `count` nodes, the last of which the machine may not have.
fn distances(machine: &Machine, count: usize) -> Vec<u32> {
    let known = machine.nodes().len();
    let pairs = (0..count).flat_map(|a| (0..count).map(move |b| (a, b)));
    let distance = |(a, b)| {
        if a == b {
            10
        } else if a < known && b < known {
            machine.distance(a, b).min(MAX_DISTANCE)
        } else {
            ADDED
        }
    };
    pairs.map(distance).collect()
}

/// Capacities in bytes where a description says nothing: 32 KiB, 256 KiB, 8 MiB.
const DEFAULTS: [u64; 3] = [32 << 10, 256 << 10, 8 << 20];

/// First, second and last level. What the description does not say is taken as one cache a core
/// for the first two, one a node for the last.
fn caches(machine: &Machine) -> [Level; 3] {
    let cores = machine.nodes().iter().flat_map(|node| &node.cores);
    let per_core: Vec<&[u32]> = cores.map(|core| core.cpus.as_slice()).collect();
    let node = |node: &topology::Node| -> Vec<u32> {
        let cores = node.cores.iter();
        cores.flat_map(|core| core.cpus.iter().copied()).collect()
    };
    let nodes: Vec<Vec<u32>> = machine.nodes().iter().map(node).collect();
    let per_node: Vec<&[u32]> = nodes.iter().map(Vec::as_slice).collect();
    let last = machine
        .nodes()
        .iter()
        .flat_map(|node| &node.caches)
        .filter(|cache| cache.kind != CacheKind::Instruction)
        .map(|cache| cache.level)
        .max()
        .unwrap_or(3)
        .max(3);
    [
        level(machine, 1, DEFAULTS[0], &per_core),
        level(machine, 2, DEFAULTS[1], &per_core),
        level(machine, last, DEFAULTS[2], &per_node),
    ]
}

/// One level as described, or with `bytes` in each of the `groups` of cpus.
fn level(machine: &Machine, level: u8, bytes: u64, groups: &[&[u32]]) -> Level {
    let data = |cache: &&topology::Cache| {
        cache.level == level && cache.kind != CacheKind::Instruction && cache.bytes > 0
    };
    let nodes = machine.nodes();
    let all = nodes.iter().flat_map(|node| &node.caches).filter(data);
    // A cache that spans nodes is listed under each: its first cpu tells it from the others.
    let mut described: Vec<&topology::Cache> = all.collect();
    described.dedup_by_key(|cache| cache.cpus.first().copied());
    let complete = |cpu: &u32| described.iter().any(|cache| cache.cpus.contains(cpu));
    let cpus = || {
        let cores = nodes.iter().flat_map(|node| &node.cores);
        cores.flat_map(|core| core.cpus.iter().copied())
    };
    let described_groups: Vec<&[u32]> = described
        .iter()
        .map(|cache| cache.cpus.as_slice())
        .collect();
    let (bytes, groups) = match described.first() {
        Some(first) if cpus().all(|cpu| complete(&cpu)) => (first.bytes, &described_groups[..]),
        _ => (bytes, groups),
    };
    let group = |cpu: u32| groups.iter().position(|cpus| cpus.contains(&cpu));
    Level {
        bytes,
        of_cpu: cpus().map(|cpu| group(cpu).unwrap_or(0)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(spec: &str) -> Shape {
        Shape::of(&Machine::parse(spec).unwrap(), 128, 0).unwrap()
    }

    #[test]
    fn a_shipped_machine_keeps_its_nodes_distances_and_caches() {
        let shape = shape("opteron-8387");
        assert_eq!((shape.nodes().len(), shape.cores()), (4, 16));
        assert_eq!((shape.distance(0, 3), shape.distance(0, 1)), (22, 16));
        let [first, second, last] = shape.caches();
        assert_eq!(
            (first.bytes, second.bytes, last.bytes),
            (64 << 10, 512 << 10, 6 << 20)
        );
        assert_eq!(second.of_cpu, (0..16).collect::<Vec<_>>());
        assert_eq!(last.of_cpu[3..5], [0, 1]);
        assert_eq!(shape.node_of_cpu()[7..9], [1, 2]);
    }

    #[test]
    fn siblings_are_renumbered_and_share_their_caches() {
        let shape = shape("xeon-4657l");
        assert_eq!((shape.threads(), shape.cpus()), (2, 96));
        assert_eq!(shape.caches()[0].of_cpu[..4], [0, 0, 1, 1]);
        assert_eq!(shape.caches()[2].of_cpu[23..25], [0, 1]);
    }

    #[test]
    fn without_a_description_there_is_one_last_level_cache_a_node() {
        let shape = shape("2x3");
        assert_eq!(shape.caches()[2].of_cpu, [0, 0, 0, 1, 1, 1]);
        assert_eq!(shape.caches()[2].bytes, DEFAULTS[2]);
        let small = shape.with_caches_scaled_down(16);
        assert_eq!(small.caches()[0].bytes, 2 << 10);
        assert_eq!(
            small.with_caches_scaled_down(u64::MAX).caches()[2].bytes,
            1024
        );
    }

    #[test]
    fn nodes_without_cores_are_added_at_the_end() {
        let machine = Machine::parse("2x2").unwrap();
        let shape = Shape::of(&machine, 128, 2).unwrap();
        let cores: Vec<usize> = shape.nodes().iter().map(|node| node.cores).collect();
        assert_eq!(cores, [2, 2, 0, 0]);
        assert_eq!((shape.distance(3, 3), shape.distance(0, 3)), (10, 20));
        assert_eq!(shape.cpus(), 4);
    }

    #[test]
    fn what_cannot_be_emulated_is_refused_with_the_reason() {
        let refused = |spec: &str, mib, memory_only| {
            let machine = Machine::parse(spec).unwrap();
            Shape::of(&machine, mib, memory_only)
                .unwrap_err()
                .to_string()
        };
        assert!(refused("33x1", 64, 0).contains("at most 32"));
        assert!(refused("2x1", 128, usize::MAX).contains("at most 32"));
        assert!(refused("4x33", 64, 0).contains("at most 128"));
        assert!(refused("1x1", 64, 0).contains("256"));
        assert!(refused("4x4", 1, 0).contains("at least 64"));
        assert!(refused("4x4", u64::MAX / 2, 0).contains("--mem"));
    }
}
