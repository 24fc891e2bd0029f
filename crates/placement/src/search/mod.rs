//! Bayesian optimisation of a placement: one near the best, after few runs of the workload.
//!
//! [`Search`] works by ask and tell: [`Search::ask`] returns the placement to run next,
//! [`Search::tell`] takes its cost. It runs nothing itself, so that it can be replayed. Between two
//! runs it fits a cost model (Gaussian processes, `model`) to the costs told so far, over features
//! of placements (`features`): which threads are near each other, how full nodes and caches are,
//! and what is known of the workload. It asks for the placement whose measurement is expected to
//! improve the result most (knowledge gradient): a new one or, where measurements are noisy, one
//! that ran before. It stops when the expected improvement is lost in the noise, or when the runs
//! are used up.
//!
//! 1. The candidates are all classes of placements, or a sample of them with the neighbours
//!    (two threads exchanged, one moved) of the best ones so far where there are too many.
//! 2. The first runs are of the named strategies, then of candidates far from everything measured.
//! 3. Then, for each run: fit, forecast every candidate, ask for the best.
//!
//! The best placement of a search may still be no better than none at all; [`tuner`] tests that.

mod features;
mod metric;
mod model;
pub mod tuner;

use std::collections::{HashMap, HashSet};

use crate::random::Random;
use crate::{Classes, Error, Placement, Result, Site, Strategy, Threads};
use features::{Eye, FAMILIES, Features};
use model::{Fitted, Forecast, Leaders, Model, Products};

pub use metric::{Metric, Quantity, Reading};

/// Up to so many classes all are candidates; of more, so many are drawn.
const ALL: u128 = 16_000;
const SAMPLE: usize = 2000;

/// The most candidates, neighbours of good ones included.
const MOST: usize = 18_000;

/// Runs before the model decides, beside the named strategies.
const FIRST: usize = 5;

/// Runs before a search may stop by itself.
const LEAST: usize = 15;

/// A search stops when after so many runs in a row another did not seem worth it: the model's idea of
/// its own doubt is rough.
const VAIN: usize = 4;

/// A gain below this part of the deviation of a reading is lost in noise.
const HIDDEN: f64 = 0.01;

/// The options of a search.
#[derive(Debug, Clone)]
pub struct Options {
    /// The most runs.
    pub runs: usize,
    /// The same seed and the same costs give the same search.
    pub seed: u64,
    /// A gain below this part of the cost is not worth a run.
    pub worth: f64,
    /// How many bytes each two threads share, in any unit, where it was measured.
    pub sharing: Option<Vec<Vec<f64>>>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            runs: 40,
            seed: 0,
            worth: 0.0002,
            sharing: None,
        }
    }
}

/// Why a search has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Stop {
    /// The runs are used up.
    Runs,
    /// The expected gain of another run is below what could be told from noise, or worth it. Both as
    /// parts of the cost.
    Gain {
        /// What another run is expected to gain.
        expected: f64,
        /// The deviation of a reading.
        noise: f64,
    },
    /// Every placement was run, without noise.
    All,
}

/// A search in progress.
#[derive(Debug)]
pub struct Search {
    site: Site,
    classes: Classes,
    options: Options,
    eye: Eye,
    model: Model,
    candidates: Vec<Candidate>,
    /// By canonical placement.
    known: HashMap<Placement, usize>,
    readings: Vec<(usize, f64)>,
    /// To be asked for first.
    first: Vec<usize>,
    random: Random,
    /// Whether the candidates are a part of all.
    sampled: bool,
    fitted: Option<Fitted>,
    stop: Option<Stop>,
    /// Numbers of runs after which another did not seem worth it.
    vain: Vec<usize>,
}

#[derive(Debug)]
struct Candidate {
    placement: Placement,
    features: Features,
    products: Products,
    lengths: [f64; FAMILIES],
    read: bool,
}

impl Search {
    /// A search over the placements of `threads` on `site`.
    ///
    /// # Errors
    ///
    /// Those of [`Classes::new`], and [`Error::Threads`] where `options.sharing` is not a matrix of
    /// all threads.
    pub fn new(site: &Site, threads: &Threads, options: Options) -> Result<Search> {
        let square = |matrix: &Vec<Vec<f64>>| {
            matrix.len() == threads.count() && matrix.iter().all(|row| row.len() == matrix.len())
        };
        if !options.sharing.as_ref().is_none_or(square) {
            let threads = threads.count();
            return Err(Error::Threads { threads });
        }
        let classes = Classes::new(site, threads)?;
        let mut random = Random::new(options.seed);
        let sampled = classes.count().is_none_or(|count| count > ALL);
        let placements: Vec<Placement> = if sampled {
            (0..SAMPLE).map(|_| classes.sample(&mut random)).collect()
        } else {
            classes.iter().collect()
        };
        let mut eye = Eye::new(site, threads, options.sharing.clone());
        let looks = placements
            .iter()
            .filter_map(|placement| eye.look(site, placement));
        eye.learn(&looks.collect::<Vec<_>>());
        let mut search = Search {
            site: site.clone(),
            classes,
            options,
            eye,
            model: Model::new(),
            candidates: Vec::new(),
            known: HashMap::new(),
            readings: Vec::new(),
            first: Vec::new(),
            random,
            sampled,
            fitted: None,
            stop: None,
            vain: Vec::new(),
        };
        for placement in placements {
            search.add(placement);
        }
        for strategy in [Strategy::Shared, Strategy::Sparse, Strategy::Compact] {
            // Shared may be impossible, and others outside what is enumerated (hardware threads).
            let placed = strategy.place(site, threads);
            let class = placed
                .ok()
                .and_then(|placed| search.classes.canonical(site, &placed));
            if let Some(at) = class.and_then(|class| search.add(class))
                && !search.first.contains(&at)
            {
                search.first.push(at);
            }
        }
        Ok(search)
    }

    /// The placement to run next; `None` when the search has ended. Asking twice without telling asks
    /// for the same.
    pub fn ask(&mut self) -> Option<Placement> {
        if self.stop.is_some() {
            return None;
        }
        if self.readings.len() >= self.options.runs {
            self.stop = Some(Stop::Runs);
            return None;
        }
        let unread = |at: &&usize| !self.candidates[**at].read;
        if let Some(&at) = self.first.iter().rev().find(unread) {
            return Some(self.candidates[at].placement.clone());
        }
        let at = if self.readings.len() < self.first.len() + FIRST {
            self.least_known()
        } else {
            self.most_promising()
        };
        at.map(|at| self.candidates[at].placement.clone())
    }

    /// Tells the search the cost of a placement. It need not be one that was asked for, and may be told repeatedly.
    ///
    /// # Errors
    ///
    /// [`Error::Mapping`] for a placement of other threads, or without one core for each, and for a
    /// cost that is no number.
    pub fn tell(&mut self, placement: &Placement, cost: f64) -> Result<()> {
        let wrong = |why: &str| Error::Mapping {
            from: "the search".to_owned(),
            why: why.to_owned(),
        };
        if !cost.is_finite() {
            return Err(wrong(&format!("a placement is said to cost {cost}")));
        }
        let class = self.classes.canonical(&self.site, placement);
        let class = class.ok_or_else(|| wrong("a placement does not give each thread one core"))?;
        let at = self
            .add(class)
            .ok_or_else(|| wrong("it knows too many placements"))?;
        let reading = self.readings.len();
        self.readings.push((at, cost));
        self.candidates[at].read = true;
        let features = self.candidates[at].features.clone();
        for candidate in &mut self.candidates {
            candidate.products.extend(&candidate.features, &features);
        }
        debug_assert_eq!(self.readings.len(), reading + 1);
        self.refit();
        if self.sampled {
            self.grow();
        }
        Ok(())
    }

    /// The best placement so far: of those that were run, the one the model, which sees through
    /// some of the noise, expects to cost least; and that cost. `None` before the first run.
    pub fn best(&self) -> Option<(Placement, f64)> {
        let read: HashSet<usize> = self.readings.iter().map(|(at, _)| *at).collect();
        let forecast = |at: usize| {
            (
                self.forecast(at).map_or(0.0, |forecast| forecast.mean()),
                at,
            )
        };
        let (mean, at) = read
            .into_iter()
            .map(forecast)
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))?;
        Some((
            self.candidates[at].placement.clone(),
            self.units().back(mean),
        ))
    }

    /// Number of runs it was told of.
    pub fn runs(&self) -> usize {
        self.readings.len()
    }

    /// Why it has ended; `None` while it has not.
    pub fn stopped(&self) -> Option<Stop> {
        self.stop
    }

    /// The classes it searches.
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// The position of a candidate, which is added if it is new and there is room.
    fn add(&mut self, placement: Placement) -> Option<usize> {
        if let Some(at) = self.known.get(&placement) {
            return Some(*at);
        }
        if self.candidates.len() >= MOST {
            return None;
        }
        let features = self.eye.look(&self.site, &placement)?;
        let mut products = Products::new(&features);
        for (at, _) in &self.readings {
            products.extend(&features, &self.candidates[*at].features);
        }
        self.known.insert(placement.clone(), self.candidates.len());
        self.candidates.push(Candidate {
            lengths: model::lengths(&features),
            placement,
            features,
            products,
            read: false,
        });
        Some(self.candidates.len() - 1)
    }

    fn units(&self) -> Units {
        Units::new(self.readings.iter().map(|(_, cost)| *cost))
    }

    fn refit(&mut self) {
        let units = self.units();
        let read = |(at, _): &(usize, f64)| &self.candidates[*at].products;
        let products: Vec<&Products> = self.readings.iter().map(read).collect();
        let values = self.readings.iter().map(|(_, cost)| units.of(*cost));
        let values: Vec<f64> = values.collect();
        self.fitted = Some(self.model.fit(&products, &values));
    }

    fn forecast(&self, at: usize) -> Option<Forecast> {
        let candidate = &self.candidates[at];
        let fitted = self.fitted.as_ref()?;
        Some(fitted.forecast(&candidate.products, &candidate.lengths))
    }

    /// Among some randomly drawn candidates, the one about which the model knows least.
    fn least_known(&mut self) -> Option<usize> {
        let unread: Vec<usize> = (0..self.candidates.len())
            .filter(|&at| !self.candidates[at].read)
            .collect();
        if unread.is_empty() {
            self.stop = Some(Stop::All);
            return None;
        }
        // Asking twice must ask for the same.
        let mut random = Random::new(self.options.seed ^ self.readings.len() as u64);
        let some: Vec<usize> = (0..64)
            .map(|_| unread[random.index(unread.len())])
            .collect();
        let doubt = |at: &usize| {
            self.forecast(*at)
                .map_or(0.0, |forecast| forecast.deviation())
        };
        some.into_iter()
            .max_by(|a, b| doubt(a).total_cmp(&doubt(b)))
    }

    /// The candidate of which a reading is expected to gain most, if that is worth a run.
    fn most_promising(&mut self) -> Option<usize> {
        if self.candidates.iter().all(|candidate| candidate.read) {
            self.stop = Some(Stop::All);
            return None;
        }
        let fitted = self.fitted.as_ref()?;
        let forecasts: Vec<Forecast> = self
            .candidates
            .iter()
            .map(|candidate| fitted.forecast(&candidate.products, &candidate.lengths))
            .collect();
        let read: Vec<usize> = (0..self.candidates.len())
            .filter(|&at| self.candidates[at].read)
            .collect();
        let leaders = |guess: usize| {
            let mean = |at: &usize| (*at, forecasts[*at].under[guess].mean);
            Leaders::new(read.iter().map(mean))
        };
        let guesses = forecasts.first()?.under.len();
        let leaders: Vec<Leaders> = (0..guesses).map(leaders).collect();
        // Where all can be run, each is.
        let left = self.options.runs.saturating_sub(self.readings.len());
        let again = self.candidates.len() - read.len() > left;
        let gains = forecasts
            .iter()
            .enumerate()
            .filter(|(at, _)| again || !self.candidates[*at].read)
            .map(|(at, forecast)| (forecast.improvement(at, &leaders), at));
        let (gain, at) = gains.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
        let (unit, noise) = (self.units().part(), fitted.noise());
        let small = gain * unit < self.options.worth || gain < noise * HIDDEN;
        let runs = self.readings.len();
        if small && self.vain.last() != Some(&runs) {
            self.vain.push(runs);
        }
        let in_a_row = (0..VAIN).all(|back| self.vain.contains(&(runs.saturating_sub(back))));
        if in_a_row && runs >= LEAST {
            self.stop = Some(Stop::Gain {
                expected: gain * unit,
                noise: noise * unit,
            });
            return None;
        }
        Some(at)
    }

    /// Adds the neighbours of the three best that were run, and of the most promising candidate.
    fn grow(&mut self) {
        let mut best: Vec<(f64, usize)> = self
            .readings
            .iter()
            .filter_map(|(at, _)| Some((self.forecast(*at)?.mean(), *at)))
            .collect();
        best.sort_by(|a, b| a.0.total_cmp(&b.0));
        best.dedup_by_key(|(_, at)| *at);
        best.truncate(3);
        let promising =
            (0..self.candidates.len()).filter_map(|at| Some((self.forecast(at)?.mean(), at)));
        let promising = promising.min_by(|a, b| a.0.total_cmp(&b.0));
        let centres: Vec<usize> = best
            .into_iter()
            .chain(promising)
            .map(|(_, at)| at)
            .collect();
        for at in centres {
            for neighbour in self.neighbours(at) {
                self.add(neighbour);
            }
        }
    }

    /// Placements in which two threads are exchanged, or one is on a core that was free.
    fn neighbours(&mut self, at: usize) -> Vec<Placement> {
        let centre = self.candidates[at].placement.clone();
        let sets = centre.sets();
        let used: HashSet<&crate::CpuSet> = sets.iter().collect();
        let allowed = self.site.allowed();
        let free = allowed.iter().map(|cpu| crate::CpuSet::from(vec![cpu]));
        let free: Vec<_> = free.filter(|set| !used.contains(set)).collect();
        let mut found = Vec::new();
        let mut offer = |sets: Vec<crate::CpuSet>| {
            let placement = Placement::explicit(&self.site, sets).ok();
            found.extend(
                placement.and_then(|placement| self.classes.canonical(&self.site, &placement)),
            );
        };
        // Of large numbers of threads some pairs only.
        for _ in 0..(sets.len() * sets.len() / 2).min(200) {
            let (a, b) = (self.random.index(sets.len()), self.random.index(sets.len()));
            let mut exchanged = sets.to_vec();
            exchanged.swap(a, b);
            offer(exchanged);
        }
        let moves = if free.is_empty() {
            0
        } else {
            (sets.len() * free.len()).min(50)
        };
        for _ in 0..moves {
            let mut moved = sets.to_vec();
            moved[self.random.index(sets.len())] = free[self.random.index(free.len())].clone();
            offer(moved);
        }
        found
    }
}

/// How costs are standardised for the model: their logarithms if all are positive (as noise grows with
/// the cost), shifted and scaled to mean 0 and deviation 1.
#[derive(Debug, Clone, Copy)]
struct Units {
    ln: bool,
    mean: f64,
    deviation: f64,
}

impl Units {
    fn new(costs: impl Iterator<Item = f64> + Clone) -> Units {
        let ln = costs.clone().all(|cost| cost > 0.0);
        let values: Vec<f64> = costs
            .map(|cost| if ln { cost.ln() } else { cost })
            .collect();
        let count = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        let square = values
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / count;
        // Where all are alike, differences of a thousandth are taken as usual.
        let usual = if ln {
            1e-3
        } else {
            1e-3 * mean.abs().max(1e-9)
        };
        let deviation = square.sqrt().max(usual);
        Units {
            ln,
            mean,
            deviation,
        }
    }

    fn of(&self, cost: f64) -> f64 {
        ((if self.ln { cost.ln() } else { cost }) - self.mean) / self.deviation
    }

    fn back(&self, value: f64) -> f64 {
        let value = value * self.deviation + self.mean;
        if self.ln { value.exp() } else { value }
    }

    /// One unit as a part of the cost.
    fn part(&self) -> f64 {
        if self.ln {
            self.deviation
        } else {
            self.deviation / self.mean.abs().max(1e-12)
        }
    }
}
