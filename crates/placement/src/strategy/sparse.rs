//! The sparse strategy: threads go to the nodes round robin.

use std::collections::VecDeque;

use crate::{Placement, Site};

/// Deals the threads to the nodes round robin; a full node is passed over until all are full.
pub(super) fn place(site: &Site, threads: usize) -> Placement {
    let order = order(site);
    Placement::single(order.iter().copied().cycle().take(threads))
}

/// All cpus in the order they are given to threads.
fn order(site: &Site) -> Vec<u32> {
    let nodes = site.nodes().iter();
    let queues = nodes.map(|cores| VecDeque::from(site.siblings_last(&over_caches(site, cores))));
    let mut queues: Vec<VecDeque<u32>> = queues.collect();
    let mut order = Vec::with_capacity(site.cpus());
    while order.len() < site.cpus() {
        order.extend(queues.iter_mut().filter_map(VecDeque::pop_front));
    }
    order
}

/// The cores of a node, one from each last-level cache in turn.
fn over_caches(site: &Site, cores: &[usize]) -> Vec<usize> {
    let mut given = vec![0; site.caches().len()];
    let round = |&core: &usize| {
        let cache = site.slots()[core].cache;
        given[cache] += 1;
        (given[cache], cache, core)
    };
    let mut rounds: Vec<_> = cores.iter().map(round).collect();
    rounds.sort_unstable();
    rounds.into_iter().map(|(_, _, core)| core).collect()
}
