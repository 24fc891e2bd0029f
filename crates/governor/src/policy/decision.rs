//! Decisions and their reasons.

use std::collections::BTreeMap;
use std::fmt;

use placement::CpuSet;
use serde::{Deserialize, Serialize};

use crate::policy::lonc::Lonc;
use crate::policy::readings::Measure;

/// What happens to the number of cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The database gets more.
    Allocate,
    /// The database gets fewer.
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
    /// The cpu that was taken back.
    pub from: Moved,
    /// The cpu that was handed out, on the node of the pages.
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

/// Pages that were migrated after a decision, because the database has no core on their nodes any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migrated {
    /// Number of pages.
    pub pages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Pages that could not be moved: shared with other processes, or busy.
    pub stayed: u64,
    /// The operating system's numbers of the nodes they were on.
    pub from: Vec<u32>,
    /// The operating system's numbers of the nodes they are on now.
    pub to: Vec<u32>,
}

/// A decision, with everything it was made from. As text it is one line, as JSON one object.
///
/// A file of these objects, one a line, is a trace that can be [replayed](crate::policy::trace::replay).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// When it was made, in seconds of the readings' clock.
    pub time: f64,
    /// The sensors' values that it was made from.
    pub readings: BTreeMap<String, Measure>,
    /// The place that the net went through: Stable, Idle or Overload; Checks where it did not run.
    pub place: String,
    /// The transitions that fired.
    pub transitions: Vec<String>,
    /// What happens to the number of cores.
    pub action: Action,
    /// The cpus of the database from now on.
    pub cpus: Vec<u32>,
    /// The reason, in one sentence.
    pub why: String,
    /// Seconds from reading the sensors until the cpus were set; 0 if nothing was read or set.
    pub decision_seconds: f64,
    /// The cpus there were to choose from, in the kernel's list format.
    pub available: String,
    /// How many cores the database had before.
    pub cores_before: usize,
    /// Cpus handed out by this decision, also for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocated: Vec<Moved>,
    /// Cpus taken back by this decision, also for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub released: Vec<Moved>,
    /// Which of these cpus were exchanged for which; the number of cores stays the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanged: Vec<Exchanged>,
    /// State of the throughput sensor, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lonc: Option<Lonc>,
    /// Pages that were migrated, if pages follow the cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrated: Option<Migrated>,
    /// The database's name, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl Decision {
    /// The cpus of the database from now on.
    pub fn cpus(&self) -> CpuSet {
        self.cpus.iter().copied().collect()
    }

    /// Whether it changed anything: the cores, or the place of pages.
    pub fn changed(&self) -> bool {
        !self.allocated.is_empty() || !self.released.is_empty() || self.migrated.is_some()
    }

    /// The transitions and places that the tokens went through: `t1-Overload-t5`, or `t1-t5` several times over.
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
