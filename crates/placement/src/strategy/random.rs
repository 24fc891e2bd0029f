//! Random placements that differ from the compact and the sparse one.

use std::collections::{BTreeMap, HashSet};

use super::{compact, sparse};
use crate::random::Random;
use crate::{Classes, Error, Placement, Result, Site, Threads};

/// Attempts per placement before all classes are looked through.
const ATTEMPTS: usize = 200;

/// Classes that are looked through at most.
const MOST_LISTED: u128 = 100_000;

/// Of how many threads one may be elsewhere in a placement that is like another.
const TOLERANCE: usize = 6;

/// Up to `count` placements drawn by `seed`, no two of them equivalent and none of them like
/// compact or like sparse. The first `n` of a longer list are the shorter list.
///
/// # Errors
///
/// [`Error::NothingRandom`] where there is none; fewer than `count` are no error.
pub fn draws(site: &Site, threads: &Threads, seed: u64, count: usize) -> Result<Vec<Placement>> {
    let classes = Classes::new(site, threads)?;
    let known = [
        compact::place(site, threads.count()),
        sparse::place(site, threads.count()),
    ];
    let mut seen = HashSet::new();
    let mut drawn: Vec<Placement> = Vec::new();
    let mut offer = |placement: Placement, drawn: &mut Vec<Placement>| {
        let fresh = known.iter().all(|known| !like(site, known, &placement));
        if fresh && seen.insert(placement.clone()) {
            drawn.push(placement);
        }
    };
    let mut random = Random::new(seed);
    for _ in 0..ATTEMPTS * count {
        if drawn.len() == count {
            return Ok(drawn);
        }
        offer(classes.sample(&mut random), &mut drawn);
    }
    // Hardly any are left: from anywhere on, each in turn.
    if let Some(all) = classes.count().filter(|all| *all <= MOST_LISTED) {
        let begin = random.below(all);
        for rank in (0..all).map(|rank| (begin + rank) % all) {
            if drawn.len() == count {
                break;
            }
            if let Some(placement) = classes.class(rank) {
                offer(placement, &mut drawn);
            }
        }
    }
    if drawn.is_empty() && count > 0 {
        let threads = threads.count();
        return Err(Error::NothingRandom { threads });
    }
    Ok(drawn)
}

/// Whether one placement is like another: with nodes renamed, at most one of six threads is on
/// another node. On a machine with one node last-level caches count instead.
pub fn like(site: &Site, a: &Placement, b: &Placement) -> bool {
    if a.threads() != b.threads() {
        return false;
    }
    let (Some(a), Some(b)) = (domains(site, a), domains(site, b)) else {
        return false;
    };
    let mut common: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for pair in a.iter().copied().zip(b.iter().copied()) {
        *common.entry(pair).or_default() += 1;
    }
    let mut common: Vec<_> = common.into_iter().collect();
    common.sort_by_key(|(pair, threads)| (std::cmp::Reverse(*threads), *pair));
    let (mut from, mut to, mut stay) = (HashSet::new(), HashSet::new(), 0);
    for ((one, other), threads) in common {
        if !from.contains(&one) && !to.contains(&other) {
            from.insert(one);
            to.insert(other);
            stay += threads;
        }
    }
    (a.len() - stay) * TOLERANCE <= a.len()
}

/// The node of each thread, or its last-level cache where only one node has cores.
fn domains(site: &Site, placement: &Placement) -> Option<Vec<usize>> {
    let nodes = site.nodes().iter().filter(|cores| !cores.is_empty());
    let one = nodes.count() == 1;
    let cores = placement.cores(site)?;
    let slot = |core: usize| &site.slots()[core];
    let domain = |core: usize| {
        if one {
            slot(core).cache
        } else {
            slot(core).node
        }
    };
    Some(cores.into_iter().map(domain).collect())
}
