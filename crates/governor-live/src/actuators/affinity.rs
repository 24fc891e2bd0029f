//! The unprivileged actuator: the affinity of each thread.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use placement::CpuSet;
use placement::apply::{bind, cpus_of};
use serde::{Deserialize, Serialize};

use crate::group::target::Group;
use crate::system::proc::{self, Identity};

/// Most rounds in search of new threads; one that a round finds can only have started during the round before.
const PASSES: usize = 5;

/// The most masks that are remembered as set by us.
const MAX_MASKS: usize = 4096;

/// The affinities from before, from which any process can put the threads back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Before {
    /// The cpus of the first process's main thread, which nearly all threads had.
    pub(crate) base: CpuSet,
    /// The cpus of threads that had others, by thread.
    pub(crate) others: BTreeMap<u32, CpuSet>,
}

/// Binds the threads of a group. A thread that was bound more narrowly, by itself or by somebody else, stays within
/// its own cpus as far as the group's allow it, and gets them back in the end.
#[derive(Debug)]
pub(crate) struct Affinity {
    pub(crate) before: Before,
    /// Masks that we have set: a thread that has one of them has inherited it.
    masks: HashSet<CpuSet>,
    /// The masks that were given to threads with cpus of their own.
    given: HashMap<u32, CpuSet>,
    /// The cpus that the kernel lets the group use: it shows masks reduced to these.
    pub(crate) within: Option<CpuSet>,
    /// Threads whose own cpus were found at the last call, and not recorded before it.
    fresh: HashSet<u32>,
    /// Threads that we may not bind, as they are another user's.
    pub(crate) refused: HashSet<u32>,
    /// A note for the user, returned once.
    pub(crate) note: Option<String>,
}

/// The result of binding the threads.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound {
    /// Threads that were looked at.
    pub(crate) threads: usize,
    /// Threads that were changed.
    pub(crate) changed: usize,
    /// Threads that bound themselves, or were bound by somebody else, since the last time. They are left alone this
    /// time, so that their cpus can be recorded first.
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
            fresh: HashSet::new(),
            refused: HashSet::new(),
            note: None,
        }
    }

    /// Binds all threads to these cpus, except those whose own cpus are found only now: the caller records
    /// [`before`](Affinity::before) and calls this again.
    ///
    /// # Errors
    ///
    /// The system's error if no thread at all could be bound.
    pub(crate) fn set(&mut self, cpus: &CpuSet, group: &Group) -> io::Result<Bound> {
        if self.masks.len() < MAX_MASKS {
            self.masks.insert(cpus.clone());
        }
        self.fresh.clear();
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
        self.forget();
        match failed {
            Some(error) if all.threads == 0 => Err(error),
            _ => Ok(all),
        }
    }

    /// Forgets the own cpus of threads that have ended, because thread numbers are reused.
    fn forget(&mut self) {
        let ended = |thread: u32| {
            let cpus = cpus_of(thread.cast_signed());
            cpus.is_err_and(|error| proc::gone(&error))
        };
        self.before.others.retain(|thread, _| !ended(*thread));
        let others = &self.before.others;
        self.given.retain(|thread, _| others.contains_key(thread));
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

    /// The part of a mask that the kernel shows.
    fn shown(&self, mask: &CpuSet) -> CpuSet {
        match &self.within {
            Some(within) => mask.iter().filter(|cpu| within.contains(*cpu)).collect(),
            None => mask.clone(),
        }
    }

    /// Whether a thread has this mask from us, rather than from before.
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
        if !self.ours(thread, &now) && self.before.others.get(&thread) != Some(&now) {
            self.before.others.insert(thread, now.clone());
            self.fresh.insert(thread);
            bound.wishes += 1;
        }
        if self.fresh.contains(&thread) {
            return Ok(());
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
    /// Gives the threads of these processes back the cpus they had; returns the number of threads.
    ///
    /// # Errors
    ///
    /// The system's error if there are threads to put back and none of them may be changed, because the right to do
    /// so was lost meanwhile.
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::group::target::Target;

    /// The own thread's number.
    fn own() -> u32 {
        // SAFETY: no preconditions.
        unsafe { libc::gettid() }.cast_unsigned()
    }

    #[test]
    fn what_a_thread_had_is_known_before_it_is_changed_and_forgotten_with_it() {
        let all = cpus_of(0).unwrap();
        let (first, last) = (all.iter().min().unwrap(), all.iter().max().unwrap());
        if first == last {
            return notrun::not_run("one cpu leaves nothing to choose");
        }
        let (one, other): (CpuSet, CpuSet) = (CpuSet::from(vec![first]), CpuSet::from(vec![last]));
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let (pid, group) = (child.id(), Group::find(Target::Pid(child.id())).unwrap());
        let mut affinity = Affinity::new(&group);
        bind(pid.cast_signed(), &one).unwrap();
        let bound = affinity.set(&other, &group).unwrap();
        assert_eq!((bound.wishes, bound.changed), (1, 0));
        assert_eq!(affinity.before.others.get(&pid), Some(&one));
        assert_eq!(
            cpus_of(pid.cast_signed()).unwrap(),
            one,
            "it is not recorded yet"
        );
        let bound = affinity.set(&other, &group).unwrap();
        assert_eq!((bound.wishes, bound.changed), (0, 1));
        assert_eq!(cpus_of(pid.cast_signed()).unwrap(), other);
        child.kill().unwrap();
        child.wait().unwrap();
        affinity.set(&one, &group).unwrap();
        assert!(affinity.before.others.is_empty() && affinity.given.is_empty());
    }

    #[test]
    fn the_wishes_of_threads_that_live_are_kept() {
        let (tell, told) = channel();
        let (end, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(own()).unwrap();
            let _ = ended.recv();
        });
        let number = told.recv().unwrap();
        let all = cpus_of(0).unwrap();
        let mut affinity = Affinity::new(&Group::find(Target::Pid(std::process::id())).unwrap());
        affinity.before.others = BTreeMap::from([(number, all.clone()), (0x3fff_ffff, all)]);
        affinity.forget();
        let left: Vec<u32> = affinity.before.others.keys().copied().collect();
        assert_eq!(left, [number]);
        drop(end);
        thread.join().unwrap();
    }
}
