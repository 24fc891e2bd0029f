//! The sensors' values that a decision is made from.

use std::collections::BTreeMap;

use placement::CpuSet;
use serde::{Deserialize, Serialize};

/// A sensor's value with its unit, source and age.
///
/// As JSON: `{"value", "unit", "source", "age_seconds"}`; if there is no value, `"value"` is `null`
/// and `"unavailable"` says why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// The number; `None` if it could not be read. Never zero for "unknown".
    pub value: Option<f64>,
    /// The unit of the number.
    pub unit: String,
    /// Which sensor read it.
    pub source: String,
    /// How old it was when the decision was made.
    pub age_seconds: f64,
    /// Why there is no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

impl Measure {
    /// A number that was read just now, rounded to the twelve digits that a trace keeps. NaN and infinities become
    /// missing values.
    pub fn new(value: f64, unit: &str, source: &str) -> Measure {
        if !value.is_finite() {
            return Measure::unavailable(unit, source, &format!("it is {value}"));
        }
        Measure {
            value: Some(short(value)),
            unit: unit.to_owned(),
            source: source.to_owned(),
            age_seconds: 0.0,
            unavailable: None,
        }
    }

    /// No number, and why.
    pub fn unavailable(unit: &str, source: &str, why: &str) -> Measure {
        Measure {
            value: None,
            unit: unit.to_owned(),
            source: source.to_owned(),
            age_seconds: 0.0,
            unavailable: Some(why.to_owned()),
        }
    }
}

/// The number to twelve digits, which JSON gives back exactly.
fn short(number: f64) -> f64 {
    format!("{number:.11e}").parse().unwrap_or(number)
}

/// Cpus that the database kept busy since the last decision.
pub const BUSY: &str = "busy";

/// Load of the allocated cores in per cent, where `busy` is not known.
pub const LOAD: &str = "load";

/// Threads, on average, that could have run and had no cpu.
pub const WAITING: &str = "waiting";

/// The share of the time in which somebody waited for a cpu: in its control group, or on the machine.
pub const PRESSURE: &str = "pressure";

/// Interconnect traffic over memory-controller traffic.
pub const TRAFFIC: &str = "traffic";

/// Work done, per second.
pub const THROUGHPUT: &str = "throughput";

/// The bytes of the database's memory on a node: this and the node's number, `residency.node0`.
pub const RESIDENCY: &str = "residency.node";

/// The values of all sensors at one check.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Readings {
    /// The time in seconds, from any moment; it never goes back.
    pub time: f64,
    /// The cpus there are to choose from, as the operating system numbers them.
    pub available: CpuSet,
    /// The values by name: [`BUSY`] and the others.
    pub values: BTreeMap<String, Measure>,
}

impl Readings {
    /// Nothing read yet.
    pub fn new(time: f64, available: CpuSet) -> Readings {
        Readings {
            time: short(time),
            available,
            values: BTreeMap::new(),
        }
    }

    /// Adds a value, or replaces it.
    pub fn set(&mut self, name: &str, measure: Measure) {
        self.values.insert(name.to_owned(), measure);
    }

    /// The readings with one more value.
    #[must_use]
    pub fn with(mut self, name: &str, measure: Measure) -> Readings {
        self.set(name, measure);
        self
    }

    /// The number of this name; `None` if it could not be read.
    pub fn number(&self, name: &str) -> Option<f64> {
        let value = self.values.get(name)?.value;
        value.filter(|value| value.is_finite())
    }

    /// Why there is no number of this name.
    pub fn why_not(&self, name: &str) -> String {
        let measure = self.values.get(name);
        match measure.and_then(|measure| measure.unavailable.as_deref()) {
            Some(why) => format!("{name} is not known ({why})"),
            None => format!("{name} is not known"),
        }
    }

    /// Seconds since anybody looked where pages are; `None` where nobody did.
    pub(crate) fn residency_age(&self) -> Option<f64> {
        let measures = self.values.iter();
        let of_nodes = measures
            .filter(|(name, measure)| name.starts_with(RESIDENCY) && measure.value.is_some());
        of_nodes
            .map(|(_, measure)| measure.age_seconds)
            .min_by(f64::total_cmp)
    }

    /// Bytes by the node's number.
    pub fn residency(&self) -> BTreeMap<u32, f64> {
        let mut nodes = BTreeMap::new();
        for (name, measure) in &self.values {
            let node = name.strip_prefix(RESIDENCY).and_then(|n| n.parse().ok());
            if let (Some(node), Some(bytes)) = (node, measure.value) {
                nodes.insert(node, bytes.max(0.0));
            }
        }
        nodes
    }
}
