//! The shared strategy: the threads of each group share a last-level cache.

use std::cmp::Reverse;

use crate::{Error, Placement, Result, Site, Threads};

/// A last-level cache and what is on it so far.
struct Domain {
    /// Its cpus, SMT siblings last.
    cpus: Vec<u32>,
    cores: usize,
    threads: usize,
}

impl Domain {
    fn left(&self, times: usize) -> usize {
        (self.cpus.len() * times).saturating_sub(self.threads)
    }
}

/// Groups go, the largest first, to the cache with the most free cores; where that way one
/// does not fit, each goes to the fullest cache it fits in; where not even that way, to the least
/// loaded one, whose cpus then get more than one thread.
pub(super) fn place(site: &Site, threads: &Threads) -> Result<Placement> {
    let domains = || -> Vec<Domain> {
        let domain = |cores: &Vec<usize>| Domain {
            cpus: site.siblings_last(cores),
            cores: cores.len(),
            threads: 0,
        };
        site.caches().iter().map(domain).collect()
    };
    // With more threads than cpus each cpu stands for several.
    let times = threads.count().div_ceil(site.cpus());
    let mut groups = threads.by_group();
    groups.sort_by_key(|group| Reverse(group.len()));
    let largest = domains().iter().map(|domain| domain.cpus.len()).max();
    let largest = largest.unwrap_or(0) * times;
    if groups[0].len() > largest {
        return Err(Error::GroupTooLarge {
            threads: groups[0].len(),
            cpus: largest,
        });
    }
    let spread = |domain: &Domain| {
        let free = domain.cores as isize - domain.threads as isize;
        (Reverse(free), Reverse(domain.left(times)))
    };
    let dense = |domain: &Domain| domain.left(times);
    let chosen = deal(domains(), &groups, times, spread)
        .or_else(|| deal(domains(), &groups, times, dense))
        .unwrap_or_else(|| crowd(domains(), &groups));
    let mut cpus = vec![0; threads.count()];
    let mut domains = domains();
    for (group, at) in groups.iter().zip(chosen) {
        let domain = &mut domains[at];
        for &thread in group {
            cpus[thread] = domain.cpus[domain.threads % domain.cpus.len()];
            domain.threads += 1;
        }
    }
    Ok(Placement::single(cpus))
}

/// The cache of each group: of those it fits in the one with the least `key`.
fn deal<K: Ord>(
    mut domains: Vec<Domain>,
    groups: &[Vec<usize>],
    times: usize,
    key: impl Fn(&Domain) -> K,
) -> Option<Vec<usize>> {
    let mut choose = |group: &Vec<usize>| {
        let fits = (0..domains.len()).filter(|&at| domains[at].left(times) >= group.len());
        let at = fits.min_by_key(|&at| (key(&domains[at]), at))?;
        domains[at].threads += group.len();
        Some(at)
    };
    groups.iter().map(&mut choose).collect()
}

/// The cache of each group where they do not all fit: the one with the fewest threads per cpu.
fn crowd(mut domains: Vec<Domain>, groups: &[Vec<usize>]) -> Vec<usize> {
    let mut choose = |group: &Vec<usize>| {
        let load = |at: &usize| {
            let domain = &domains[*at];
            // Millionths, to have an order.
            (
                (domain.threads + group.len()) * 1_000_000 / domain.cpus.len(),
                *at,
            )
        };
        let at = (0..domains.len()).min_by_key(load).unwrap_or(0);
        domains[at].threads += group.len();
        at
    };
    groups.iter().map(&mut choose).collect()
}
