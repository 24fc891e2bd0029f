//! Tuning a command: a search, and a trial that says whether its find is better than no placement.
//!
//! Runs of a command differ by themselves: the first one reads files that later ones find in memory,
//! the machine gets slower and faster while the search runs, and the best of forty readings is low
//! by luck alone. So a [`Tuner`]
//!
//! 1. has the command warm up once, and counts nothing of that;
//! 2. reads the baseline (no placement) several times, and again between the candidates, so that
//!    what a candidate costs is told against baselines of its own time;
//! 3. when the search has ended, runs the baseline and the best placement in pairs, in turn, and
//!    recommends the placement only if nearly all pairs, each a fresh reading, say that it is better.
//!
//! The last step is a sign test: without any effect a pair is as likely to say "worse" as "better",
//! however the readings are distributed, so the chance of a wrong recommendation is known.
//!
//! It runs nothing itself, so that it can be replayed.

use super::{Metric, Reading, Search};
use crate::{Error, Placement, Result};

/// Baselines that are read before the first candidate, and the last of which costs are told against.
const BASELINES: usize = 3;

/// Candidates between two baselines.
const BETWEEN: usize = 4;

/// The chance of recommending a placement that changes nothing, at most.
pub const CHANCE: f64 = 0.02;

/// A placement is not recommended for less than this part of the cost, however sure it is.
pub const WORTH: f64 = 0.01;

/// The fewest pairs that can show anything: all of six agree by chance once in 64 times.
pub const LEAST_PAIRS: usize = 6;

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Nothing: it brings files and code into memory.
    WarmUp,
    /// What candidates are compared with.
    Baseline,
    /// The search wants to know what it costs.
    Candidate,
    /// The baseline of a pair, from 0.
    PairBaseline(usize),
    /// The best placement, of the same pair.
    PairCandidate(usize),
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nearly all pairs say that the placement is better, and by more than [`WORTH`].
    Better,
    /// They do not: leave the threads to the system.
    NotShown,
}

/// The pairs, as ratios of the placement's cost to the baseline's of the same pair.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pairs {
    wanted: usize,
    ratios: Vec<f64>,
}

impl Pairs {
    /// None yet, of so many.
    pub fn of(wanted: usize) -> Pairs {
        Pairs {
            wanted,
            ratios: Vec::new(),
        }
    }

    /// The ratios, in the order of the pairs.
    pub fn ratios(&self) -> &[f64] {
        &self.ratios
    }

    /// Pairs in which the placement cost less.
    pub fn better(&self) -> usize {
        self.ratios.iter().filter(|ratio| **ratio < 1.0).count()
    }

    /// The middle ratio; NaN before the first pair.
    pub fn median(&self) -> f64 {
        let sorted = self.sorted();
        match sorted.len() {
            0 => f64::NAN,
            count => f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]),
        }
    }

    /// The least and the greatest ratio; NaN before the first pair.
    pub fn range(&self) -> (f64, f64) {
        let sorted = self.sorted();
        let ends = sorted.first().copied().zip(sorted.last().copied());
        ends.unwrap_or((f64::NAN, f64::NAN))
    }

    /// Pairs that may say otherwise, so that chance alone gets so far at most [`CHANCE`] of the times.
    pub fn allowed(&self) -> Option<usize> {
        let mut ways = 1.0;
        let mut sum = 0.0;
        let mut allowed = None;
        for otherwise in 0..=self.wanted {
            sum += ways * 0.5_f64.powi(i32::try_from(self.wanted).unwrap_or(i32::MAX));
            if sum > CHANCE {
                break;
            }
            allowed = Some(otherwise);
            ways *= (self.wanted - otherwise) as f64 / (otherwise + 1) as f64;
        }
        allowed
    }

    /// What the pairs say; `None` while more of them could still say otherwise.
    pub fn verdict(&self) -> Option<Verdict> {
        let otherwise = self.ratios.len() - self.better();
        match self.allowed() {
            Some(allowed) if otherwise <= allowed => {
                let done = self.ratios.len() >= self.wanted;
                let worth = self.median() <= 1.0 - WORTH;
                done.then_some(if worth {
                    Verdict::Better
                } else {
                    Verdict::NotShown
                })
            }
            _ => Some(Verdict::NotShown),
        }
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.ratios.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}

/// Where it is.
#[derive(Debug, Clone)]
enum Stage {
    WarmUp,
    /// Searching.
    Search,
    /// The first run of this pair is in, or not.
    Pairs {
        best: Placement,
        first: Option<Reading>,
    },
    Ended,
}

/// A search with its baselines, and the trial of what it found.
#[derive(Debug)]
pub struct Tuner {
    search: Search,
    metric: Metric,
    baseline: Placement,
    baselines: Vec<Reading>,
    /// Candidates since the last baseline.
    since: usize,
    stage: Stage,
    pairs: Pairs,
}

impl Tuner {
    /// Tunes by `metric` against `baseline`; at least [`LEAST_PAIRS`] pairs are taken.
    pub fn new(search: Search, metric: Metric, baseline: Placement, pairs: usize) -> Tuner {
        Tuner {
            search,
            metric,
            baseline,
            baselines: Vec::new(),
            since: 0,
            stage: Stage::WarmUp,
            pairs: Pairs::of(pairs.max(LEAST_PAIRS)),
        }
    }

    /// What to run next, and what for; `None` when it has ended. Asking twice asks for the same.
    pub fn ask(&mut self) -> Option<(Placement, Role)> {
        if matches!(self.stage, Stage::WarmUp) {
            return Some((self.baseline.clone(), Role::WarmUp));
        }
        if matches!(self.stage, Stage::Search) {
            if self.baselines.len() < BASELINES || self.since >= BETWEEN {
                return Some((self.baseline.clone(), Role::Baseline));
            }
            if let Some(candidate) = self.search.ask() {
                return Some((candidate, Role::Candidate));
            }
            self.stage = match self.search.best() {
                Some((best, _)) => Stage::Pairs { best, first: None },
                None => Stage::Ended,
            };
        }
        let Stage::Pairs { best, first } = &self.stage else {
            return None;
        };
        let pair = self.pairs.ratios.len();
        // Who begins changes from pair to pair.
        let baseline = pair.is_multiple_of(2) == first.is_none();
        Some(if baseline {
            (self.baseline.clone(), Role::PairBaseline(pair))
        } else {
            (best.clone(), Role::PairCandidate(pair))
        })
    }

    /// Tells what the run that was asked for gave; returns its cost, 1 for that of the baseline,
    /// where it has one by now.
    ///
    /// # Errors
    ///
    /// [`Error::Metric`] where a quantity of the metric was not measured.
    pub fn tell(&mut self, reading: &Reading) -> Result<Option<f64>> {
        let Some((placement, role)) = self.ask() else {
            return Err(Error::Mapping {
                from: "the tuner".to_owned(),
                why: "it has ended, and is told of another run".to_owned(),
            });
        };
        // What cannot be measured is known after the first run.
        self.metric.cost(reading, reading)?;
        match role {
            Role::WarmUp => {
                self.stage = Stage::Search;
                Ok(None)
            }
            Role::Baseline => {
                let cost = match self.base() {
                    Some(base) => Some(self.metric.cost(reading, &base)?),
                    None => None,
                };
                self.baselines.push(*reading);
                self.since = 0;
                Ok(cost)
            }
            Role::Candidate => {
                let base = self.base().unwrap_or(*reading);
                let cost = self.metric.cost(reading, &base)?;
                self.search.tell(&placement, cost)?;
                self.since += 1;
                Ok(Some(cost))
            }
            Role::PairBaseline(_) | Role::PairCandidate(_) => self.pair(reading, role),
        }
    }

    fn pair(&mut self, reading: &Reading, role: Role) -> Result<Option<f64>> {
        let Stage::Pairs { first, .. } = &mut self.stage else {
            return Ok(None);
        };
        let Some(other) = first.take() else {
            *first = Some(*reading);
            return Ok(None);
        };
        let (candidate, base) = match role {
            Role::PairCandidate(_) => (*reading, other),
            _ => (other, *reading),
        };
        let ratio = self.metric.cost(&candidate, &base)?;
        self.pairs.ratios.push(ratio);
        if self.pairs.verdict().is_some() {
            self.stage = Stage::Ended;
        }
        Ok(Some(ratio))
    }

    /// What is recommended. [`Verdict::NotShown`] also where it has not ended.
    pub fn verdict(&self) -> Verdict {
        self.pairs.verdict().unwrap_or(Verdict::NotShown)
    }

    /// The pairs so far.
    pub fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// The baselines of the search, in the order they were read.
    pub fn baselines(&self) -> &[Reading] {
        &self.baselines
    }

    /// What the baselines of the search cost, as parts of the median of all: the least and the
    /// greatest. `None` before the first.
    pub fn spread(&self) -> Option<(f64, f64)> {
        let base = middle(&self.baselines)?;
        let costs = self.baselines.iter();
        let costs = costs.filter_map(|reading| self.metric.cost(reading, &base).ok());
        costs.fold(None, |range, cost| {
            let (least, most) = range.unwrap_or((cost, cost));
            Some((least.min(cost), most.max(cost)))
        })
    }

    /// The search.
    pub fn search(&self) -> &Search {
        &self.search
    }

    /// The metric.
    pub fn metric(&self) -> &Metric {
        &self.metric
    }

    /// The middle of the last baselines, quantity by quantity.
    fn base(&self) -> Option<Reading> {
        let from = self.baselines.len().saturating_sub(BASELINES);
        middle(&self.baselines[from..])
    }
}

/// The middle of each quantity; one that is missing in any of them is missing. `None` for no reading.
pub fn middle(readings: &[Reading]) -> Option<Reading> {
    if readings.is_empty() {
        return None;
    }
    let median = |of: fn(&Reading) -> Option<f64>| {
        let mut values = readings.iter().map(of).collect::<Option<Vec<f64>>>()?;
        values.sort_by(f64::total_cmp);
        let count = values.len();
        Some(f64::midpoint(values[(count - 1) / 2], values[count / 2]))
    };
    Some(Reading {
        time: median(|reading| reading.time),
        remote: median(|reading| reading.remote),
        energy: median(|reading| reading.energy),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(wanted: usize, ratios: &[f64]) -> Pairs {
        Pairs {
            wanted,
            ratios: ratios.to_vec(),
        }
    }

    #[test]
    fn so_many_may_say_otherwise_as_the_sign_test_has_it() {
        let allowed: Vec<Option<usize>> = [5, 6, 8, 9, 10, 12, 20]
            .map(|wanted| Pairs::of(wanted).allowed())
            .to_vec();
        let expected = [None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(4)];
        assert_eq!(allowed, expected);
        assert_eq!(Pairs::of(0).allowed(), None);
    }

    #[test]
    fn pairs_are_judged_as_soon_as_they_can_be() {
        let better = [0.8; 10];
        assert_eq!(pairs(10, &better[..9]).verdict(), None);
        assert_eq!(pairs(10, &better).verdict(), Some(Verdict::Better));
        // One of ten may say otherwise, two may not, and equal is not better.
        let mut ratios = better;
        ratios[3] = 5.0;
        assert_eq!(pairs(10, &ratios).verdict(), Some(Verdict::Better));
        ratios[4] = 1.0;
        assert_eq!(pairs(10, &ratios).verdict(), Some(Verdict::NotShown));
        assert_eq!(pairs(10, &ratios[..5]).verdict(), Some(Verdict::NotShown));
        // Sure, and not worth it.
        assert_eq!(pairs(10, &[0.995; 10]).verdict(), Some(Verdict::NotShown));
        assert_eq!(pairs(10, &ratios).range(), (0.8, 5.0));
        assert!(pairs(10, &[]).median().is_nan());
    }

    #[test]
    fn what_is_missing_in_one_reading_is_missing() {
        let reading = |time, energy| Reading {
            time: Some(time),
            energy,
            remote: None,
        };
        let all = [
            reading(3.0, Some(1.0)),
            reading(1.0, None),
            reading(2.0, Some(1.0)),
        ];
        let middle = middle(&all).unwrap();
        assert_eq!((middle.time, middle.energy), (Some(2.0), None));
    }
}
