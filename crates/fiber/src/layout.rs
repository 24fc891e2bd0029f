//! Which worker belongs to which node and runs on which cpu.

use topology::{Machine, Node};

use crate::Nearness;

/// The most worker threads.
pub const MAX_THREADS: usize = 1024;

/// Where one worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index of its node in the machine the layout was made for.
    pub node: usize,
    /// The operating system's number of the cpu it is pinned to, one of the live machine's.
    pub cpu: u32,
}

/// A plan for workers: their number, nodes and cpus.
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
    /// Places `threads` workers on `machine`, and its nodes on `live`, the machine we run on.
    ///
    /// Workers are dealt to the nodes that have cores so that each node has about the same
    /// share of its cores in use, lowest index first. Where `machine` is `live` itself, the
    /// cores of a node are used before their SMT siblings. Otherwise node `i` is put on node
    /// `i mod n` of the `n` live nodes that have cores, and its workers take that node's cpus in
    /// turn. More threads than cpus share them. With `pin` false the places say the node
    /// only and threads run on any allowed cpu.
    ///
    /// The number of threads is checked by [`Workers::new`](crate::Workers::new).
    pub fn of(machine: &Machine, live: &Machine, threads: usize, pin: bool) -> Layout {
        let hosts: Vec<Vec<u32>> = live
            .nodes()
            .iter()
            .map(cpus_of)
            .filter(|cpus| !cpus.is_empty())
            .collect();
        let same = machine == live;
        // The live node each node of `machine` is put on, by position in `hosts`: live nodes
        // without cores are in no layout, so on the live machine positions differ from indexes.
        let mut host = Vec::with_capacity(machine.nodes().len());
        let mut able = 0;
        for node in machine.nodes() {
            host.push(if same { able } else { node.index });
            able += usize::from(!node.cores.is_empty());
        }
        let mut taken = vec![0usize; hosts.len()];
        let places = deal(machine.nodes(), threads.min(MAX_THREADS + 1))
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

    /// Only the workers of `node`, of which there may be none. Nodes and cpus stay as they are.
    pub fn on(&self, node: usize) -> Layout {
        let mut own = self.clone();
        own.places.retain(|place| place.node == node);
        own
    }

    /// Number of workers.
    pub fn threads(&self) -> usize {
        self.places.len()
    }

    /// Number of nodes, those without workers included.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Whether workers are bound to their cpus.
    pub fn pin(&self) -> bool {
        self.pin
    }

    /// Each worker's place, by worker.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Which nodes are near which, for [`Morsels`](crate::Morsels).
    pub fn nearness(&self) -> &Nearness {
        &self.nearness
    }

    /// The cpus any thread of this process may use, ascending.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }
}

/// The cpus of a node: the first hardware thread of each core, then the second ones, and so on.
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

/// The node of each of `threads` workers: always the node with the least workers per cpu.
fn deal(nodes: &[Node], threads: usize) -> Vec<usize> {
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
