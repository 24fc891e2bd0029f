//! Energy where no counter tells it: the document's estimate (E11).

use serde::{Deserialize, Serialize};

/// The average power of an Opteron 8387 with its four cores, in watts, as its maker gives it: the
/// processor of the document.
pub const OPTERON_8387_WATTS: f64 = 75.0;

/// What an estimate is made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Power {
    /// Average power of a core in use, in watts: that of the processor over its cores.
    pub core_watts: f64,
    /// Energy per bit that crosses between nodes, in joules; `None` where nobody knows it.
    pub joules_per_bit: Option<f64>,
}

/// Energy, estimated: never measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// Of the cores.
    pub cpu_joules: f64,
    /// Of the traffic between nodes; `None` where it is not known.
    pub link_joules: Option<f64>,
    /// Always true: this is average power times time, and energy per bit times bytes.
    pub estimate: bool,
}

impl Power {
    /// The energy of so many core-seconds and so many bytes between nodes.
    pub fn energy(&self, core_seconds: f64, bytes: Option<f64>) -> Energy {
        let link = self.joules_per_bit.zip(bytes);
        Energy {
            cpu_joules: self.core_watts * core_seconds,
            link_joules: link.map(|(per_bit, bytes)| per_bit * bytes * 8.0),
            estimate: true,
        }
    }
}

/// The core-seconds of decisions: cores times the time until the next, up to `end`.
pub fn core_seconds<'a>(decisions: impl IntoIterator<Item = &'a crate::Decision>, end: f64) -> f64 {
    let mut sum = 0.0;
    let mut last: Option<(f64, usize)> = None;
    for decision in decisions {
        if let Some((time, cores)) = last {
            sum += (decision.time - time).max(0.0) * cores as f64;
        }
        last = Some((decision.time, decision.cpus.len()));
    }
    last.map_or(sum, |(time, cores)| {
        sum + (end - time).max(0.0) * cores as f64
    })
}
