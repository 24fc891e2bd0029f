//! The number of threads that are ready and have no cpu, from their waiting times in `schedstat`.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use counters::Schedstat;
use governor::Measure;

use crate::group::target::Group;
use crate::system::proc;

/// The most threads that are read in one check. If more ran lately, these stand for the others.
const PANEL: usize = 32;

/// How many threads that did not run lately are read as well: the processor time of a thread that gets no cpu at all
/// does not grow, as if it were idle.
const IDLE: usize = 4;

/// If any thread waited in less than this share of the time, no thread is read: none is starved.
const CALM: f64 = 0.05;

/// If there are idle cpus, each thread is read once in this many checks.
const TURNS: usize = 4;

/// Fewer are read at each check.
const MANY: usize = 8;

/// There are idle cpus if running and waiting threads take less than this share of the cpus.
const ROOM: f64 = 0.5;

/// How often the threads are listed.
const LIST: Duration = Duration::from_millis(500);

/// The most processes of which all threads are listed.
const FEW: usize = 8;

/// Waiting time of a group.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    files: HashMap<u32, Thread>,
    listed: Option<Instant>,
    read: Option<Instant>,
    /// The turn of this check.
    turn: usize,
    /// Threads that waited, at the last check.
    waited: f64,
    /// Whether no thread was read in the last check.
    stale: bool,
    /// Whether more threads ran lately than are read.
    part: bool,
    /// Threads whose file could be read, and those of them with a figure above zero.
    seen: usize,
    counted: usize,
}

#[derive(Debug)]
struct Thread {
    file: File,
    /// Its waiting time when it was last read, in nanoseconds, and when that was.
    last: u64,
    at: Instant,
    /// The share of the time that it waited until the last reading.
    share: f64,
    /// The number of threads it stands for.
    weight: f64,
}

/// A thread that is to be read: its process, its number, and the number of threads it stands for.
type Wanted = (u32, u32, f64);

/// Its `schedstat`.
const SOURCE: &str = "schedstat";

impl Waiting {
    /// The mean number of waiting threads since the last call. `pressure` is the share of the time in which any
    /// thread waited, if known: as long as it is small it is the answer, which takes only one file. `load` is the
    /// share of its cpus that the group keeps busy: as long as it is small, threads are read in turns.
    pub(crate) fn read(
        &mut self,
        group: &Group,
        pressure: Option<f64>,
        (busy, cores): (Option<f64>, usize),
    ) -> Measure {
        let (unit, source) = ("threads", SOURCE);
        if let Some(share) = pressure.filter(|share| *share < CALM) {
            // What was waited before is old when threads are asked again.
            self.stale = true;
            return Measure::new(share, unit, "pressure: nobody waited long");
        }
        let now = Instant::now();
        if std::mem::take(&mut self.stale) {
            self.read = None;
        }
        let elapsed = self.read.replace(now).map(|last| now - last);
        let room = busy.is_some_and(|busy| busy + self.waited < cores as f64 * ROOM);
        // What they waited while nobody asked is no measure.
        self.turn = if elapsed.is_some() { self.turn + 1 } else { 0 };
        let turns = if room && self.turn > 1 && self.files.len() > MANY {
            TURNS
        } else {
            1
        };
        let waited = self.ask(now, turns);
        let known = self.files.len();
        if group.came || self.listed.is_none_or(|at| now - at >= LIST) {
            self.listed = Some(now);
            self.list(group);
        }
        let not = |why| Measure::unavailable(unit, source, why);
        match elapsed {
            // At least one, for that share of the time.
            None => match pressure {
                Some(share) => Measure::new(share, unit, "pressure"),
                None => not("it takes a second look"),
            },
            Some(elapsed) if elapsed.is_zero() => not("it takes a second look"),
            Some(elapsed) if known > 0 => {
                self.waited = waited;
                let source = if self.part {
                    format!("schedstat of {known} threads")
                } else {
                    source.to_owned()
                };
                let mut measure = Measure::new(waited, unit, &source);
                // Some are as old as a round of turns; on average half of that.
                measure.age_seconds = elapsed.as_secs_f64() * (turns - 1) as f64 / 2.0;
                measure
            }
            Some(_) if group.members.is_empty() => Measure::new(0.0, unit, "no threads"),
            Some(_) if self.counted > 0 => not("it takes a second look"),
            Some(_) if self.seen > 0 => not("the kernel does not count it"),
            Some(_) => not("it cannot be read"),
        }
    }

    /// Reads the threads whose turn it is, of this many turns. Returns the number of all that wait; threads that were
    /// not read count as at their last reading. Threads that have ended are forgotten.
    fn ask(&mut self, now: Instant, turns: usize) -> f64 {
        let (turn, mut number) = (self.turn, 0);
        let mut waited = 0.0;
        let mut buffer = [0; 128];
        self.files.retain(|_, thread| {
            number += 1;
            if (number + turn) % turns != 0 {
                waited += thread.share * thread.weight;
                return true;
            }
            // A thread that has ended gives an error or nothing.
            let Ok(bytes) = thread.file.read_at(&mut buffer, 0) else {
                return false;
            };
            let Ok(stat) = Schedstat::parse(&buffer[..bytes], SOURCE) else {
                return false;
            };
            let since = now.saturating_duration_since(thread.at).as_secs_f64();
            let wait = stat.wait.saturating_sub(thread.last) as f64 * 1e-9;
            thread.share = if since > 0.0 { wait / since } else { 0.0 };
            (thread.last, thread.at) = (stat.wait, now);
            waited += thread.share * thread.weight;
            true
        });
        waited
    }

    /// Chooses the threads to read from now on.
    fn list(&mut self, group: &Group) {
        let wanted = self.wanted(group);
        let weights: HashMap<u32, f64> = wanted
            .iter()
            .map(|(_, thread, weight)| (*thread, *weight))
            .collect();
        self.files.retain(|number, thread| {
            let weight = weights.get(number);
            thread.weight = weight.copied().unwrap_or(0.0);
            weight.is_some()
        });
        (self.seen, self.counted) = (self.files.len(), self.files.len());
        for (pid, number, weight) in wanted {
            if self.files.contains_key(&number) {
                continue;
            }
            let path = format_args!("/proc/{pid}/task/{number}/schedstat");
            let Some(file) = proc::open(path) else {
                continue;
            };
            let mut buffer = [0; 128];
            let bytes = file.read_at(&mut buffer, 0).unwrap_or(0);
            let Ok(stat) = Schedstat::parse(&buffer[..bytes], "schedstat") else {
                continue;
            };
            self.seen += 1;
            if stat.counted() {
                self.counted += 1;
                let last = stat.wait;
                let thread = Thread {
                    file,
                    last,
                    at: Instant::now(),
                    share: 0.0,
                    weight,
                };
                self.files.insert(number, thread);
            }
        }
    }

    /// All threads of few processes; of many, the first threads of those that ran lately, and of
    /// some that did not.
    fn wanted(&mut self, group: &Group) -> Vec<Wanted> {
        if group.members.len() <= FEW {
            let mut all = Vec::new();
            for pid in group.members.keys() {
                all.extend(proc::threads(*pid).into_iter().map(|thread| (*pid, thread)));
            }
            self.part = all.len() > PANEL;
            return spread(&all, PANEL);
        }
        let (mut active, mut idle) = (Vec::new(), Vec::new());
        for (pid, member) in &group.members {
            if member.active {
                active.push((*pid, *pid))
            } else {
                idle.push((*pid, *pid))
            }
        }
        self.part = active.len() > PANEL;
        let mut wanted = spread(&active, PANEL);
        // What these wait is no measure for the others.
        let some = spread(&idle, IDLE).into_iter();
        wanted.extend(some.map(|(pid, thread, _)| (pid, thread, 1.0)));
        wanted
    }
}

/// An even choice of at most this many of them, each standing for as many others.
fn spread(all: &[(u32, u32)], most: usize) -> Vec<Wanted> {
    let many = all.len().min(most);
    let weight = all.len() as f64 / many.max(1) as f64;
    (0..many)
        .map(|at| all[at * all.len() / many])
        .map(|(pid, thread)| (pid, thread, weight))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_stand_for_all() {
        let all: Vec<(u32, u32)> = (0..100).map(|at| (at, at)).collect();
        let some = spread(&all, 64);
        assert_eq!(some.len(), 64);
        let sum: f64 = some.iter().map(|(_, _, weight)| weight).sum();
        assert!((sum - 100.0).abs() < 1e-9, "{sum}");
        assert!(some.windows(2).all(|two| two[0].1 < two[1].1));
        assert!(some.last().unwrap().1 > 95);
        assert_eq!(
            spread(&all[..3], 64),
            [(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0)]
        );
        assert!(spread(&[], 64).is_empty());
    }
}
