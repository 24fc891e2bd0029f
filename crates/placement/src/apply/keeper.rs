//! Keeps the threads of a process placed.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use super::affinity;
use super::tasks::{self, Task};
use crate::{CpuSet, Error, Placement, Result};

/// The pause after new threads were found.
const SHORTEST: Duration = Duration::from_millis(1);

/// The pause once none have come for a while.
const LONGEST: Duration = Duration::from_millis(20);

/// The most threads that are kept; further ones stay where their creators are.
const MAX_KEPT: usize = 100_000;

/// What to place.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many threads, the first created, are not given a set of their own but all cpus of the
    /// placement: a main thread that only waits for the others needs none.
    pub skip: usize,
    /// Whether processes that descend from the first are placed too.
    pub children: bool,
    /// A process with one thread is left on all cpus of the placement for so long: programs ask how
    /// many cpus they have before they start their threads.
    pub settle: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            skip: 0,
            children: true,
            settle: Duration::from_millis(200),
        }
    }
}

/// A thread that was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its process.
    pub process: i32,
    /// Its number.
    pub thread: i32,
    /// Its place in the order of creation that the placement goes by; `None` for a skipped one.
    pub slot: Option<usize>,
    /// The cpus it had.
    pub before: CpuSet,
    /// The cpus it has now.
    pub after: CpuSet,
}

/// The result of one [`Keeper::step`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// Threads that are alive.
    pub alive: usize,
    /// Threads placed now for the first time.
    pub placed: usize,
    /// Threads that ended since the last look.
    pub ended: usize,
    /// Threads that may not be placed, as they belong to somebody else.
    pub refused: usize,
}

/// The result of [undoing](Keeper::undo).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Undone {
    /// Threads that have their former cpus again.
    pub restored: usize,
    /// Threads that had ended.
    pub ended: usize,
    /// Threads that could not be put back.
    pub refused: usize,
}

/// Places the threads of a process, and those that come.
///
/// Each new thread gets the set of the placement that has the fewest living threads, the lowest of
/// several: sets are used in the order the threads are created, and a later thread takes the place of
/// one that ended. Dropping the keeper leaves threads where they are.
#[derive(Debug)]
pub struct Keeper {
    process: i32,
    placement: Placement,
    options: Options,
    /// Living threads, with what was done to them.
    kept: HashMap<Task, Change>,
    /// Threads that belong to somebody else.
    refused: HashMap<Task, ()>,
    /// Living threads per set of the placement.
    load: Vec<usize>,
    /// The cpus of the process's first thread when the keeper was made.
    first: CpuSet,
    /// When each process was first seen.
    seen: HashMap<i32, Instant>,
    skipped: usize,
    pause: Duration,
}

impl Keeper {
    /// A keeper for a running process; nothing is changed before the first [`step`](Keeper::step).
    ///
    /// # Errors
    ///
    /// [`Error::NoProcess`] where there is none of that number.
    pub fn attach(process: i32, placement: &Placement, options: Options) -> Result<Keeper> {
        let there =
            tasks::of_process(process).map_err(|source| Error::Process { process, source })?;
        let Some(first) = there.first() else {
            return Err(Error::NoProcess { process });
        };
        Ok(Keeper {
            process,
            first: affinity::get(first.thread).unwrap_or_default(),
            load: vec![0; placement.threads()],
            placement: placement.clone(),
            options,
            kept: HashMap::new(),
            refused: HashMap::new(),
            seen: HashMap::new(),
            skipped: 0,
            pause: SHORTEST,
        })
    }

    /// Polls the process once: places its new threads and forgets those that ended. `alive` is 0 once
    /// the process has ended.
    ///
    /// # Errors
    ///
    /// [`Error::Affinity`] where the process itself belongs to somebody else, or where a cpu of the
    /// placement is not allowed for it; [`Error::Process`] where `/proc` cannot be read.
    pub fn step(&mut self) -> Result<Step> {
        let processes = if self.options.children {
            tasks::family(self.process)
        } else {
            vec![self.process]
        };
        let mut all: Vec<Task> = Vec::new();
        let mut single: Vec<i32> = Vec::new();
        for process in processes {
            let tasks = tasks::of_process(process);
            let tasks = tasks.map_err(|source| Error::Process { process, source })?;
            self.seen.entry(process).or_insert_with(Instant::now);
            if tasks.len() == 1 {
                single.push(process);
            }
            all.extend(tasks);
        }
        all.sort_unstable();
        let ended = self.forget(&all);
        let mut placed = 0;
        for task in &all {
            let waiting = single.contains(&task.process) && self.is_young(task.process);
            let known = self.kept.contains_key(task) || self.refused.contains_key(task);
            if !known && !waiting && self.kept.len() < MAX_KEPT && self.place(*task)? {
                placed += 1;
            }
        }
        self.pause = match placed {
            0 => (self.pause * 2).min(LONGEST),
            _ => SHORTEST,
        };
        Ok(Step {
            alive: all.len(),
            placed,
            ended,
            refused: self.refused.len(),
        })
    }

    /// How long to wait before the next step.
    pub fn pause(&self) -> Duration {
        self.pause
    }

    /// What was done to the threads that are alive, in the order they were created.
    pub fn changes(&self) -> Vec<Change> {
        let mut kept: Vec<(&Task, &Change)> = self.kept.iter().collect();
        kept.sort_unstable_by_key(|(task, _)| **task);
        kept.into_iter().map(|(_, change)| change.clone()).collect()
    }

    /// Gives all living threads the cpus they had before.
    pub fn undo(self) -> Undone {
        let mut undone = Undone::default();
        for (task, change) in &self.kept {
            if tasks::task(task.process, task.thread) != Some(*task) {
                undone.ended += 1;
                continue;
            }
            match affinity::set(task.thread, &change.before) {
                Ok(()) => undone.restored += 1,
                Err(error) if tasks::gone(&error) => undone.ended += 1,
                Err(_) => undone.refused += 1,
            }
        }
        undone
    }

    fn is_young(&self, process: i32) -> bool {
        let seen = self.seen.get(&process);
        seen.is_some_and(|since| since.elapsed() < self.options.settle)
    }

    /// Forgets the threads that are not among the `living`; returns how many.
    fn forget(&mut self, living: &[Task]) -> usize {
        let alive = |task: &Task| living.binary_search(task).is_ok();
        let before = self.kept.len();
        let load = &mut self.load;
        self.kept.retain(|task, change| {
            let keep = alive(task);
            if let (false, Some(slot)) = (keep, change.slot) {
                load[slot] -= 1;
            }
            keep
        });
        self.refused.retain(|task, ()| alive(task));
        self.seen
            .retain(|process, _| living.iter().any(|task| task.process == *process));
        before - self.kept.len()
    }

    /// Places one thread; returns false if it has ended or belongs to another user.
    fn place(&mut self, task: Task) -> Result<bool> {
        let slot = if self.skipped < self.options.skip {
            None
        } else {
            (0..self.load.len()).min_by_key(|&slot| (self.load[slot], slot))
        };
        let after = match slot {
            Some(slot) => self.placement.sets()[slot].clone(),
            None => self.placement.cpus(),
        };
        let result = affinity::get(task.thread).and_then(|before| {
            affinity::set(task.thread, &after)?;
            Ok(before)
        });
        let before = match result {
            Ok(before) => self.original(before),
            Err(error) if tasks::gone(&error) => return Ok(false),
            Err(error) if self.is_foreign(&task, &error) => {
                self.refused.insert(task, ());
                return Ok(false);
            }
            Err(source) => {
                return Err(Error::Affinity {
                    process: task.process,
                    thread: task.thread,
                    cpus: after,
                    source,
                });
            }
        };
        match slot {
            Some(slot) => self.load[slot] += 1,
            None => self.skipped += 1,
        }
        let change = Change {
            process: task.process,
            thread: task.thread,
            slot,
            before,
            after,
        };
        self.kept.insert(task, change);
        Ok(true)
    }

    /// Whether a descendant changed its user, which is no reason to give up the others.
    fn is_foreign(&self, task: &Task, error: &io::Error) -> bool {
        error.raw_os_error() == Some(libc::EPERM) && task.process != self.process
    }

    /// The cpus a thread had before anything was changed: one that was created by a placed thread
    /// has inherited that one's cpus; it gets those of the first thread.
    fn original(&self, now: CpuSet) -> CpuSet {
        let inherited = self.kept.values().any(|change| change.after == now);
        if inherited { self.first.clone() } else { now }
    }
}
