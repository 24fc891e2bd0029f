//! The step from hwloc's objects to a [`Machine`]. The live system, synthetic descriptions and XML files all
//! yield memories, cores and caches with sets of cpus; here these become nodes.

use std::collections::HashSet;

use crate::error::Result;
use crate::machine::{Cache, Core, LOCAL, Machine, Node, Source};

/// A set of cpus, by the operating system's numbers.
pub(crate) type Cpus = HashSet<u32>;

/// The memory of one NUMA node and the cpus it is local to.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) os_index: u32,
    pub(crate) bytes: u64,
    pub(crate) cpus: Cpus,
}

/// The objects that a source lists, before cores and caches are assigned to nodes.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) about: String,
    pub(crate) memories: Vec<Memory>,
    pub(crate) cores: Vec<Core>,
    /// Their `cpus` may name some that no core has.
    pub(crate) caches: Vec<Cache>,
    /// Row-major over `memories`; `None` if the source has no distances. A 0 on the diagonal counts as
    /// none, too.
    pub(crate) distances: Option<Vec<u64>>,
    pub(crate) notes: Vec<String>,
}

impl Parts {
    /// Assigns cores and caches to nodes and scales the distances.
    ///
    /// # Errors
    ///
    /// Where the machine would break an invariant of [`Machine`].
    pub(crate) fn into_machine(mut self, name: String, source: Source) -> Result<Machine> {
        let distances = self
            .distances
            .take()
            .and_then(|matrix| scale(&matrix, self.memories.len()));
        let mut nodes: Vec<Node> = self.memories.iter().enumerate().map(node).collect();
        let cores = std::mem::take(&mut self.cores);
        for mut core in cores {
            core.cpus.sort_unstable();
            let home = self.home(&core);
            if home.is_none() {
                self.notes.push(format!(
                    "cpus {:?} have no local memory: counted to node 0",
                    core.cpus
                ));
            }
            if let Some(node) = nodes.get_mut(home.unwrap_or(0)) {
                node.cores.push(core);
            }
        }
        caches(self.caches, &mut nodes);
        let machine = Machine {
            name,
            about: self.about,
            source,
            distances: distances.unwrap_or_default(),
            nodes,
            notes: self.notes,
            rates: None,
        };
        machine.assembled()
    }

    /// The node of a core: of the memories local to it, the one with the fewest cpus, then the first. Where
    /// two kinds of memory (DRAM and HBM) are local to the same cores, the second becomes a node without cores.
    fn home(&self, core: &Core) -> Option<usize> {
        let first = core.cpus.first()?;
        let all = self.memories.iter().enumerate();
        let local = all.filter(|(_, memory)| memory.cpus.contains(first));
        local
            .min_by_key(|(index, memory)| (memory.cpus.len(), *index))
            .map(|(index, _)| index)
    }
}

fn node((index, memory): (usize, &Memory)) -> Node {
    Node {
        index,
        os_index: memory.os_index,
        cores: Vec::new(),
        memory_bytes: memory.bytes,
        free_bytes: None,
        caches: Vec::new(),
    }
}

/// Lists each cache under each node that has cpus which use it. Cpus that no core has are removed.
fn caches(caches: Vec<Cache>, nodes: &mut [Node]) {
    let cpus = |node: &Node| -> Cpus {
        node.cores
            .iter()
            .flat_map(|core| core.cpus.iter().copied())
            .collect()
    };
    let own: Vec<Cpus> = nodes.iter().map(cpus).collect();
    for mut cache in caches {
        cache
            .cpus
            .retain(|cpu| own.iter().any(|own| own.contains(cpu)));
        cache.cpus.sort_unstable();
        for (node, own) in nodes.iter_mut().zip(&own) {
            if cache.cpus.iter().any(|cpu| own.contains(cpu)) {
                node.caches.push(cache.clone());
            }
        }
    }
}

/// The distances scaled so that the smallest on the diagonal is 10 (local); `None` if they do not form a matrix of
/// `nodes` rows or have a 0 on the diagonal.
fn scale(matrix: &[u64], nodes: usize) -> Option<Vec<u32>> {
    if matrix.len() != nodes * nodes {
        return None;
    }
    let local = (0..nodes)
        .map(|at| matrix[at * nodes + at])
        .min()
        .filter(|local| *local > 0)?;
    let scaled = |value: &u64| {
        let value = u128::from(*value) * u128::from(LOCAL) / u128::from(local);
        // The maximum says that there is no such node.
        u32::try_from(value).unwrap_or(u32::MAX).min(u32::MAX - 1)
    };
    Some(matrix.iter().map(scaled).collect())
}
