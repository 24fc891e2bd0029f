//! The cpus that can be handed out, in the order that a mode gives them.

use std::collections::BTreeMap;
use std::str::FromStr;

use placement::CpuSet;
use serde::{Deserialize, Serialize};
use topology::Machine;

use crate::error::{Error, Result};

/// Which core is next (E6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The next core on the next node.
    Sparse,
    /// A node first, then the next node.
    Dense,
    /// On the node with most of the database's pages; released on that with the fewest.
    Adaptive,
}

impl Mode {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Sparse => "sparse",
            Mode::Dense => "dense",
            Mode::Adaptive => "adaptive",
        }
    }
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(name: &str) -> Result<Mode> {
        match name {
            "sparse" => Ok(Mode::Sparse),
            "dense" => Ok(Mode::Dense),
            "adaptive" => Ok(Mode::Adaptive),
            _ => Err(Error::Name {
                what: "mode",
                name: name.to_owned(),
                known: "sparse, dense, adaptive",
            }),
        }
    }
}

/// When the second hardware thread of a core is handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Siblings {
    /// When all cores of the machine have one.
    Last,
    /// When all cores of its node have one.
    Node,
    /// Never.
    Never,
}

impl FromStr for Siblings {
    type Err = Error;

    fn from_str(name: &str) -> Result<Siblings> {
        match name {
            "last" => Ok(Siblings::Last),
            "node" => Ok(Siblings::Node),
            "never" => Ok(Siblings::Never),
            _ => Err(Error::Name {
                what: "order of hardware threads",
                name: name.to_owned(),
                known: "last, node, never",
            }),
        }
    }
}

/// A cpu and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// The operating system's number.
    pub cpu: u32,
    /// The position of its node among the machine's nodes.
    pub node: usize,
    /// The operating system's number of its node.
    pub os_node: u32,
    /// Which hardware thread of its core: 0 is the first.
    thread: usize,
    /// Its position among the cpus of its node that are the same hardware thread of their cores.
    rank: usize,
    /// Its position among all cpus of its node, first hardware threads first.
    place: usize,
}

/// All cpus of a machine. Never empty.
#[derive(Debug, Clone)]
pub struct Sites {
    sites: Vec<Site>,
    /// The node with cpus where the memory of a node is best used from, by the operating
    /// system's numbers: itself, but for a node of memory only.
    home: BTreeMap<u32, usize>,
    nodes: usize,
}

/// The place of each node in the priority queue: 0 is the top.
pub type Priorities = Vec<usize>;

impl Sites {
    /// The cpus of a machine.
    pub fn new(machine: &Machine, siblings: Siblings) -> Sites {
        let mut sites = Vec::new();
        for node in machine.nodes() {
            let mut of_node = Vec::new();
            for core in &node.cores {
                let threads = if siblings == Siblings::Never {
                    1
                } else {
                    usize::MAX
                };
                for (thread, &cpu) in core.cpus.iter().enumerate().take(threads) {
                    of_node.push((thread, cpu));
                }
            }
            // Within a hardware thread the cores stay in the machine's order.
            of_node.sort_by_key(|(thread, _)| *thread);
            let mut ranks: BTreeMap<usize, usize> = BTreeMap::new();
            for (place, (thread, cpu)) in of_node.into_iter().enumerate() {
                let rank = ranks.entry(thread).or_default();
                sites.push(Site {
                    cpu,
                    node: node.index,
                    os_node: node.os_index,
                    // All threads count as first where only the node's order matters.
                    thread: if siblings == Siblings::Node {
                        0
                    } else {
                        thread
                    },
                    rank: if siblings == Siblings::Node {
                        place
                    } else {
                        *rank
                    },
                    place,
                });
                *rank += 1;
            }
        }
        let home = |node: &topology::Node| {
            let nearest = machine.nearest(node.index);
            let with_cpus = |at: &usize| machine.nodes()[*at].cpus() > 0;
            nearest.into_iter().find(with_cpus).unwrap_or(node.index)
        };
        Sites {
            home: machine
                .nodes()
                .iter()
                .map(|node| (node.os_index, home(node)))
                .collect(),
            nodes: machine.nodes().len(),
            sites,
        }
    }

    /// All of them, node by node.
    pub fn all(&self) -> &[Site] {
        &self.sites
    }

    /// The cpu's site; `None` if the machine does not have it.
    pub fn site(&self, cpu: u32) -> Option<&Site> {
        self.sites.iter().find(|site| site.cpu == cpu)
    }

    /// Bytes per node, by position. Memory of a node without cpus counts for the nearest node that has some.
    pub fn weights(&self, residency: &BTreeMap<u32, f64>) -> Vec<f64> {
        let mut weights = vec![0.0; self.nodes];
        for (node, bytes) in residency {
            if let Some(home) = self.home.get(node) {
                weights[*home] += bytes;
            }
        }
        weights
    }

    /// The priority queue: the node with most bytes is on top, equal ones by their number.
    pub fn priorities(&self, weights: &[f64]) -> Priorities {
        let mut order: Vec<usize> = (0..self.nodes).collect();
        let weight = |node: usize| weights.get(node).copied().unwrap_or(0.0);
        order.sort_by(|a, b| weight(*b).total_cmp(&weight(*a)).then(a.cmp(b)));
        let mut places = vec![0; self.nodes];
        for (place, node) in order.into_iter().enumerate() {
            places[node] = place;
        }
        places
    }

    /// The free cpu that a mode hands out next.
    pub fn next(
        &self,
        mode: Mode,
        priorities: &Priorities,
        free: impl Fn(u32) -> bool,
    ) -> Option<Site> {
        let free = self.sites.iter().filter(|site| free(site.cpu));
        free.min_by_key(|site| site.key(mode, priorities)).copied()
    }

    /// The cpu of a set that a mode takes back next.
    pub fn last(&self, mode: Mode, priorities: &Priorities, taken: &CpuSet) -> Option<Site> {
        let taken = self.sites.iter().filter(|site| taken.contains(site.cpu));
        taken.max_by_key(|site| site.key(mode, priorities)).copied()
    }
}

impl Site {
    /// Which hardware thread of its core, as far as the order of hardware threads tells them apart: 0 is the first.
    pub(crate) fn thread(&self) -> usize {
        self.thread
    }

    /// Lower is handed out earlier and taken back later. `core(i, j) = d i + j` is the machine's
    /// numbering; sparse runs over i first, dense over j.
    fn key(&self, mode: Mode, priorities: &Priorities) -> (usize, usize, usize, usize) {
        let priority = priorities.get(self.node).copied().unwrap_or(usize::MAX);
        let (second, third) = match mode {
            Mode::Sparse => (self.rank, self.node),
            Mode::Dense => (self.node, self.rank),
            Mode::Adaptive => (priority, self.rank),
        };
        (self.thread, second, third, self.place)
    }
}
