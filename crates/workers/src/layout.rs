//! Worker placement: which node and cpu each worker is given when the workers start.

use topology::{Machine, Node};

use crate::morsels::Nearness;

/// Most worker threads in a layout.
pub const MAX_THREADS: usize = 1024;

/// A worker's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The node, as an index into the nodes of the machine that the layout was made for.
    pub node: usize,
    /// The cpu, by the operating system's number on the live machine.
    pub cpu: u32,
}

/// A placement of workers: their number, nodes and cpus.
#[derive(Debug, Clone)]
pub struct Layout {
    places: Vec<Place>,
    nodes: usize,
    pin: bool,
    nearness: Nearness,
    /// All cpus of the live machine, for threads that are not workers.
    cpus: Vec<u32>,
}

impl Layout {
    /// Places `threads` workers on the nodes of `machine`, and these on `live`, the machine that the process runs
    /// on.
    ///
    /// Workers are spread over the nodes with cores so that each node has about the same share of its cores in use,
    /// lowest index first. If `machine` is `live` itself, the cores of a node are used before their SMT siblings.
    /// Otherwise node `i` is put on node `i mod n` of the `n` live nodes with cores, and its workers take that
    /// node's cpus in turn. With more threads than cpus, threads share cpus. If `pin` is false, threads may run on
    /// any allowed cpu and places only name nodes.
    ///
    /// [`Workers::new`](crate::Workers::new) checks the number of threads.
    pub fn of(machine: &Machine, live: &Machine, threads: usize, pin: bool) -> Layout {
        let hosts: Vec<Vec<u32>> = live
            .nodes()
            .iter()
            .map(cpus_of)
            .filter(|cpus| !cpus.is_empty())
            .collect();
        let same = machine == live;
        // For each node of `machine`, the live node that stands in for it, as a position in `hosts`. Live nodes without
        // cores are not in `hosts`, so on the live machine positions differ from indexes.
        let mut host = Vec::with_capacity(machine.nodes().len());
        let mut able = 0;
        for node in machine.nodes() {
            host.push(if same { able } else { node.index });
            able += usize::from(!node.cores.is_empty());
        }
        let mut taken = vec![0usize; hosts.len()];
        let places = assign_nodes(machine.nodes(), threads.min(MAX_THREADS + 1))
            .into_iter()
            .map(|node| {
                let at = host[node] % hosts.len().max(1);
                let cpus = &hosts[at];
                let cpu = cpus[taken[at] % cpus.len()];
                taken[at] += 1;
                Place { node, cpu }
            })
            .collect();
        let mut cpus: Vec<u32> = hosts.into_iter().flatten().collect();
        cpus.sort_unstable();
        Layout {
            places,
            nodes: machine.nodes().len(),
            pin,
            nearness: Nearness::new(machine.nodes().len(), |a, b| machine.distance(a, b)),
            cpus,
        }
    }

    /// The layout with only the workers of `node`, which may be none. Nodes and cpus are unchanged.
    pub fn on(&self, node: usize) -> Layout {
        let mut own = self.clone();
        own.places.retain(|place| place.node == node);
        own
    }

    /// So many layouts, at least one, with the workers of this one dealt out in runs: as equally many as can be, those of a
    /// node together where nodes have as many. Layouts are empty if there are more of them than workers.
    pub fn parts(&self, count: usize) -> Vec<Layout> {
        let count = count.max(1);
        let mut places = self.places.clone();
        places.sort_by_key(|place| place.node);
        let part = |at: usize| Layout {
            places: places[at * places.len() / count..(at + 1) * places.len() / count].to_vec(),
            ..self.clone()
        };
        (0..count).map(part).collect()
    }

    /// The number of workers.
    pub fn threads(&self) -> usize {
        self.places.len()
    }

    /// The number of nodes, including those without workers.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Whether workers are pinned to their cpus.
    pub fn pin(&self) -> bool {
        self.pin
    }

    /// The place of each worker.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The NUMA distance order of the nodes, for [`Morsels`](crate::Morsels).
    pub fn nearness(&self) -> &Nearness {
        &self.nearness
    }

    /// All cpus that the process may use, ascending.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }
}

/// The cpus of a node: the first hardware thread of each core, then the second of each, and so on.
fn cpus_of(node: &Node) -> Vec<u32> {
    let siblings = node
        .cores
        .iter()
        .map(|core| core.cpus.len())
        .max()
        .unwrap_or(0);
    (0..siblings)
        .flat_map(|nth| {
            node.cores
                .iter()
                .filter_map(move |core| core.cpus.get(nth).copied())
        })
        .collect()
}

/// Assigns each of `threads` workers a node: always the one with the fewest workers per cpu.
fn assign_nodes(nodes: &[Node], threads: usize) -> Vec<usize> {
    let cpus: Vec<usize> = nodes.iter().map(Node::cpus).collect();
    let mut workers = vec![0usize; nodes.len()];
    (0..threads)
        .filter_map(|_| {
            let able = (0..nodes.len()).filter(|&node| cpus[node] > 0);
            // a/b < c/d as a*d < c*b: exact, unlike floats.
            let next = able.min_by(|&a, &b| {
                (workers[a] * cpus[b])
                    .cmp(&(workers[b] * cpus[a]))
                    .then(a.cmp(&b))
            })?;
            workers[next] += 1;
            Some(next)
        })
        .collect()
}
