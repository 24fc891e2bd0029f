//! The unprivileged actuator: the affinity of each thread.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use placement::CpuSet;
use placement::apply::{bind, cpus_of};
use serde::{Deserialize, Serialize};

use super::proc::{self, Identity};
use super::target::Group;

/// Looks until no new thread is found: each can only have come while the last one was under way.
const PASSES: usize = 5;

/// The most masks that are remembered as ours.
const MAX_MASKS: usize = 4096;

/// What is needed to put threads back, whoever does it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Before {
    /// What the first process's main thread had: so had nearly all.
    pub(crate) base: CpuSet,
    /// The others, by thread.
    pub(crate) others: BTreeMap<u32, CpuSet>,
}

/// Binds the threads of a group. A thread that was bound narrower, by itself or by somebody else,
/// stays within its own cpus as far as the group's allow it, and gets them back in the end.
#[derive(Debug)]
pub(crate) struct Affinity {
    pub(crate) before: Before,
    /// Masks that are ours: a thread that has one of them has inherited it.
    masks: HashSet<CpuSet>,
    /// What threads with an own wish were given.
    given: HashMap<u32, CpuSet>,
    /// What the kernel lets the group use: threads are shown their masks without the rest.
    pub(crate) within: Option<CpuSet>,
    /// Threads that may not be bound: they are another user's.
    pub(crate) refused: HashSet<u32>,
}

/// How it went.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound {
    /// Threads that were looked at.
    pub(crate) threads: usize,
    /// Threads that were changed.
    pub(crate) changed: usize,
    /// Threads that had been bound by themselves, or by somebody else, since the last time.
    pub(crate) wishes: usize,
}

impl Affinity {
    pub(crate) fn new(group: &Group) -> Affinity {
        let root = group.roots().next().map(|root| root.identity.pid);
        let base = root.and_then(|pid| cpus_of(pid.cast_signed()).ok());
        Affinity {
            before: Before {
                base: base.unwrap_or_default(),
                others: BTreeMap::new(),
            },
            masks: HashSet::new(),
            given: HashMap::new(),
            within: None,
            refused: HashSet::new(),
        }
    }

    /// Binds all threads to these cpus.
    ///
    /// # Errors
    ///
    /// What the system says where no thread at all could be bound.
    pub(crate) fn set(&mut self, cpus: &CpuSet, group: &Group) -> io::Result<Bound> {
        if self.masks.len() < MAX_MASKS {
            self.masks.insert(cpus.clone());
        }
        let mut all = Bound::default();
        let mut failed = None;
        for _ in 0..PASSES {
            let bound = self.pass(cpus, group, &mut failed);
            all.changed += bound.changed;
            all.wishes += bound.wishes;
            all.threads = bound.threads;
            if bound.changed == 0 {
                break;
            }
        }
        match failed {
            Some(error) if all.threads == 0 => Err(error),
            _ => Ok(all),
        }
    }

    fn pass(&mut self, cpus: &CpuSet, group: &Group, failed: &mut Option<io::Error>) -> Bound {
        let mut bound = Bound::default();
        for pid in group.members.keys() {
            for thread in proc::threads(*pid) {
                match self.thread(thread, cpus, &mut bound) {
                    Ok(()) => bound.threads += 1,
                    Err(error) if proc::gone(&error) => {}
                    Err(error) => {
                        self.refused.insert(thread);
                        *failed = Some(error);
                    }
                }
            }
        }
        bound
    }

    /// What the kernel shows of a mask.
    fn shown(&self, mask: &CpuSet) -> CpuSet {
        match &self.within {
            Some(within) => mask.iter().filter(|cpu| within.contains(*cpu)).collect(),
            None => mask.clone(),
        }
    }

    /// Whether a thread has this mask from us, or from before.
    fn ours(&self, thread: u32, now: &CpuSet) -> bool {
        let given = self.given.get(&thread);
        *now == self.before.base
            || self.masks.contains(now)
            || given == Some(now)
            || [&self.before.base]
                .into_iter()
                .chain(given)
                .chain(&self.masks)
                .any(|mask| self.shown(mask) == *now)
            // Everything the kernel allows: what a thread gets whose mask was lost.
            || self.within.as_ref() == Some(now)
    }

    fn thread(&mut self, thread: u32, cpus: &CpuSet, bound: &mut Bound) -> io::Result<()> {
        let number = thread.cast_signed();
        let now = cpus_of(number)?;
        if now == *cpus {
            return Ok(());
        }
        if !self.ours(thread, &now) {
            self.before.others.insert(thread, now.clone());
            bound.wishes += 1;
        }
        let wanted = match self.before.others.get(&thread) {
            Some(wish) => {
                let both: CpuSet = wish.iter().filter(|cpu| cpus.contains(*cpu)).collect();
                let both = if both.is_empty() { cpus.clone() } else { both };
                self.given.insert(thread, both.clone());
                both
            }
            None => cpus.clone(),
        };
        if wanted != now && self.shown(&wanted) != now {
            bind(number, &wanted)?;
            bound.changed += 1;
        }
        Ok(())
    }
}

impl Before {
    /// Gives the threads of these processes the cpus they had; how many got them.
    ///
    /// # Errors
    ///
    /// What the system says where threads have other cpus and not one of them may be changed: the
    /// right to do so was lost meanwhile.
    pub(crate) fn restore(&self, processes: impl Iterator<Item = Identity>) -> io::Result<usize> {
        let mut restored = 0;
        let mut refused = None;
        for process in processes.filter(|process| process.alive()) {
            // Twice, for threads that came during the first time.
            for _ in 0..2 {
                for thread in proc::threads(process.pid) {
                    let wanted = self.others.get(&thread).unwrap_or(&self.base);
                    let number = thread.cast_signed();
                    let there = cpus_of(number).is_ok_and(|now| now == *wanted);
                    if there || wanted.is_empty() {
                        continue;
                    }
                    match bind(number, wanted) {
                        Ok(()) => restored += 1,
                        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                            refused = Some(error);
                        }
                        // It has ended, or none of these cpus is there any more.
                        Err(_) => {}
                    }
                }
            }
        }
        match refused {
            Some(error) if restored == 0 => Err(error),
            _ => Ok(restored),
        }
    }
}
