//! Energy: measured where a counter tells it, else the document's estimate (E11).

use std::fmt;

use serde::{Deserialize, Serialize};

/// The average power of an Opteron 8387 with its four cores, in watts, as its maker gives it: the
/// processor of the document.
pub const OPTERON_8387_WATTS: f64 = 75.0;

/// Energy of a bit between nodes, in joules: an assumption, of the order that links between sockets
/// need; the document does not print its own.
pub const LINK_JOULES_PER_BIT: f64 = 10e-12;

/// The parameters of an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Power {
    /// Average power of a core in use, in watts: that of the processor over its cores.
    pub core_watts: f64,
    /// Energy per bit that crosses between nodes, in joules; `None` if unknown.
    pub joules_per_bit: Option<f64>,
}

/// The document's processor, and [`LINK_JOULES_PER_BIT`].
impl Default for Power {
    fn default() -> Power {
        Power {
            core_watts: OPTERON_8387_WATTS / 4.0,
            joules_per_bit: Some(LINK_JOULES_PER_BIT),
        }
    }
}

/// Energy, estimated: never measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// Energy of the cores, in joules.
    pub cpu_joules: f64,
    /// Energy of the traffic between nodes, in joules; `None` if unknown.
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

/// The machine's own counters, which count everybody on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Joules of all packages and their memory, measured (powercap); `None` where that is not counted.
    pub joules: Option<f64>,
    /// Bytes that crossed between nodes; `None` where they are not counted.
    pub link_bytes: Option<f64>,
}

/// What a target has used since it is governed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// What is governed.
    pub target: String,
    /// For how many seconds it was governed.
    pub seconds: f64,
    /// Cores that it had, in core-seconds.
    pub core_seconds: f64,
    /// Cores that it kept busy, in core-seconds.
    pub used: f64,
    /// Seconds in which its busy time could not be read: neither in `used` nor in the estimate.
    #[serde(default)]
    pub unread_seconds: f64,
    /// Energy estimated by the document's method from `used` and the machine's bytes between nodes; never measured.
    pub energy: Energy,
    /// The parameters of that estimate.
    pub power: Power,
    /// Counters of the whole machine over the same time.
    pub machine: Machine,
}

/// `postgres: 23.1 of 40.2 core-seconds used in 20.1 s; 433 J estimated (18.75 W a core; ...)`
impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (energy, watts) = (&self.energy, self.power.core_watts);
        write!(
            f,
            "{}: {:.1} of {:.1} core-seconds used in {:.1} s; energy: {:.1} J of its cores estimated, at {watts} W a core",
            self.target, self.used, self.core_seconds, self.seconds, energy.cpu_joules
        )?;
        if self.unread_seconds > 0.0 {
            let seconds = self.unread_seconds;
            write!(f, ", without what could not be read for {seconds:.1} s")?;
        }
        match energy.link_joules {
            Some(joules) => write!(f, ", {joules:.3} J of the links, estimated")?,
            None => write!(
                f,
                ", of the links not known, as nobody counts their bytes here"
            )?,
        }
        match self.machine.joules {
            Some(joules) => write!(f, "; the whole machine used {joules:.1} J, measured"),
            None => write!(f, "; nothing here measures it"),
        }
    }
}

/// The core-seconds of decisions: cores times the time until the next, up to `end`.
pub fn core_seconds<'a>(
    decisions: impl IntoIterator<Item = &'a crate::policy::decision::Decision>,
    end: f64,
) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_power_times_time_and_energy_times_bits() {
        let power = Power {
            core_watts: 20.0,
            joules_per_bit: Some(1e-9),
        };
        let energy = power.energy(3.0, Some(1e9));
        assert_eq!(energy.cpu_joules, 60.0);
        assert!((energy.link_joules.unwrap() - 8.0).abs() < 1e-9);
        assert!(energy.estimate);
        assert_eq!(
            power.energy(3.0, None).link_joules,
            None,
            "unknown is not none"
        );
    }

    #[test]
    fn what_is_not_measured_is_said() {
        let power = Power::default();
        let mut spent = Spent {
            target: "postgres".to_owned(),
            seconds: 10.0,
            core_seconds: 20.0,
            used: 8.0,
            unread_seconds: 0.0,
            energy: power.energy(8.0, None),
            power,
            machine: Machine::default(),
        };
        let told = spent.to_string();
        for part in [
            "8.0 of 20.0 core-seconds",
            "150.0 J",
            "estimated",
            "links not known",
            "nothing here measures",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        spent.machine = Machine {
            joules: Some(321.0),
            link_bytes: Some(1e9),
        };
        spent.energy = power.energy(8.0, spent.machine.link_bytes);
        let told = spent.to_string();
        for part in ["0.080 J of the links, estimated", "321.0 J, measured"] {
            assert!(told.contains(part), "{part}: {told}");
        }
        let json = serde_json::to_value(&spent).unwrap();
        assert_eq!(json["energy"]["estimate"], true);
        assert_eq!(json["machine"]["joules"], 321.0);
    }
}
