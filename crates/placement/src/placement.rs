//! A placement: for each thread the cpus it may run on.

use crate::{CpuSet, Error, Result, Site};

/// One set of cpus per thread, in the order the threads are created.
///
/// Invariant: there is at least one set, and none is empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Placement {
    sets: Vec<CpuSet>,
}

impl Placement {
    /// The placement that gives thread `i` the cpus `sets[i]`: the explicit strategy.
    ///
    /// # Errors
    ///
    /// [`Error::Threads`] without sets or with more than [`MAX_THREADS`](crate::MAX_THREADS),
    /// [`Error::Cpu`] for a cpu that may not be used, [`Error::Mapping`] for an empty set.
    pub fn explicit(site: &Site, sets: Vec<CpuSet>) -> Result<Placement> {
        if sets.is_empty() || sets.len() > crate::MAX_THREADS {
            let threads = sets.len();
            return Err(Error::Threads { threads });
        }
        let allowed = site.allowed();
        for (thread, set) in sets.iter().enumerate() {
            if set.is_empty() {
                return Err(Error::Mapping {
                    from: "the mapping".to_owned(),
                    why: format!("thread {thread} has no cpu"),
                });
            }
            if let Some(cpu) = set.iter().find(|cpu| !allowed.contains(*cpu)) {
                return Err(Error::Cpu {
                    thread,
                    cpu,
                    allowed,
                });
            }
        }
        Ok(Placement { sets })
    }

    /// One cpu per thread; the caller took them from the site.
    pub(crate) fn single(cpus: impl IntoIterator<Item = u32>) -> Placement {
        let sets = cpus.into_iter().map(|cpu| CpuSet::from(vec![cpu]));
        Placement {
            sets: sets.collect(),
        }
    }

    /// The same cpus for each of `threads` threads.
    pub(crate) fn alike(threads: usize, set: &CpuSet) -> Placement {
        Placement {
            sets: vec![set.clone(); threads],
        }
    }

    /// The cpus of each thread.
    pub fn sets(&self) -> &[CpuSet] {
        &self.sets
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.sets.len()
    }

    /// The cpus of the thread that was created after `index` others; where there are more
    /// threads than sets, they start over.
    pub fn of(&self, index: usize) -> &CpuSet {
        &self.sets[index % self.sets.len()]
    }

    /// All cpus that some thread may run on.
    pub fn cpus(&self) -> CpuSet {
        self.sets.iter().flat_map(CpuSet::iter).collect()
    }

    /// The node of each thread; `None` for a thread whose cpus are not all on one node.
    pub fn nodes(&self, site: &Site) -> Vec<Option<usize>> {
        let node = |set: &CpuSet| {
            let mut nodes = set
                .iter()
                .map(|cpu| Some(site.slots()[site.core_of(cpu)?].node));
            let first = nodes.next()??;
            nodes.all(|node| node == Some(first)).then_some(first)
        };
        self.sets.iter().map(node).collect()
    }

    /// The core of each thread; `None` unless each thread is on exactly one.
    pub(crate) fn cores(&self, site: &Site) -> Option<Vec<usize>> {
        let core = |set: &CpuSet| {
            let mut cores = set.iter().map(|cpu| site.core_of(cpu));
            let first = cores.next()??;
            cores.all(|core| core == Some(first)).then_some(first)
        };
        self.sets.iter().map(core).collect()
    }
}
