//! The costs of placements, recorded once, so that searches can be compared without running
//! anything.
//!
//! ```json
//! {"machine": "xeon-2630", "threads": 12, "workload": "scan", "baseline": 1.9,
//!  "placements": [{"cpus": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], "cost": 1.7}]}
//! ```
//!
//! `machine` is what [`Machine::parse`](topology::Machine::parse) takes; `cpus` names the cpu of
//! each thread in the order they are created; `cost` is in any unit, less is better; `baseline`, the
//! cost without placement, may be left out. Other members are ignored.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use topology::Machine;

use crate::{Classes, CpuSet, Error, Placement, Result, Site, Threads, mapping};

/// What is in the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The machine, as [`Machine::parse`](topology::Machine::parse) takes it.
    pub machine: String,
    /// Number of threads.
    pub threads: usize,
    /// What ran, for people.
    pub workload: String,
    /// The cost where the operating system places the threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
    /// What was measured.
    pub placements: Vec<Entry>,
}

/// One placement and its cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The cpu of each thread.
    pub cpus: Vec<u32>,
    /// Its cost.
    pub cost: f64,
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    ///
    /// [`Error::File`] and [`Error::Mapping`].
    pub fn read(path: &Path) -> Result<Table> {
        let text = mapping::text(path)?;
        serde_json::from_str(&text).map_err(|error| Error::Mapping {
            from: path.display().to_string(),
            why: error.to_string(),
        })
    }

    /// The costs by class.
    ///
    /// # Errors
    ///
    /// [`Error::Mapping`] for an unknown machine, a placement of another number of threads or with
    /// cpus the machine has not, a cost that is no positive number, and an empty table.
    pub fn costs(&self) -> Result<Costs> {
        let wrong = |why: String| Error::Mapping {
            from: format!("the table of {}", self.workload),
            why,
        };
        let machine = Machine::parse(&self.machine).map_err(|error| wrong(error.to_string()))?;
        let site = Site::new(&machine);
        let threads = Threads::in_groups(self.threads, 1)?;
        let classes = Classes::new(&site, &threads)?;
        let mut costs = HashMap::new();
        for (at, entry) in self.placements.iter().enumerate() {
            let sets = entry
                .cpus
                .iter()
                .map(|&cpu| CpuSet::from(vec![cpu]))
                .collect();
            let placement = Placement::explicit(&site, sets);
            let placement = placement.map_err(|error| wrong(format!("placement {at}: {error}")))?;
            let class = classes.canonical(&site, &placement);
            let class = class.ok_or_else(|| {
                wrong(format!("placement {at} is not of {} threads", self.threads))
            })?;
            if !(entry.cost.is_finite() && entry.cost > 0.0) {
                return Err(wrong(format!("placement {at} costs {}", entry.cost)));
            }
            costs.insert(class, entry.cost);
        }
        if costs.is_empty() {
            return Err(wrong("it is empty".to_owned()));
        }
        Ok(Costs {
            site,
            threads,
            classes,
            costs,
            baseline: self.baseline,
        })
    }
}

/// The costs of a table, for any placement that is equivalent to one in it.
#[derive(Debug)]
pub struct Costs {
    site: Site,
    threads: Threads,
    classes: Classes,
    costs: HashMap<Placement, f64>,
    baseline: Option<f64>,
}

impl Costs {
    /// The site of the table's machine.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// The table's threads, in one group.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    /// The cost of a placement, if one of its class was measured.
    pub fn of(&self, placement: &Placement) -> Option<f64> {
        let class = self.classes.canonical(&self.site, placement)?;
        self.costs.get(&class).copied()
    }

    /// The least cost.
    pub fn least(&self) -> f64 {
        self.costs.values().copied().fold(f64::INFINITY, f64::min)
    }

    /// What gains are measured against: the cost without placement, or the mean of all placements if
    /// that was not recorded.
    pub fn baseline(&self) -> f64 {
        let mean = || self.costs.values().sum::<f64>() / self.costs.len() as f64;
        self.baseline.unwrap_or_else(mean)
    }

    /// The part of the best gain that a placement of this cost has: 1 for the best, 0 for the
    /// baseline, below 0 for worse.
    pub fn gain(&self, cost: f64) -> f64 {
        let best = self.baseline() - self.least();
        if best <= 0.0 {
            return if cost <= self.least() { 1.0 } else { 0.0 };
        }
        (self.baseline() - cost) / best
    }
}
