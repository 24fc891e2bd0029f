//! Where the pages of the group are. One process is looked at, at a time.

use std::time::{Duration, Instant};

use counters::{Depth, Look, Looker, Nodes, Process, System};
use governor::{Measure, RESIDENCY, Readings, Residency};
use topology::Machine;

use crate::group::target::Group;

/// How a process is looked at. The page tables of a small one are walked, which takes a few milliseconds: it may have
/// only a small part of its mappings in memory, which samples would hardly hit.
const DEPTH: Depth = Depth::UpTo {
    walked: 256 << 20,
    addresses: 512,
};

/// The pause after a look, as a multiple of the time it took.
const REST: u32 = 400;

/// How many first looks have a shorter pause, so that the place of memory is known soon, and that pause.
const FIRST: u32 = 16;
const FIRST_REST: u32 = 10;

/// About the longest time of the looks before the first decision.
const START: Duration = Duration::from_millis(100);

/// With one node there is nothing to choose between.
const ONE_NODE: Duration = Duration::from_secs(2);

/// Finds out where memory is, between decisions.
#[derive(Debug)]
pub(crate) struct Memory {
    looker: Looker,
    residency: Residency,
    nodes: usize,
    /// The last process that was looked at.
    at: u32,
    next: Option<Instant>,
    looks: u32,
    /// How the last one was looked at.
    source: &'static str,
    why: Option<String>,
}

impl Memory {
    pub(crate) fn new(machine: &Machine, half_life: f64) -> Memory {
        let nodes = Nodes::new(machine);
        let looker = Looker::new(&System::real(), &nodes).depth(DEPTH);
        Memory {
            looker,
            residency: Residency::new(half_life),
            nodes: machine.nodes().len(),
            at: 0,
            next: None,
            looks: 0,
            source: "move_pages",
            why: None,
        }
    }

    /// Looks at some processes before the first decision, so that the first core is near their memory.
    pub(crate) fn first(&mut self, group: &Group) {
        let begun = Instant::now();
        let many = group.members.len().min(FIRST as usize);
        for _ in 0..if self.nodes > 1 { many } else { 0 } {
            self.next = None;
            self.look(group, 0.0);
            if begun.elapsed() > START {
                break;
            }
        }
    }

    /// Looks at the next process, if it is due.
    pub(crate) fn look(&mut self, group: &Group, time: f64) {
        let begun = Instant::now();
        if self.next.is_some_and(|next| begun < next) {
            return;
        }
        let after = group.members.range(self.at.saturating_add(1)..).next();
        let Some((pid, _)) = after.or_else(|| group.members.iter().next()) else {
            return;
        };
        self.at = *pid;
        let process = Process::open(&System::real(), *pid);
        let found = process.and_then(|process| self.looker.look(&process));
        match found {
            Ok(found) => {
                // Code is read from caches; where it lies says nothing.
                let bytes = found.data();
                let nodes = found.nodes.iter().copied();
                let bytes = nodes.zip(bytes.iter().map(|bytes| *bytes as f64)).collect();
                self.residency.looked(*pid, time, bytes);
                self.source = match found.look {
                    Look::Walked => "numa_maps",
                    Look::Sampled { .. } => "move_pages, sampled",
                };
                self.why = None;
            }
            Err(counters::Error::Ended { .. } | counters::Error::NoProcess { .. }) => {
                self.residency.ended(*pid);
            }
            Err(error) => self.why = Some(error.to_string()),
        }
        self.looks = self.looks.saturating_add(1);
        let rest = begun.elapsed()
            * if self.looks <= FIRST {
                FIRST_REST
            } else {
                REST
            };
        let rest = if self.nodes == 1 {
            rest.max(ONE_NODE)
        } else {
            rest.min(ONE_NODE * 10)
        };
        self.next = Some(begun + rest);
    }

    /// Adds the known bytes per node to the readings, with their age.
    pub(crate) fn tell(&self, readings: &mut Readings) {
        let time = readings.time;
        match (self.residency.age(time), &self.why) {
            (Some(age), _) => {
                for (node, bytes) in self.residency.bytes(time) {
                    let mut measure = Measure::new(bytes.round(), "bytes", self.source);
                    measure.age_seconds = (age * 1000.0).round() / 1000.0;
                    readings.set(&format!("{RESIDENCY}{node}"), measure);
                }
            }
            (None, Some(why)) => {
                let measure = Measure::unavailable("bytes", self.source, why);
                readings.set("residency", measure);
            }
            (None, None) => {}
        }
    }
}
