//! How a database is governed.

use std::str::FromStr;

use petri::Net;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::policy::sites::{Mode, Siblings};

/// What the net's `u` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sensor {
    /// The load of the allocated cores in per cent.
    Load,
    /// Interconnect traffic over memory-controller traffic (E7); thresholds 0.1 and 0.4.
    Traffic,
    /// The load, within the bounds that throughput allows (E5).
    Throughput,
}

impl Sensor {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Sensor::Load => "load",
            Sensor::Traffic => "traffic",
            Sensor::Throughput => "throughput",
        }
    }
}

impl FromStr for Sensor {
    type Err = Error;

    fn from_str(name: &str) -> Result<Sensor> {
        match name {
            "load" => Ok(Sensor::Load),
            "traffic" => Ok(Sensor::Traffic),
            "throughput" => Ok(Sensor::Throughput),
            _ => Err(Error::Name {
                what: "sensor",
                name: name.to_owned(),
                known: "load, traffic, throughput",
            }),
        }
    }
}

/// How many cores one check may allocate or release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stride {
    /// One, as in the text.
    One,
    /// As many as the net asks for when it is asked again with the load that is to be expected:
    /// what is busy and what waits, over one core more or less. Where nothing tells how much
    /// waits and all cores are busy, three times as many as there are.
    Demand,
}

/// How a database is governed. [`Policy::plain`] is the text's own net and nothing else;
/// [`Policy::default`] adds what makes it usable on a live system.
///
/// As JSON its fields by name; those that are missing are as in the default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Which core is handed out next.
    pub mode: Mode,
    /// What `u` is.
    pub sensor: Sensor,
    /// When second hardware threads are handed out.
    pub siblings: Siblings,
    /// The fewest cores, with which it starts.
    pub min_cores: usize,
    /// The most cores; `None`: all.
    pub max_cores: Option<usize>,
    /// How many cpus are left to others.
    pub reserve: usize,
    /// The `u` at or below which a core is released.
    pub th_min: f64,
    /// The `u` from which on a core is allocated.
    pub th_max: f64,
    /// Counts threads that wait for a cpu as load: on a machine that others use too, a database that
    /// gets no time is not idle.
    pub count_waiting: bool,
    /// How many cores one check may allocate or release.
    pub stride: Stride,
    /// Also releases a core if the load expected afterwards stays below this; 0: never.
    pub slack: f64,
    /// The weight of the newest value in the moving average of `u`; 1: no smoothing.
    pub smoothing: f64,
    /// How many checks in a row must find it overloaded before a core is allocated.
    pub confirm_up: u32,
    /// How many checks in a row must find it idle before a core is released.
    pub confirm_down: u32,
    /// How many checks in a row must find more work than the cores of its nodes can do before it gets cores of
    /// another node, because threads then move there and back; until then it gets all cores of its nodes. 1: at once,
    /// and for headroom too. In adaptive mode, by load, if the number of waiting threads is known.
    pub confirm_node: u32,
    /// After a node was entered needlessly, or left and soon entered again, twice as many checks must agree before
    /// the next is entered or left; this is the largest factor. 1: never more. In adaptive mode, by load.
    pub patience: u32,
    /// The most changes within `rate_seconds`; 0: no limit.
    pub rate_changes: u32,
    /// The period of `rate_changes`, in seconds.
    pub rate_seconds: f64,
    /// In adaptive mode: cores are exchanged for those of a node that has more than this many times the pages of
    /// their own node; 0: never.
    pub follow: f64,
    /// How many looks in a row at the place of pages must agree before cores are exchanged.
    pub confirm_follow: u32,
    /// Checks after an exchange before there may be another.
    pub rest_follow: u32,
    /// Seconds after which a look at the place of pages counts half.
    pub half_life: f64,
    /// Checks between two attempts of the throughput sensor to find something better.
    pub probe_every: u32,
}

impl Policy {
    /// The text's net: sensors as they are, one core per check, thresholds 10 and 70.
    pub fn plain() -> Policy {
        Policy {
            count_waiting: false,
            stride: Stride::One,
            slack: 0.0,
            confirm_down: 1,
            confirm_node: 1,
            patience: 1,
            follow: 0.0,
            ..Policy::default()
        }
    }

    /// The thresholds of the text for a sensor: 0.1 and 0.4 for traffic, without slack, else 10 and 70.
    #[must_use]
    pub fn thresholds_of(mut self, sensor: Sensor) -> Policy {
        self.sensor = sensor;
        (self.th_min, self.th_max) = match sensor {
            Sensor::Traffic => (0.1, 0.4),
            Sensor::Load | Sensor::Throughput => (10.0, 70.0),
        };
        if sensor == Sensor::Traffic {
            // It is a load.
            self.slack = 0.0;
        }
        self
    }

    /// # Errors
    ///
    /// [`Error::Policy`] with what is wrong.
    pub fn check(&self) -> Result<()> {
        let wrong = |why: String| Err(Error::Policy { why });
        if self.min_cores == 0 {
            return wrong("at least one core is needed (min_cores)".to_owned());
        }
        if let Some(max) = self.max_cores
            && max < self.min_cores
        {
            let min = self.min_cores;
            return wrong(format!("max_cores {max} is below min_cores {min}"));
        }
        if !(self.th_min >= 0.0 && self.th_min < self.th_max && self.th_max.is_finite()) {
            let (min, max) = (self.th_min, self.th_max);
            return wrong(format!(
                "0 <= th_min < th_max is required, and they are {min} and {max}"
            ));
        }
        if !(self.smoothing > 0.0 && self.smoothing <= 1.0) {
            return wrong(format!(
                "smoothing {} is not within 0 and 1",
                self.smoothing
            ));
        }
        if !(self.slack >= 0.0 && self.slack < self.th_max) {
            return wrong(format!("slack {} is not below th_max", self.slack));
        }
        let counts = [
            ("confirm_up", self.confirm_up),
            ("confirm_down", self.confirm_down),
            ("confirm_node", self.confirm_node),
            ("patience", self.patience),
            ("confirm_follow", self.confirm_follow),
            ("probe_every", self.probe_every),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return wrong(format!("{name} is at least 1"));
        }
        let seconds = self.rate_seconds >= 0.0 && self.half_life > 0.0;
        if !(seconds && self.follow >= 0.0) {
            return wrong("rate_seconds, half_life and follow are not negative".to_owned());
        }
        Ok(())
    }

    /// The net with this policy's thresholds. It must have what the governor asks of it.
    pub(crate) fn prepare(&self, net: &Net) -> Result<Net> {
        let most = if self.sensor == Sensor::Traffic {
            1e12
        } else {
            100.0
        };
        let net = net.with_all(&[
            ("th_min", self.th_min),
            ("th_max", self.th_max),
            ("u_max", most),
            ("n_total", 1e6),
            ("n_min", 1.0),
        ])?;
        net.place("Provision")?;
        net.start()?.number(&net, "Provision")?;
        if net.readings().len() != 1 || &*net.readings()[0] != "u" {
            return Err(Error::Policy {
                why: "the net must have one reading, u".to_owned(),
            });
        }
        Ok(net)
    }
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            mode: Mode::Adaptive,
            sensor: Sensor::Load,
            siblings: Siblings::Last,
            min_cores: 1,
            max_cores: None,
            reserve: 0,
            th_min: 10.0,
            th_max: 70.0,
            count_waiting: true,
            stride: Stride::Demand,
            slack: 60.0,
            smoothing: 1.0,
            confirm_up: 1,
            confirm_down: 3,
            confirm_node: 3,
            patience: 8,
            rate_changes: 0,
            rate_seconds: 0.0,
            follow: 2.0,
            confirm_follow: 3,
            rest_follow: 20,
            half_life: 10.0,
            probe_every: 100,
        }
    }
}
