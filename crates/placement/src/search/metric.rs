//! The metric that a search minimises.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// What one run of the workload gave. What was not measured is `None`, never 0.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reading {
    /// Seconds.
    pub time: Option<f64>,
    /// Accesses to memory of another node, or bytes from there: any unit, always the same.
    pub remote: Option<f64>,
    /// Joules.
    pub energy: Option<f64>,
}

/// One quantity of a [`Reading`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// [`Reading::time`].
    Time,
    /// [`Reading::remote`].
    Remote,
    /// [`Reading::energy`].
    Energy,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Quantity; 3] = [Quantity::Time, Quantity::Remote, Quantity::Energy];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Time => "time",
            Quantity::Remote => "remote",
            Quantity::Energy => "energy",
        }
    }

    fn of(self, reading: &Reading) -> Option<f64> {
        match self {
            Quantity::Time => reading.time,
            Quantity::Remote => reading.remote,
            Quantity::Energy => reading.energy,
        }
    }
}

/// A quantity, or a weighted sum of several: each is divided by what it was in a first run, so that
/// weights do not depend on units. This trades speed against energy.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Positive weights that sum to 1; no quantity twice.
    weights: Vec<(Quantity, f64)>,
}

impl Metric {
    /// Time alone.
    pub fn time() -> Metric {
        Metric {
            weights: vec![(Quantity::Time, 1.0)],
        }
    }

    /// The quantities it needs.
    pub fn quantities(&self) -> impl Iterator<Item = Quantity> + '_ {
        self.weights.iter().map(|(quantity, _)| *quantity)
    }

    /// The cost of a reading against a `base`: 1 for the base itself.
    ///
    /// # Errors
    ///
    /// [`Error::Metric`] where a quantity was not measured.
    pub fn cost(&self, reading: &Reading, base: &Reading) -> Result<f64> {
        let mut cost = 0.0;
        for &(quantity, weight) in &self.weights {
            let missing = || Error::Metric {
                text: self.to_string(),
                why: format!("{} was not measured", quantity.name()),
            };
            let value = quantity.of(reading).ok_or_else(missing)?;
            let base = quantity.of(base).ok_or_else(missing)?;
            // Nothing remote in the base: what there is counts as it is, and the base stays 1.
            cost += weight
                * if base > 0.0 {
                    value / base
                } else {
                    1.0 + value
                };
        }
        Ok(cost)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [(quantity, _)] = self.weights.as_slice() {
            return write!(f, "{}", quantity.name());
        }
        let mut comma = "";
        for (quantity, weight) in &self.weights {
            write!(f, "{comma}{}={weight}", quantity.name())?;
            comma = ",";
        }
        Ok(())
    }
}

impl FromStr for Metric {
    type Err = Error;

    /// `time`, `remote`, `energy`, or weights such as `time=0.7,energy=0.3`.
    fn from_str(text: &str) -> Result<Metric> {
        let wrong = |why: String| Error::Metric {
            text: text.chars().take(60).collect(),
            why,
        };
        let mut weights: Vec<(Quantity, f64)> = Vec::new();
        for part in text.split(',') {
            let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
            let name = name.trim();
            let quantity = Quantity::ALL
                .into_iter()
                .find(|quantity| quantity.name() == name);
            let quantity = quantity.ok_or_else(|| wrong(format!("'{name}' is no quantity")))?;
            if weights.iter().any(|(other, _)| *other == quantity) {
                return Err(wrong(format!("{name} is there twice")));
            }
            match weight.trim().parse::<f64>() {
                Ok(weight) if weight > 0.0 && weight.is_finite() => {
                    weights.push((quantity, weight));
                }
                _ => return Err(wrong(format!("'{weight}' is no positive weight"))),
            }
        }
        let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
        for (_, weight) in &mut weights {
            *weight /= sum;
        }
        Ok(Metric { weights })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_and_weigh_ratios() {
        let metric: Metric = "time=3, energy=1".parse().unwrap();
        assert_eq!(metric.to_string(), "time=0.75,energy=0.25");
        let reading = |time, energy| Reading {
            time: Some(time),
            energy: Some(energy),
            remote: None,
        };
        let cost = metric.cost(&reading(1.0, 300.0), &reading(2.0, 100.0));
        assert_eq!(cost.unwrap(), 0.75 * 0.5 + 0.25 * 3.0);
        let remote: Metric = "remote".parse().unwrap();
        assert_eq!(remote.to_string(), "remote");
        let lines = |remote| Reading {
            remote: Some(remote),
            ..Reading::default()
        };
        // No better than a base of nothing can be.
        assert_eq!(remote.cost(&lines(0.0), &lines(0.0)).unwrap(), 1.0);
        assert_eq!(remote.cost(&lines(7.0), &lines(0.0)).unwrap(), 8.0);
        let missing: Metric = "remote".parse().unwrap();
        let error = missing
            .cost(&reading(1.0, 1.0), &reading(1.0, 1.0))
            .unwrap_err();
        assert!(
            error.to_string().contains("remote was not measured"),
            "{error}"
        );
        for text in [
            "",
            "speed",
            "time=0",
            "time=-1",
            "time=x",
            "time,time",
            "time=inf",
        ] {
            let error = text.parse::<Metric>().unwrap_err().to_string();
            assert!(error.contains("time=0.7,energy=0.3"), "{text}: {error}");
        }
    }
}
