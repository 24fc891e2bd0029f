//! The part of a machine that threads may be placed on.

use std::collections::BTreeSet;

use topology::{Cache, CacheKind, Machine, Node};

use crate::{CpuSet, Error, Result};

/// A core with the cpus that may be used; never none.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    /// Its hardware threads, ascending.
    pub(crate) cpus: Vec<u32>,
    /// The node it is on.
    pub(crate) node: usize,
    /// The last-level cache it uses: position in [`Site::caches`].
    pub(crate) cache: usize,
}

/// A machine, and the cpus of it that threads may be placed on.
///
/// Invariants:
/// 1. There is at least one core, and each has at least one cpu.
/// 2. Cores stand in the order of their nodes; those of one node in the order of the machine.
/// 3. Each core belongs to exactly one last-level cache.
///
/// The last-level cache of a core is the largest cache of its node that several cores share;
/// where a node has no such cache, as some virtual machines do not, the node stands for it.
#[derive(Debug, Clone)]
pub struct Site {
    machine: Machine,
    slots: Vec<Slot>,
    /// The cores of each node; empty for a node that is memory only.
    nodes: Vec<Vec<usize>>,
    /// The cores of each last-level cache.
    caches: Vec<Vec<usize>>,
}

impl Site {
    /// All cpus of a machine. The live machine has only those this process may use.
    pub fn new(machine: &Machine) -> Site {
        let all: CpuSet = cpus(machine).collect();
        Site::within(machine, &all).expect("a machine has a cpu")
    }

    /// The cpus of a machine that are in `allowed`; what else `allowed` names does not matter.
    ///
    /// # Errors
    ///
    /// [`Error::NoCpu`] where none is left.
    pub fn within(machine: &Machine, allowed: &CpuSet) -> Result<Site> {
        let mut site = Site {
            machine: machine.clone(),
            slots: Vec::new(),
            nodes: vec![Vec::new(); machine.nodes().len()],
            caches: Vec::new(),
        };
        // Each cache by its cpus, as one that spans nodes is listed under each of them.
        let mut known: Vec<BTreeSet<u32>> = Vec::new();
        for node in machine.nodes() {
            for core in &node.cores {
                let usable = core.cpus.iter().copied();
                let cpus: Vec<u32> = usable.filter(|cpu| allowed.contains(*cpu)).collect();
                let Some(&first) = cpus.first() else { continue };
                let shared = last_level(node, first);
                let cache = known.iter().position(|cache| *cache == shared);
                let cache = cache.unwrap_or_else(|| {
                    known.push(shared);
                    site.caches.push(Vec::new());
                    known.len() - 1
                });
                site.caches[cache].push(site.slots.len());
                site.nodes[node.index].push(site.slots.len());
                let node = node.index;
                site.slots.push(Slot { cpus, node, cache });
            }
        }
        if site.slots.is_empty() {
            return Err(Error::NoCpu);
        }
        Ok(site)
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The cpus that may be used.
    pub fn allowed(&self) -> CpuSet {
        let cpus = self.slots.iter().flat_map(|slot| &slot.cpus);
        cpus.copied().collect()
    }

    /// Number of cpus that may be used.
    pub fn cpus(&self) -> usize {
        self.slots.iter().map(|slot| slot.cpus.len()).sum()
    }

    /// Number of cores with a cpu that may be used.
    pub fn cores(&self) -> usize {
        self.slots.len()
    }

    /// The cpus below each last-level cache.
    pub fn cache_sets(&self) -> Vec<CpuSet> {
        self.caches.iter().map(|cores| self.set(cores)).collect()
    }

    /// The cpus of each node that may be used; an empty set for a node without any.
    pub fn node_sets(&self) -> Vec<CpuSet> {
        self.nodes.iter().map(|cores| self.set(cores)).collect()
    }

    fn set(&self, cores: &[usize]) -> CpuSet {
        let cpus = cores.iter().flat_map(|&core| &self.slots[core].cpus);
        cpus.copied().collect()
    }

    /// The cores.
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The cores of each node.
    pub(crate) fn nodes(&self) -> &[Vec<usize>] {
        &self.nodes
    }

    /// The cores of each last-level cache.
    pub(crate) fn caches(&self) -> &[Vec<usize>] {
        &self.caches
    }

    /// Where each cpu is: its core.
    pub(crate) fn core_of(&self, cpu: u32) -> Option<usize> {
        self.slots.iter().position(|slot| slot.cpus.contains(&cpu))
    }

    /// The cpus of these cores: the first of each core, then the second, and so on, so that SMT
    /// siblings come last.
    pub(crate) fn siblings_last(&self, cores: &[usize]) -> Vec<u32> {
        let most = cores.iter().map(|&core| self.slots[core].cpus.len()).max();
        let round = |at: usize| {
            let nth = move |core: &usize| self.slots[*core].cpus.get(at).copied();
            cores.iter().filter_map(nth)
        };
        (0..most.unwrap_or(0)).flat_map(round).collect()
    }
}

/// All cpus of a machine.
fn cpus(machine: &Machine) -> impl Iterator<Item = u32> + '_ {
    let cores = machine.nodes().iter().flat_map(|node| &node.cores);
    cores.flat_map(|core| core.cpus.iter().copied())
}

/// The cpus that share the last-level cache of `cpu`.
fn last_level(node: &Node, cpu: u32) -> BTreeSet<u32> {
    let core = node.cores.iter().find(|core| core.cpus.contains(&cpu));
    let own = core.map_or(1, |core| core.cpus.len());
    let shared = |cache: &&Cache| {
        cache.kind != CacheKind::Instruction
            && cache.cpus.len() > own
            && cache.cpus.binary_search(&cpu).is_ok()
    };
    // Caches stand with the highest level first.
    match node.caches.iter().find(shared) {
        Some(cache) => cache.cpus.iter().copied().collect(),
        None => {
            let cpus = node.cores.iter().flat_map(|core| &core.cpus);
            cpus.copied().collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_be_used_is_left_out() {
        let machine = Machine::parse("node:2 core:2 pu:2").unwrap();
        let site = Site::within(&machine, &"1,4-5,90".parse().unwrap()).unwrap();
        assert_eq!(site.allowed().to_string(), "1,4-5");
        assert_eq!((site.cores(), site.cpus()), (2, 3));
        assert_eq!(site.siblings_last(&[0, 1]), [1, 4, 5]);
        let none = Site::within(&machine, &"8".parse().unwrap());
        assert!(matches!(none, Err(Error::NoCpu)));
    }

    #[test]
    fn the_last_level_cache_is_the_one_that_cores_share() {
        for (text, caches) in [
            ("node:2 core:2", 2),
            ("node:2 l3:2 core:2", 4),
            // Private caches are shared by nobody: the node stands for them.
            ("node:2 l2:2 core:1 pu:2", 2),
            ("node:1 l3:1 l2:2 core:2", 1),
            ("l3:1 node:2 core:2", 1),
        ] {
            let site = Site::new(&Machine::parse(text).unwrap());
            assert_eq!(site.caches().len(), caches, "{text}");
        }
    }
}
