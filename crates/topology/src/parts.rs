//! What hwloc and its XML files have in common: objects with sets of cpus, which become nodes.

use std::collections::HashSet;

use crate::error::Result;
use crate::machine::{Cache, Core, LOCAL, Machine, Node, Source};

/// A set of cpus, by the operating system's numbers.
pub(crate) type Cpus = HashSet<u32>;

/// A piece of memory and the cpus it is local to.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) os_index: u32,
    pub(crate) bytes: u64,
    pub(crate) cpus: Cpus,
}

/// What a source says, before cores and caches are put to nodes.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) about: String,
    pub(crate) memories: Vec<Memory>,
    pub(crate) cores: Vec<Core>,
    /// Their `cpus` may name some that no core has.
    pub(crate) caches: Vec<Cache>,
    /// Row-major over `memories`; `None` where the source has none. 0 on the diagonal is taken
    /// as no distances.
    pub(crate) distances: Option<Vec<u64>>,
    pub(crate) notes: Vec<String>,
}

impl Parts {
    /// The machine they make.
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
        };
        machine.assembled()
    }

    /// The node of a core: the memory with the fewest cpus that has it, so that of two kinds of
    /// memory at the same cores the second is a node without cores.
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

/// Lists each cache under each node that has cpus below it, with the cpus there are.
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

/// Distances with 10 for local.
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
