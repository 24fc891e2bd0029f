//! The compact strategy: all threads on as few nodes as possible.

use crate::{Placement, Site};

/// Fills the nodes of [`nodes`] one after the other.
pub(super) fn place(site: &Site, threads: usize) -> Placement {
    let nodes = nodes(site, threads);
    let cpus = nodes
        .iter()
        .flat_map(|&node| site.siblings_last(&site.nodes()[node]));
    let cpus: Vec<u32> = cpus.collect();
    Placement::single(cpus.iter().copied().cycle().take(threads))
}

/// The fewest nodes with a cpu for each thread, or all nodes with cpus where there are too few.
///
/// Of several such sets one whose nodes are near each other: from each node in turn the nearest
/// that still lets the rest fit is added, and the set with the least sum of distances is taken.
fn nodes(site: &Site, threads: usize) -> Vec<usize> {
    let size = |node: usize| site.siblings_last(&site.nodes()[node]).len();
    let sizes: Vec<usize> = (0..site.nodes().len()).map(size).collect();
    let mut with_cpus: Vec<usize> = (0..sizes.len()).filter(|&node| sizes[node] > 0).collect();
    with_cpus.sort_by_key(|&node| std::cmp::Reverse(sizes[node]));
    let mut sum = 0;
    let needed = with_cpus.iter().position(|&node| {
        sum += sizes[node];
        sum >= threads
    });
    let Some(needed) = needed.map(|last| last + 1) else {
        with_cpus.sort_unstable();
        return with_cpus;
    };
    with_cpus.sort_unstable();
    let starts = with_cpus.iter();
    let grown = starts.filter_map(|&start| grow(site, &sizes, start, needed, threads));
    let best = grown.min_by_key(|chosen| spread(site, chosen));
    best.expect("the largest nodes have a cpu for each thread")
}

/// `needed` nodes from `start` on with cpus for `threads`; `None` where `start` is too small.
fn grow(
    site: &Site,
    sizes: &[usize],
    start: usize,
    needed: usize,
    threads: usize,
) -> Option<Vec<usize>> {
    let fits = |chosen: &[usize]| {
        let mut rest: Vec<usize> = (0..sizes.len())
            .filter(|node| !chosen.contains(node))
            .map(|node| sizes[node])
            .collect();
        rest.sort_unstable_by(|a, b| b.cmp(a));
        let have: usize = chosen.iter().map(|&node| sizes[node]).sum();
        let more: usize = rest.iter().take(needed - chosen.len()).sum();
        have + more >= threads
    };
    let mut chosen = vec![start];
    if !fits(&chosen) {
        return None;
    }
    while chosen.len() < needed {
        let mut others: Vec<usize> = (0..sizes.len())
            .filter(|&node| sizes[node] > 0 && !chosen.contains(&node))
            .collect();
        others.sort_by_key(|&node| (between(site, node, &chosen), node));
        let next = others.into_iter().find(|&node| {
            chosen.push(node);
            let fits = fits(&chosen);
            chosen.pop();
            fits
        });
        chosen.push(next?);
    }
    Some(chosen)
}

/// The sum of the distances between `node` and the others, both ways.
fn between(site: &Site, node: usize, others: &[usize]) -> u64 {
    let machine = site.machine();
    let both = |&other: &usize| {
        u64::from(machine.distance(node, other)) + u64::from(machine.distance(other, node))
    };
    others.iter().map(both).sum()
}

/// The sum of all distances within a set of nodes, then the lowest indexes.
fn spread(site: &Site, nodes: &[usize]) -> (u64, Vec<usize>) {
    let total = nodes.iter().map(|&node| between(site, node, nodes)).sum();
    (total, nodes.to_vec())
}
