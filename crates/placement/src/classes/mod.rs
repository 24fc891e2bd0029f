//! The equivalence classes of placements: all placements that can perform differently.
//!
//! Two placements are equivalent if exchanging equal parts of the machine turns one into the other:
//! the hardware threads of a core, the cores below a cache, the caches of a node, and nodes as far
//! as their distances allow. Threads are not exchanged: each does its own work. A [`Classes`] is
//! the set of classes of equivalent placements; it knows how many there are before it makes any,
//! makes any of them from its rank alone, and draws one with the same chance for each.
//!
//! # Which placements
//!
//! Each thread is on one core. With [`Siblings::Last`] cores fill evenly: no core has two threads
//! while another has none, so on 2 nodes x 6 cores 12 threads are 6 and 6, with or without SMT:
//! `C(12, 6) = 924` choices of the threads on one node, halved as the nodes are equal, 462.
//! With [`Siblings::Free`] every hardware thread is a place of its own, and cores fill as they
//! come. With more threads than cpus every cpu gets as many as the others or one more.
//!
//! # How they are counted
//!
//! 1. The machine is a tree whose equal branches have one kind (`tree`, `nodes`).
//! 2. `n` threads go into a set of equal branches like this: the first of them goes, with some
//!    others, into a first branch; the rest into the remaining branches. As threads are told apart,
//!    no two arrangements made like this are equivalent, and each class is made once.
//! 3. Unequal branches take one subset after the other.
//! 4. Nodes that only some permutations map onto each other are filled the same way, except that the
//!    first thread chooses one branch of each orbit, and only the symmetries that leave this branch
//!    where it is remain for the rest.
//!
//! The numbers of ways at each fork are kept, so that a rank, or a generator of random
//! numbers, is followed down without search.

mod build;
mod count;
mod nodes;
mod same;
mod steps;
mod tree;
mod walk;
mod ways;

use crate::random::Random;
use crate::{Placement, Result, Site, Threads};
use count::Counts;
use tree::Tree;
use ways::{Draw, Ways};

/// How the hardware threads of a core are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Siblings {
    /// The second only when every core has a thread.
    #[default]
    Last,
    /// As if each were a core.
    Free,
}

/// All classes of equivalent placements of some threads on a site.
#[derive(Debug)]
pub struct Classes {
    threads: usize,
    /// The cpus of each core.
    cores: Vec<Vec<u32>>,
    tree: Tree,
    counts: Counts,
}

impl Classes {
    /// The classes of placements of `threads` on `site`, with the second hardware threads last.
    ///
    /// # Errors
    ///
    /// [`Error::TooSymmetric`](crate::Error::TooSymmetric), for machines unlike any there is.
    pub fn new(site: &Site, threads: &Threads) -> Result<Classes> {
        Classes::with_siblings(site, threads, Siblings::Last)
    }

    /// The same with a choice of how hardware threads are used.
    ///
    /// # Errors
    ///
    /// As [`new`](Classes::new).
    pub fn with_siblings(site: &Site, threads: &Threads, siblings: Siblings) -> Result<Classes> {
        let cores: Vec<Vec<u32>> = site.slots().iter().map(|slot| slot.cpus.clone()).collect();
        let threads = threads.count();
        let tree = build::build(site)?;
        let counts = Counts::new(&tree, threads, |core| {
            fill(&cores, threads, siblings, cores[core].len())
        });
        Ok(Classes {
            threads,
            cores,
            tree,
            counts,
        })
    }

    /// How many classes there are; `None` for 2^128 - 1 or more.
    pub fn count(&self) -> Option<u128> {
        let exact = self.total().exact;
        (exact < u128::MAX).then_some(exact)
    }

    /// The logarithm to base ten of how many there are.
    pub fn log10(&self) -> f64 {
        self.total().ln / std::f64::consts::LN_10
    }

    fn total(&self) -> Ways {
        self.counts.total()
    }

    /// One placement of the class of this rank; `None` where there are not so many.
    pub fn class(&self, rank: u128) -> Option<Placement> {
        let there = rank < self.total().exact;
        there.then(|| self.make(&mut Draw::Rank(rank)))
    }

    /// One placement of each class, in the order of their ranks; made when asked for.
    pub fn iter(&self) -> impl Iterator<Item = Placement> + '_ {
        (0..u128::MAX).map_while(|rank| self.class(rank))
    }

    /// One placement of a class that is drawn with the same chance as any other.
    pub fn sample(&self, random: &mut Random) -> Placement {
        self.make(&mut Draw::Chance(random))
    }

    fn make(&self, draw: &mut Draw<'_>) -> Placement {
        self.placement(&walk::follow(&self.tree, &self.counts, self.threads, draw))
    }

    /// The placement that stands for all that are equivalent to this one: two placements are
    /// equivalent if and only if these are equal. `None` for one of another number of threads, or
    /// in which a thread is on more than one core. It need not be one of [`iter`](Classes::iter),
    /// which has one of each class but not every way to use hardware threads.
    pub fn canonical(&self, site: &Site, placement: &Placement) -> Option<Placement> {
        let cores = placement.cores(site)?;
        let fits = cores.len() == self.threads;
        fits.then(|| self.placement(&same::canonical(&self.tree, self.counts.steps(), &cores)))
    }

    /// The threads of each core get its cpus in turn.
    fn placement(&self, cores: &[usize]) -> Placement {
        let mut used = vec![0; self.cores.len()];
        Placement::single(cores.iter().map(|&core| {
            let cpus = &self.cores[core];
            used[core] += 1;
            cpus[(used[core] - 1) % cpus.len()]
        }))
    }
}

/// The least and the most threads on a core with so many cpus.
fn fill(cores: &[Vec<u32>], threads: usize, siblings: Siblings, own: usize) -> (usize, usize) {
    let sum = |round: usize| -> usize { cores.iter().map(|cpus| cpus.len().min(round)).sum() };
    let all = sum(usize::MAX);
    let (full, left) = (threads / all * own, threads % all);
    if left == 0 {
        return (full, full);
    }
    match siblings {
        Siblings::Free => (full, full + own),
        Siblings::Last => {
            // The last number of hardware threads per core that all cores get.
            let rounds = (0..).take_while(|&round| sum(round) <= left).last();
            let rounds = rounds.unwrap_or(0);
            (full + own.min(rounds), full + own.min(rounds + 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_fill_evenly() {
        // Two cores with two hardware threads, one with one.
        let cores = [vec![0, 3], vec![1, 4], vec![2]];
        for (threads, siblings, of_two, of_one) in [
            (1, Siblings::Last, (0, 1), (0, 1)),
            (3, Siblings::Last, (1, 2), (1, 1)),
            (4, Siblings::Last, (1, 2), (1, 1)),
            (5, Siblings::Last, (2, 2), (1, 1)),
            (6, Siblings::Last, (2, 3), (1, 2)),
            (12, Siblings::Last, (4, 5), (2, 3)),
            (1, Siblings::Free, (0, 2), (0, 1)),
            (7, Siblings::Free, (2, 4), (1, 2)),
        ] {
            assert_eq!(fill(&cores, threads, siblings, 2), of_two, "{threads}");
            assert_eq!(fill(&cores, threads, siblings, 1), of_one, "{threads}");
        }
    }
}
