//! The tree of a site: the cores and caches of each node, then the nodes.

use std::collections::{BTreeMap, BTreeSet};

use topology::CacheKind;

use super::nodes;
use super::tree::{Builder, Id, Tree};
use crate::error::Result;
use crate::site::Site;

/// What can be seen of a core.
#[derive(Debug)]
struct CoreLook {
    cpus: usize,
    /// Those it does not share.
    caches: Vec<(u8, CacheKind, u64)>,
}

/// The tree of a site.
///
/// # Errors
///
/// [`Error::TooSymmetric`](crate::Error::TooSymmetric).
pub(crate) fn build(site: &Site) -> Result<Tree> {
    let mut builder = Builder::default();
    let nodes: Vec<Id> = (0..site.nodes().len())
        .map(|node| of_node(&mut builder, site, node))
        .collect();
    nodes::join(builder, site, &nodes)
}

/// The branch of one node.
fn of_node(builder: &mut Builder, site: &Site, node: usize) -> Id {
    let cores: BTreeSet<usize> = site.nodes()[node].iter().copied().collect();
    let look = |&core: &usize| {
        let cpus = site.slots()[core].cpus.len();
        let caches = Vec::new();
        (core, CoreLook { cpus, caches })
    };
    let mut looks: BTreeMap<usize, CoreLook> = cores.iter().map(look).collect();
    // Caches with the same cores are one level of the tree.
    let mut shared: BTreeMap<BTreeSet<usize>, Vec<u64>> = BTreeMap::new();
    for cache in &site.machine().nodes()[node].caches {
        let uses = |core: &&usize| {
            let cpus = &site.slots()[**core].cpus;
            cpus.iter().any(|cpu| cache.cpus.binary_search(cpu).is_ok())
        };
        let below: BTreeSet<usize> = cores.iter().filter(uses).copied().collect();
        match (below.len(), below.first()) {
            (0, _) => {}
            (1, Some(core)) => {
                let own = (cache.level, cache.kind, cache.bytes);
                looks
                    .get_mut(core)
                    .expect("a core of this node")
                    .caches
                    .push(own);
            }
            _ => {
                let kind = cache.kind as u64;
                let label = [u64::from(cache.level), kind, cache.bytes];
                shared.entry(below).or_default().extend(label);
            }
        }
    }
    let whole = shared.remove(&cores).unwrap_or_default();
    let mut inner: Vec<_> = shared.into_iter().collect();
    inner.sort_by_key(|(cores, _)| std::cmp::Reverse(cores.len()));
    nest(builder, whole, &cores, &inner, &looks)
}

/// A branch of `cores`: what each of the largest `caches` among them holds, and the rest.
fn nest(
    builder: &mut Builder,
    label: Vec<u64>,
    cores: &BTreeSet<usize>,
    caches: &[(BTreeSet<usize>, Vec<u64>)],
    looks: &BTreeMap<usize, CoreLook>,
) -> Id {
    let mut left = cores.clone();
    let mut branches = Vec::new();
    for (at, (inner, label)) in caches.iter().enumerate() {
        // Caches that overlap without one holding the other are no tree: the later is ignored.
        if inner.is_subset(&left) {
            left.retain(|core| !inner.contains(core));
            branches.push(nest(
                builder,
                label.clone(),
                inner,
                &caches[at + 1..],
                looks,
            ));
        }
    }
    for &core in &left {
        let look = &looks[&core];
        branches.push(builder.core(core, look.cpus, look.caches.clone()));
    }
    builder.join(label, &branches)
}
