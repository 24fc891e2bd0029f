//! [`Watch`]: samples a process, and its children if wanted, again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::residency::ProcessMemory;
use crate::tasks::Tasks;
use crate::watch::sample::{Memory, Sample, Seen};
use crate::watch::summary::Summary;
use crate::{Error, Looker, Nodes, Process, Result, Stat, System};

/// How often children are counted if they are not followed.
const CHILDREN_EVERY: Duration = Duration::from_secs(1);

/// The most processes that are followed at once.
const PROCESSES: usize = 4096;

/// Follows a process, and its children if wanted.
///
/// ```
/// use counters::{Nodes, System, Watch};
///
/// let nodes = Nodes::new(&topology::Machine::live().unwrap());
/// let mut watch = Watch::new(&System::real(), &nodes, std::process::id(), false)?;
/// let sample = watch.look()?;
/// assert_eq!(sample.processes.len(), 1);
/// println!("{:?}", watch.summary().migrations);
/// # Ok::<(), counters::Error>(())
/// ```
#[derive(Debug)]
pub struct Watch {
    system: System,
    nodes: Nodes,
    looker: Looker,
    root: u32,
    children: bool,
    begun: Instant,
    followed: BTreeMap<u32, Followed>,
    looked_for_children: Option<Instant>,
    /// Children of the process that are not followed, when they were looked for last.
    unfollowed: BTreeSet<u32>,
    summary: Summary,
}

#[derive(Debug)]
struct Followed {
    tasks: Tasks,
    memory: std::result::Result<ProcessMemory, String>,
}

impl Watch {
    /// Watches process `pid` from now on; its children, and theirs, where `children` says so.
    ///
    /// # Errors
    ///
    /// [`Error::NoProcess`], [`Error::Thread`], or what its files make of it.
    pub fn new(system: &System, nodes: &Nodes, pid: u32, children: bool) -> Result<Watch> {
        let process = Process::open(system, pid)?;
        let mut watch = Watch {
            system: system.clone(),
            nodes: nodes.clone(),
            looker: Looker::new(system, nodes),
            root: pid,
            children,
            begun: Instant::now(),
            followed: BTreeMap::new(),
            looked_for_children: None,
            unfollowed: BTreeSet::new(),
            summary: Summary::new(&process),
        };
        watch.follow(process)?;
        watch.look_for_children()?;
        Ok(watch)
    }

    fn follow(&mut self, process: Process) -> Result<()> {
        let pid = process.pid();
        let memory = Process::open(&self.system, pid)
            .map(|process| ProcessMemory::new(self.looker.clone(), process))
            .map_err(|error| error.to_string());
        let tasks = Tasks::attach(&self.system, &self.nodes, process)?;
        self.followed.insert(pid, Followed { tasks, memory });
        Ok(())
    }

    /// Looks at everything that is followed.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`] where all has ended, or what the files of the process make of it. What
    /// goes wrong with a child counts as its end.
    pub fn look(&mut self) -> Result<Sample> {
        let mut started = Vec::new();
        let every = if self.children {
            Duration::ZERO
        } else {
            CHILDREN_EVERY
        };
        if self
            .looked_for_children
            .is_none_or(|at| at.elapsed() >= every)
        {
            started = self.look_for_children()?;
        }
        let mut processes = Vec::new();
        let mut ended = Vec::new();
        let mut failed = None;
        let pids: Vec<u32> = self.followed.keys().copied().collect();
        for pid in pids {
            let Some(followed) = self.followed.get_mut(&pid) else {
                continue;
            };
            match followed.tasks.look() {
                Ok(activity) => {
                    let memory = followed.memory();
                    processes.push(Seen { activity, memory });
                }
                Err(error) => {
                    self.followed.remove(&pid);
                    ended.push(pid);
                    if pid == self.root && !matches!(error, Error::Ended { .. }) {
                        failed = Some(error);
                    }
                }
            }
        }
        self.summary.ended(&ended);
        if let Some(error) = failed {
            return Err(error);
        }
        if processes.is_empty() {
            return Err(Error::Ended { pid: self.root });
        }
        let sample = Sample {
            at: self.begun.elapsed(),
            processes,
            started,
            ended,
            unfollowed: self.unfollowed.iter().copied().collect(),
        };
        self.summary.add(&sample);
        Ok(sample)
    }

    /// Follows children that have come, or notes them; gives those that are followed since.
    fn look_for_children(&mut self) -> Result<Vec<u32>> {
        self.looked_for_children = Some(Instant::now());
        self.unfollowed.clear();
        let mut new = Vec::new();
        let mut queue: Vec<u32> = self.followed.keys().copied().collect();
        while let Some(pid) = queue.pop() {
            let Some(followed) = self.followed.get(&pid) else {
                continue;
            };
            // One that has just ended has no children, which the next look finds.
            let Ok(children) = followed.tasks.process().children() else {
                continue;
            };
            for child in children {
                if self.followed.contains_key(&child) {
                    continue;
                }
                if !self.children || self.followed.len() >= PROCESSES {
                    self.unfollowed.insert(child);
                    continue;
                }
                // It may have ended already, or belong to somebody else.
                let opened = Process::open(&self.system, child).and_then(|process| {
                    let stat: Stat = process.stat()?;
                    if stat.ended() {
                        return Err(Error::Ended { pid: child });
                    }
                    self.follow(process)
                });
                if opened.is_ok() {
                    new.push(child);
                    queue.push(child);
                }
            }
        }
        new.sort_unstable();
        self.summary.started(&new);
        Ok(new)
    }

    /// The process that watching began with.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// Whether that process has ended; its children may go on.
    pub fn root_ended(&self) -> bool {
        !self.followed.contains_key(&self.root)
    }

    /// Why perf does not count migrations, where it does not.
    pub fn without_perf(&self) -> Option<&str> {
        let root = self.followed.get(&self.root)?;
        root.tasks.without_perf().map(|reason| reason.text.as_str())
    }

    /// All there was so far.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }
}

impl Followed {
    fn memory(&mut self) -> std::result::Result<Memory, String> {
        let memory = self.memory.as_mut().map_err(|why| why.clone())?;
        let (found, age) = memory.look().map_err(|error| error.to_string())?;
        Ok(Memory {
            nodes: found.nodes.clone(),
            bytes: found.bytes(),
            sampled: found.look != crate::Look::Walked,
            age,
        })
    }
}
