//! What was decided, and why.

use std::collections::BTreeMap;
use std::fmt;

use placement::CpuSet;
use serde::{Deserialize, Serialize};

use crate::policy::lonc::Lonc;
use crate::policy::readings::Measure;

/// What happens to the cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The database gets more.
    Allocate,
    /// It gets fewer.
    Release,
    /// As many as before, though perhaps others.
    None,
}

/// A cpu that was handed out or taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The operating system's number.
    pub cpu: u32,
    /// The operating system's number of its node.
    pub node: u32,
}

/// A cpu that was taken back, and the one that was handed out for it, as the database's pages are on that one's node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchanged {
    /// Where it was.
    pub from: Moved,
    /// Where its pages are.
    pub to: Moved,
}

/// `core 1 (node 0) for 5 (node 1)`
impl fmt::Display for Exchanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from, self.to);
        write!(
            f,
            "core {} (node {}) for {} (node {})",
            from.cpu, from.node, to.cpu, to.node
        )
    }
}

/// Pages that were moved after a decision, because their nodes have no core of the database any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migrated {
    /// How many.
    pub pages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many of those looked at could not be moved: shared with other processes, or busy.
    pub stayed: u64,
    /// The operating system's numbers of the nodes they were on.
    pub from: Vec<u32>,
    /// And of those they are on now.
    pub to: Vec<u32>,
}

/// A decision, with all it was made from: as text one line, as JSON one object.
///
/// A file of these objects, one a line, is a trace that can be [replayed](crate::policy::trace::replay).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// In seconds, of the readings' clock.
    pub time: f64,
    /// What it was made from.
    pub readings: BTreeMap<String, Measure>,
    /// The place that the net went through: Stable, Idle or Overload; Checks where it did not run.
    pub place: String,
    /// The transitions that fired.
    pub transitions: Vec<String>,
    /// What happens to the cores.
    pub action: Action,
    /// The cpus of the database from now on.
    pub cpus: Vec<u32>,
    /// One sentence.
    pub why: String,
    /// From reading to the cpus' being set, in seconds; 0 where nothing was read or set.
    pub decision_seconds: f64,
    /// The cpus there were to choose from, in the kernel's list format.
    pub available: String,
    /// How many cores it had before.
    pub cores_before: usize,
    /// Cpus handed out by this decision, also for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocated: Vec<Moved>,
    /// Cpus taken back by this decision, also for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub released: Vec<Moved>,
    /// Which of those were exchanged for which: their number has not changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanged: Vec<Exchanged>,
    /// What the throughput sensor knows, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lonc: Option<Lonc>,
    /// Pages that were moved, where they follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrated: Option<Migrated>,
    /// Which database, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl Decision {
    /// The cpus from now on.
    pub fn cpus(&self) -> CpuSet {
        self.cpus.iter().copied().collect()
    }

    /// Whether it changed anything: cores, or where pages are.
    pub fn changed(&self) -> bool {
        !self.allocated.is_empty() || !self.released.is_empty() || self.migrated.is_some()
    }

    /// The way of the tokens, such as `t1-Overload-t5`, or `t1-t5` several times over.
    pub fn path(&self) -> String {
        match &self.transitions[..] {
            [] => "-".to_owned(),
            [first, rest @ ..] => {
                let mut path = format!("{first}-{}", self.place);
                for transition in rest {
                    path.push('-');
                    path.push_str(transition);
                }
                path
            }
        }
    }
}

/// `12.300 s  load 99 %  t1-Overload-t5  allocate cpu 3 (node 0): 3 -> 4 cores, 0-3; ...`
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} s  ", self.time)?;
        if let Some(target) = &self.target {
            write!(f, "{target}  ")?;
        }
        write!(f, "{}  ", self.path())?;
        let list = |of: &[Moved]| -> String {
            let told: Vec<String> = of
                .iter()
                .map(|moved| format!("cpu {} (node {})", moved.cpu, moved.node))
                .collect();
            told.join(", ")
        };
        // Its reason tells what was exchanged.
        let exchanged = !self.exchanged.is_empty();
        if !self.allocated.is_empty() && !exchanged {
            write!(f, "allocate {}  ", list(&self.allocated))?;
        }
        if !self.released.is_empty() && !exchanged {
            write!(f, "release {}  ", list(&self.released))?;
        }
        let (before, now) = (self.cores_before, self.cpus.len());
        if before == now {
            write!(f, "{now} cores")?;
        } else {
            write!(f, "{before} -> {now} cores")?;
        }
        write!(f, ", {}: {}", self.cpus(), self.why)?;
        if let Some(moved) = &self.migrated {
            let nodes = |of: &[u32]| {
                let numbers: Vec<String> = of.iter().map(u32::to_string).collect();
                numbers.join(",")
            };
            let (pages, mib) = (moved.pages, moved.bytes as f64 / f64::from(1 << 20));
            let (from, to) = (nodes(&moved.from), nodes(&moved.to));
            write!(
                f,
                "; {pages} pages ({mib:.1} MiB) moved from node {from}, where it has no core, to {to}"
            )?;
        }
        Ok(())
    }
}
