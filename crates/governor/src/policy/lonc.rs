//! The local optimum number of cores (E5), found by throughput.
//!
//! 1. While the load leaves the net content, the net decides alone. A release is verified: where
//!    throughput then falls, the core comes back and stays.
//! 2. When the net finds an overload, throughput is measured at all cores (`p(n_total)`), at half
//!    of them, a quarter, and so on; then around the best, ever closer.
//! 3. The fewest cores within 3 % of the best stay, as floor and as ceiling of the net, so that its
//!    own transitions t6 and t7 refuse what would not pay.
//! 4. Where throughput at these cores changes for good, or the load falls, what was learnt is
//!    forgotten; now and then a neighbour is tried.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Checks after a change of the cores that do not count.
const SETTLE: u32 = 1;

/// Checks that make up one measurement.
const SAMPLES: u32 = 4;

/// The most measurements of one search.
const MOST: usize = 40;

/// Throughput counts as the same within this share.
const SAME: f64 = 0.03;

/// Throughput that differs by this share, on average over a measurement, is another workload.
const DRIFT: f64 = 0.15;

/// State of the throughput sensor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Lonc {
    /// Throughput at the present number of cores.
    pub p_alloc: Option<f64>,
    /// Throughput at all cores, when that was last measured.
    pub p_total: Option<f64>,
    /// `p_alloc >= p_total`, within 3 %; `None` where either is unknown.
    pub holds: Option<bool>,
}

/// The bounds that throughput sets for the net, and why.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) floor: usize,
    pub(crate) ceiling: usize,
    pub(crate) why: Option<String>,
}

/// What the search is doing.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    /// The net decides.
    Free,
    /// A release is being verified.
    Verify { before: usize, throughput: f64 },
    /// Measuring these numbers of cores, from the last to the first.
    Search { todo: Vec<usize>, again: bool },
    /// The best number is found.
    Hold { cores: usize, calm: u32 },
    /// Trying a neighbour of the best number.
    Probe { home: usize, at: usize },
}

/// The search of the throughput sensor. It is given each check once.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    phase: Phase,
    /// Mean throughput and number of checks behind it, by cores.
    known: BTreeMap<usize, (f64, u32)>,
    /// The checks at the present number of cores.
    cores: usize,
    settle: u32,
    window: Vec<f64>,
    probe_every: u32,
    /// The last mean at the present number of cores.
    last: Option<f64>,
    /// Measurements in a row that differ from the result.
    drifting: u32,
    /// Checks for which a result holds at least; doubles if searches follow each other closely.
    patience: u32,
    up: bool,
    /// A floor that a failed release has left, with the checks it stays for.
    floor: Option<(usize, u32)>,
    total: Option<f64>,
}

impl Search {
    pub(crate) fn new(probe_every: u32) -> Search {
        Search {
            phase: Phase::Free,
            known: BTreeMap::new(),
            cores: 0,
            settle: 0,
            window: Vec::new(),
            probe_every,
            last: None,
            drifting: 0,
            patience: (probe_every / 4).max(1),
            up: true,
            floor: None,
            total: None,
        }
    }

    /// Takes a check: the number of cores, their throughput, whether the net finds them overloaded or idle, and the
    /// numbers it may choose from. Returns the bounds for the next.
    pub(crate) fn check(
        &mut self,
        cores: usize,
        throughput: f64,
        overloaded: bool,
        idle: bool,
        (least, most): (usize, usize),
    ) -> Bounds {
        if cores != self.cores {
            self.moved(cores);
        }
        if self.settle > 0 {
            self.settle -= 1;
        } else {
            self.window.push(throughput);
        }
        let measured = self.measured();
        let (floor, ceiling, why) = self.decide(measured, overloaded, idle, least, most);
        Bounds {
            floor: floor.clamp(least, most),
            ceiling: ceiling.clamp(least, most),
            why,
        }
    }

    /// State of E5's predicate.
    pub(crate) fn lonc(&self, cores: usize) -> Lonc {
        let p_alloc = self.known.get(&cores).map(|(mean, _)| *mean);
        let p_total = self.total;
        Lonc {
            p_alloc,
            p_total,
            holds: p_alloc.zip(p_total).map(|(a, b)| a >= b * (1.0 - SAME)),
        }
    }

    fn moved(&mut self, cores: usize) {
        // The net has released a core by itself: that is verified.
        let before = self.last.or_else(|| mean(&self.window));
        if let (Phase::Free, Some(throughput)) = (&self.phase, before)
            && cores < self.cores
        {
            self.phase = Phase::Verify {
                before: self.cores,
                throughput,
            };
        }
        self.last = None;
        self.cores = cores;
        self.settle = SETTLE;
        self.window.clear();
    }

    /// The mean over a full window; a new window begins.
    fn measured(&mut self) -> Option<f64> {
        if self.window.len() < SAMPLES as usize {
            return None;
        }
        self.last = mean(&self.window);
        self.window.clear();
        self.last
    }

    fn learn(&mut self, mean: f64) {
        let (old, weight) = self.known.get(&self.cores).copied().unwrap_or((0.0, 0));
        // Older measurements fade: workloads change slowly too.
        let weight = weight.min(3);
        let new = (old * f64::from(weight) + mean) / f64::from(weight + 1);
        self.known.insert(self.cores, (new, weight + 1));
    }

    fn decide(
        &mut self,
        measured: Option<f64>,
        overloaded: bool,
        idle: bool,
        least: usize,
        most: usize,
    ) -> (usize, usize, Option<String>) {
        if let Some((_, checks)) = &mut self.floor {
            *checks = checks.saturating_sub(1);
        }
        self.floor = self.floor.filter(|(_, checks)| *checks > 0);
        match self.phase.clone() {
            Phase::Free if overloaded && least < most => self.begin(least, most),
            Phase::Free => (self.floor.map_or(least, |(floor, _)| floor), most, None),
            Phase::Verify { before, throughput } => {
                self.verify(measured, before, throughput, least, most)
            }
            Phase::Search { todo, again } => self.search(measured, todo, again, least, most),
            Phase::Hold { cores, calm } => self.hold(measured, cores, calm, idle, least, most),
            Phase::Probe { home, at } => self.probe(measured, home, at),
        }
    }

    fn verify(
        &mut self,
        measured: Option<f64>,
        before: usize,
        throughput: f64,
        least: usize,
        most: usize,
    ) -> (usize, usize, Option<String>) {
        let Some(mean) = measured else {
            return (
                self.cores,
                most,
                Some("a release is being verified".to_owned()),
            );
        };
        self.phase = Phase::Free;
        if mean >= throughput * (1.0 - 2.0 * SAME) {
            return (least, most, None);
        }
        self.floor = Some((before, self.probe_every));
        let why = format!(
            "throughput fell from {throughput:.1} to {mean:.1} per second after a release: {before} cores again"
        );
        (before, most, Some(why))
    }

    /// All cores, half of them, a quarter, ...
    fn begin(&mut self, least: usize, most: usize) -> (usize, usize, Option<String>) {
        self.known.clear();
        self.drifting = 0;
        let mut todo = vec![most];
        let mut at = most;
        while at > least {
            at = (at / 2).max(least);
            todo.push(at);
        }
        todo.reverse();
        self.window.clear();
        self.go(todo, false)
    }

    fn go(&mut self, todo: Vec<usize>, again: bool) -> (usize, usize, Option<String>) {
        let Some(next) = todo.last().copied() else {
            return (self.cores, self.cores, None);
        };
        if next == self.cores {
            self.settle = 0;
        }
        self.phase = Phase::Search { todo, again };
        let why = format!("throughput is measured with {next} cores");
        (next, next, Some(why))
    }

    fn search(
        &mut self,
        measured: Option<f64>,
        mut todo: Vec<usize>,
        again: bool,
        least: usize,
        most: usize,
    ) -> (usize, usize, Option<String>) {
        let Some(wanted) = todo.last().copied() else {
            return self.settle_down();
        };
        let wanted_now = wanted.clamp(least, most);
        if self.cores != wanted_now {
            let why = format!("throughput is measured with {wanted_now} cores");
            return (wanted_now, wanted_now, Some(why));
        }
        let Some(mean) = measured else {
            let why = format!("throughput is measured with {wanted_now} cores");
            return (wanted_now, wanted_now, Some(why));
        };
        self.learn(mean);
        if self.cores == most {
            self.total = self.known.get(&most).map(|(mean, _)| *mean);
        }
        todo.pop();
        if todo.is_empty() && self.known.len() < MOST {
            todo = self.closer();
        }
        if todo.is_empty() && !again {
            // The best so far may have been lucky: the first few are measured again.
            let again = self.contenders();
            if !again.is_empty() {
                return self.go(again, true);
            }
        }
        if todo.is_empty() {
            return self.settle_down();
        }
        self.go(todo, again)
    }

    fn best(&self) -> Option<(usize, f64)> {
        let all = self.known.iter().map(|(cores, (mean, _))| (*cores, *mean));
        all.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
    }

    /// Points halfway between the best and what was measured beside it.
    fn closer(&self) -> Vec<usize> {
        let Some((best, _)) = self.best() else {
            return Vec::new();
        };
        let near = (best / 12).max(1);
        let below = self.known.range(..best).next_back().map(|(n, _)| *n);
        let above = self.known.range(best + 1..).next().map(|(n, _)| *n);
        let between = [below, above].into_iter().flatten();
        let between = between.filter(|other| best.abs_diff(*other) > near);
        between.map(|other| usize::midpoint(best, other)).collect()
    }

    /// Those within twice the tolerance of the best.
    fn contenders(&self) -> Vec<usize> {
        let Some((_, best)) = self.best() else {
            return Vec::new();
        };
        let good = |mean: f64| mean >= best * (1.0 - 2.0 * SAME);
        let mut all: Vec<usize> = self
            .known
            .iter()
            .filter(|(_, (mean, _))| good(*mean))
            .map(|(cores, _)| *cores)
            .collect();
        all.truncate(4);
        all
    }

    /// The fewest cores that are as good as the best.
    fn settle_down(&mut self) -> (usize, usize, Option<String>) {
        let Some((_, best)) = self.best() else {
            self.phase = Phase::Free;
            return (self.cores, self.cores, None);
        };
        let good = |mean: f64| mean >= best * (1.0 - SAME);
        let found = self.known.iter().find(|(_, (mean, _))| good(*mean));
        let (cores, mean) = found.map_or((self.cores, best), |(n, (mean, _))| (*n, *mean));
        self.phase = Phase::Hold { cores, calm: 0 };
        let why = format!("{cores} cores give {mean:.1} per second, the best is {best:.1}");
        (cores, cores, Some(why))
    }

    fn hold(
        &mut self,
        measured: Option<f64>,
        cores: usize,
        calm: u32,
        idle: bool,
        least: usize,
        most: usize,
    ) -> (usize, usize, Option<String>) {
        if idle {
            // The load has gone: the net takes over, and starts from here.
            self.phase = Phase::Free;
            return (least, most, Some("the load has fallen".to_owned()));
        }
        if cores > most || cores < least {
            return self.begin(least, most);
        }
        let calm = calm + 1;
        if let Some(mean) = measured {
            let known = self.known.get(&cores).map_or(mean, |(known, _)| *known);
            if (mean - known).abs() > known.abs() * DRIFT {
                self.drifting += 1;
            } else {
                self.drifting = 0;
                self.learn(mean);
            }
        }
        // Once may be noise.
        if self.drifting >= 2 && calm >= self.patience {
            let soon = calm < self.patience.saturating_mul(4);
            let longest = self.probe_every.saturating_mul(8);
            self.patience = if soon {
                self.patience.saturating_mul(2).min(longest)
            } else {
                (self.probe_every / 4).max(1)
            };
            return self.begin(least, most);
        }
        self.phase = Phase::Hold { cores, calm };
        if calm.is_multiple_of(self.probe_every) {
            let step = (cores / 8).max(1);
            let up = (cores + step).min(most);
            let down = cores.saturating_sub(step).max(least);
            let at = if self.up { up } else { down };
            self.up = !self.up;
            if at != cores {
                self.phase = Phase::Probe { home: cores, at };
                let why = format!("{at} cores are tried for comparison");
                return (at, at, Some(why));
            }
        }
        let why = format!("throughput is best with {cores} cores");
        (cores, cores, Some(why))
    }

    fn probe(
        &mut self,
        measured: Option<f64>,
        home: usize,
        at: usize,
    ) -> (usize, usize, Option<String>) {
        if self.cores != at && self.cores != home {
            self.phase = Phase::Free;
            return (self.cores, self.cores, None);
        }
        let Some(mean) = measured.filter(|_| self.cores == at) else {
            let why = format!("{at} cores are tried for comparison");
            return (at, at, Some(why));
        };
        self.learn(mean);
        let known = self.known.get(&home).map_or(0.0, |(known, _)| *known);
        let better = if at > home {
            mean > known * (1.0 + SAME)
        } else {
            mean >= known * (1.0 - SAME / 3.0)
        };
        let cores = if better { at } else { home };
        self.phase = Phase::Hold { cores, calm: 0 };
        let told = if better {
            "is better than"
        } else {
            "is not better than"
        };
        let why = format!("{mean:.1} per second with {at} cores {told} {known:.1} with {home}");
        (cores, cores, Some(why))
    }
}

fn mean(of: &[f64]) -> Option<f64> {
    (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64)
}
