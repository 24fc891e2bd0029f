//! The machine as data, the same whichever source it was read from.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use crate::error::{Error, Result};
use crate::rates::Rates;

/// The most hardware threads a machine may have.
pub const MAX_CPUS: usize = 4096;

/// The most NUMA nodes a machine may have.
pub const MAX_NODES: usize = 256;

/// The distance of a node to itself, and the unit of all distances: 20 is twice as far.
pub(crate) const LOCAL: u32 = 10;

/// The distance between two nodes where the source says nothing.
pub(crate) const REMOTE: u32 = 20;

/// Where a description comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The running system, restricted to the cpus this process may use.
    Live,
    /// An hwloc XML file.
    Xml(PathBuf),
    /// A synthetic description, as given.
    Synthetic(String),
    /// One of [`SHIPPED`](crate::SHIPPED).
    Shipped(&'static str),
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Instructions and data.
    Unified,
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u8,
    /// What it holds.
    pub kind: CacheKind,
    /// Capacity in bytes; 0 where the source does not say.
    pub bytes: u64,
    /// The cpus of this machine that share it, ascending. A cache that is shared across nodes
    /// is listed, whole, under each of them.
    pub cpus: Vec<u32>,
}

/// One core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Core {
    /// Operating system numbers of its hardware threads (SMT siblings), ascending; never empty.
    pub cpus: Vec<u32>,
    /// Number of the processor package (socket) it is in, where the source says.
    pub package: Option<u32>,
}

/// One NUMA node: a piece of memory with the cores it is local to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Position in [`Machine::nodes`]: what all of Atoll calls "the node".
    pub index: usize,
    /// The operating system's number, for `mbind` and `move_pages`.
    pub os_index: u32,
    /// Its cores; empty for a node that is memory only (CXL, HBM).
    pub cores: Vec<Core>,
    /// Capacity of its memory in bytes; 0 where the source does not say.
    pub memory_bytes: u64,
    /// Free memory in bytes at the time of the reading; only the live machine has it.
    pub free_bytes: Option<u64>,
    /// The caches its cores use, highest level first, then by first cpu.
    pub caches: Vec<Cache>,
}

impl Node {
    /// Number of hardware threads.
    pub fn cpus(&self) -> usize {
        self.cores.iter().map(|core| core.cpus.len()).sum()
    }
}

/// A machine, as one of the [sources](Source) describes it. It never changes once made.
///
/// Invariants:
/// 1. There is at least one node and at least one cpu; at most [`MAX_NODES`] and [`MAX_CPUS`].
/// 2. `nodes()[i].index == i`.
/// 3. Each cpu is in exactly one core of exactly one node.
/// 4. Distances form a full matrix; the diagonal is 10 and nothing is below 10. It need not be
///    symmetric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) source: Source,
    pub(crate) nodes: Vec<Node>,
    /// Row-major, `nodes.len()` squared (invariant 4).
    pub(crate) distances: Vec<u32>,
    pub(crate) notes: Vec<String>,
    pub(crate) rates: Option<Rates>,
}

impl Machine {
    /// The nodes, by index. Never empty.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// How far node `b` is from node `a`, by index: 10 is local, 20 twice as far. A node that
    /// does not exist is infinitely far (`u32::MAX`).
    pub fn distance(&self, a: usize, b: usize) -> u32 {
        let count = self.nodes.len();
        if a >= count || b >= count {
            return u32::MAX;
        }
        self.distances[a * count + b]
    }

    /// All nodes, nearest to `node` first: itself, then by distance, then by index.
    pub fn nearest(&self, node: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|&other| (other != node, self.distance(node, other), other));
        order
    }

    /// Number of hardware threads.
    pub fn cpus(&self) -> usize {
        self.nodes.iter().map(Node::cpus).sum()
    }

    /// Number of cores.
    pub fn cores(&self) -> usize {
        self.nodes.iter().map(|node| node.cores.len()).sum()
    }

    /// Total memory in bytes, over all nodes.
    pub fn memory_bytes(&self) -> u64 {
        self.nodes
            .iter()
            .fold(0, |sum, node| sum.saturating_add(node.memory_bytes))
    }

    /// The node that the operating system's cpu number belongs to.
    pub fn node_of_cpu(&self, cpu: u32) -> Option<usize> {
        self.nodes
            .iter()
            .find(|node| node.cores.iter().any(|core| core.cpus.contains(&cpu)))
            .map(|node| node.index)
    }

    /// The same machine as an emulator or a synthetic description numbers it: nodes and cpus from 0 without gaps, node
    /// by node, core by core, the hardware threads of a core next to each other. Nodes, cores and caches stay in their
    /// order, so the cpus of both machines correspond one by one as [`Core::cpus`] lists them.
    ///
    /// ```
    /// let xeon = topology::Machine::parse("xeon-4657l")?;
    /// assert_eq!(xeon.nodes()[0].cores[1].cpus, [1, 49]);
    /// assert_eq!(xeon.in_order().nodes()[0].cores[1].cpus, [2, 3]);
    /// # Ok::<(), topology::Error>(())
    /// ```
    #[must_use]
    pub fn in_order(&self) -> Machine {
        let mut machine = self.clone();
        let mut numbers = std::collections::HashMap::new();
        for node in &mut machine.nodes {
            node.os_index = node.index as u32;
            for cpu in node.cores.iter_mut().flat_map(|core| &mut core.cpus) {
                let next = numbers.len() as u32;
                *cpu = *numbers.entry(*cpu).or_insert(next);
            }
        }
        for cache in machine.nodes.iter_mut().flat_map(|node| &mut node.caches) {
            for cpu in &mut cache.cpus {
                // Each is in a core, by invariant 3.
                *cpu = numbers.get(cpu).copied().unwrap_or(*cpu);
            }
            cache.cpus.sort_unstable();
        }
        machine
    }

    /// The machine with only these of its nodes, by index, in ascending order and numbered anew from 0; their numbers in the operating
    /// system stay. A cache loses the cpus of the others.
    ///
    /// ```
    /// let machine = topology::Machine::parse("4x2")?.only(&[3, 1])?;
    /// assert_eq!(machine.nodes().len(), 2);
    /// assert_eq!(machine.nodes()[0].os_index, 1);
    /// assert_eq!(machine.nodes()[1].cores[0].cpus, [6]);
    /// # Ok::<(), topology::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Nodes`] for a node that the machine has not; [`Error::NoCpu`] if none of them has a cpu.
    pub fn only(&self, nodes: &[usize]) -> Result<Machine> {
        let mut kept = nodes.to_vec();
        kept.sort_unstable();
        kept.dedup();
        let all = self.nodes.len();
        if let Some(absent) = kept.iter().find(|node| **node >= all) {
            return Err(Error::Nodes {
                machine: self.name.clone(),
                node: *absent,
                nodes: all,
            });
        }
        let mut machine = self.clone();
        machine.nodes.retain(|node| kept.contains(&node.index));
        let cpus: BTreeSet<u32> = machine.nodes.iter().flat_map(cpus_of).collect();
        for cache in machine.nodes.iter_mut().flat_map(|node| &mut node.caches) {
            cache.cpus.retain(|cpu| cpus.contains(cpu));
        }
        let from = |a: &usize| {
            kept.iter()
                .map(|b| self.distance(*a, *b))
                .collect::<Vec<_>>()
        };
        machine.distances = kept.iter().flat_map(from).collect();
        machine.assembled()
    }

    /// A short name: `live`, the name of the file without its ending, or what was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The processors in words, where the source says; may be empty.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Where the description comes from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// What could not be found out, and what was assumed instead; usually empty.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How fast its parts are and what power they take, where its description says.
    pub fn rates(&self) -> Option<&Rates> {
        self.rates.as_ref()
    }

    /// The same machine with other rates, such as measured ones.
    #[must_use]
    pub fn with_rates(mut self, rates: Rates) -> Machine {
        self.rates = Some(rates);
        self
    }

    /// Brings the parts into their documented order and checks the invariants. Distances that
    /// do not form a matrix are taken as unknown.
    pub(crate) fn assembled(mut self) -> Result<Machine> {
        // First, as a matrix over too many nodes would be large.
        self.check()?;
        let count = self.nodes.len();
        if self.distances.len() != count * count {
            self.distances = vec![REMOTE; count * count];
        }
        for (at, distance) in self.distances.iter_mut().enumerate() {
            let local = at / count == at % count;
            *distance = if local { LOCAL } else { (*distance).max(LOCAL) };
        }
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.index = index;
            node.caches.sort_by_key(|cache| {
                (
                    std::cmp::Reverse(cache.level),
                    cache.kind,
                    cache.cpus.first().copied(),
                )
            });
        }
        Ok(self)
    }

    /// Invariants 1 and 3; the others hold by construction.
    fn check(&self) -> Result<()> {
        let spec = || self.name.clone();
        let (nodes, cpus) = (self.nodes.len(), self.cpus());
        if nodes > MAX_NODES {
            let why = format!("it has {nodes} nodes, at most {MAX_NODES} are supported");
            return Err(Error::TooLarge { spec: spec(), why });
        }
        if cpus > MAX_CPUS {
            let why = format!("it has {cpus} cpus, at most {MAX_CPUS} are supported");
            return Err(Error::TooLarge { spec: spec(), why });
        }
        let mut all: Vec<u32> = Vec::with_capacity(cpus);
        for core in self.nodes.iter().flat_map(|node| &node.cores) {
            all.extend(&core.cpus);
        }
        if all.is_empty() {
            return Err(Error::NoCpu { spec: spec() });
        }
        all.sort_unstable();
        if let Some(twice) = all.windows(2).find(|pair| pair[0] == pair[1]) {
            let why = format!("cpu {} is in two cores", twice[0]);
            return Err(Error::Synthetic { spec: spec(), why });
        }
        Ok(())
    }
}

/// All hardware threads of a node.
fn cpus_of(node: &Node) -> impl Iterator<Item = u32> {
    node.cores.iter().flat_map(|core| core.cpus.iter().copied())
}

/// `{"name", "about", "source", "cpus", "cores", "memory_bytes", "nodes": [...], "distances": [[...]],
/// "notes": [...]}`; sizes in bytes.
impl Serialize for Machine {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let rows: Vec<&[u32]> = self.distances.chunks(self.nodes.len().max(1)).collect();
        let mut out = serializer.serialize_struct("Machine", 9)?;
        out.serialize_field("name", &self.name)?;
        out.serialize_field("about", &self.about)?;
        out.serialize_field("source", &self.source)?;
        out.serialize_field("cpus", &self.cpus())?;
        out.serialize_field("cores", &self.cores())?;
        out.serialize_field("memory_bytes", &self.memory_bytes())?;
        out.serialize_field("nodes", &self.nodes)?;
        out.serialize_field("distances", &rows)?;
        out.serialize_field("notes", &self.notes)?;
        out.end()
    }
}
