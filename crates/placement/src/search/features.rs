//! The features of a placement that the cost model is fitted over.
//!
//! Costs are sums over threads that are near each other, more often than not: threads that read the
//! same data gain from one cache, threads that need bandwidth or cache lose, threads whose data lies
//! where another thread first touched it gain from being near that one. All of these are
//! linear in the nearness of pairs of threads; which pairs matter is not known, but there are usual
//! patterns. Each family of features stands for one:
//!
//! | family | features |
//! |---|---|
//! | lag | mean nearness of threads created `k` apart |
//! | runs | of threads in the same of `g` runs, and of threads equal modulo `g`: chunks, stripes |
//! | first | of each thread to the first, where data is usually made |
//! | load | how full nodes and caches are |
//! | known | of threads of one group, or that share data as measured |
//! | pairs | of each pair: anything |
//!
//! Nearness is looked at on each level that tells threads apart: nodes (1 for the same, less the
//! farther they are), last-level caches, cores.

use crate::{Placement, Site, Threads};

/// Number of families.
pub(crate) const FAMILIES: usize = 6;

/// The first of the families that make no assumption about the order of the threads: `pairs`.
pub(crate) const PAIRS: usize = 5;

/// With more threads than this pairs and lags are not looked at one by one.
const MAX_PAIRED: usize = 96;

/// The most lags, runs and loads.
const MOST: usize = 32;

/// Features of one placement, by family.
pub(crate) type Features = [Vec<f64>; FAMILIES];

/// A way for threads to be near each other.
#[derive(Debug, Clone)]
struct Level {
    /// The domain of each core.
    domains: Vec<usize>,
    count: usize,
    /// Nearness of two domains, row by row.
    near: Vec<f64>,
}

/// How to look at placements.
#[derive(Debug)]
pub(crate) struct Eye {
    levels: Vec<Level>,
    threads: usize,
    groups: Vec<usize>,
    sharing: Option<Vec<Vec<f64>>>,
    /// By family and feature: the mean, and the factor of the family.
    mean: Option<(Features, [f64; FAMILIES])>,
}

impl Eye {
    /// `sharing[i][j]` is how many bytes threads `i` and `j` share, in any unit, if it is known.
    pub(crate) fn new(site: &Site, threads: &Threads, sharing: Option<Vec<Vec<f64>>>) -> Eye {
        let several = threads.by_group().len() > 1;
        Eye {
            levels: levels(site, threads.count()),
            threads: threads.count(),
            groups: if several {
                threads.groups().to_vec()
            } else {
                Vec::new()
            },
            sharing,
            mean: None,
        }
    }

    /// Learns from a sample what usual values are: features are centred, and each family has a mean
    /// squared length of 1.
    pub(crate) fn learn(&mut self, sample: &[Features]) {
        let count = sample.len() as f64;
        let mut mean: Features = sample[0].clone();
        let mut scale = [0.0; FAMILIES];
        for family in 0..FAMILIES {
            for at in 0..mean[family].len() {
                let sum: f64 = sample.iter().map(|features| features[family][at]).sum();
                mean[family][at] = sum / count;
                let centre = mean[family][at];
                let square = |features: &Features| (features[family][at] - centre).powi(2);
                scale[family] += sample.iter().map(square).sum::<f64>() / count;
            }
        }
        let factor = scale.map(|square| {
            if square > 1e-12 {
                square.sqrt().recip()
            } else {
                0.0
            }
        });
        self.mean = Some((mean, factor));
    }

    /// The features of a placement, centred and scaled once there was something to learn from.
    pub(crate) fn look(&self, site: &Site, placement: &Placement) -> Option<Features> {
        let cores = placement.cores(site)?;
        let mut features = self.raw(&cores);
        if let Some((mean, factor)) = &self.mean {
            for family in 0..FAMILIES {
                for (value, mean) in features[family].iter_mut().zip(&mean[family]) {
                    *value = (*value - mean) * factor[family];
                }
            }
        }
        Some(features)
    }

    fn raw(&self, cores: &[usize]) -> Features {
        let mut features: Features = Default::default();
        for level in &self.levels {
            let near = |a: usize, b: usize| {
                level.near[level.domains[cores[a]] * level.count + level.domains[cores[b]]]
            };
            self.patterns(&near, &mut features);
            let mut load = vec![0.0; level.count];
            for &core in cores {
                load[level.domains[core]] += 1.0 / self.threads as f64;
            }
            features[3].push(load.iter().map(|share| share * share).sum());
            features[3].push(
                load.iter().filter(|share| **share > 0.0).count() as f64 / level.count as f64,
            );
            load.sort_by(|a, b| b.total_cmp(a));
            features[3].extend(load.iter().take(MOST / 4));
        }
        features
    }

    fn patterns(&self, near: &impl Fn(usize, usize) -> f64, features: &mut Features) {
        let count = self.threads;
        let mean = |wanted: &dyn Fn(usize, usize) -> f64| {
            let (mut sum, mut weight) = (0.0, 0.0);
            for a in 0..count {
                for b in a + 1..count {
                    let wanted = wanted(a, b);
                    if wanted > 0.0 {
                        sum += wanted * near(a, b);
                        weight += wanted;
                    }
                }
            }
            if weight > 0.0 { sum / weight } else { 0.0 }
        };
        let one = |yes: bool| if yes { 1.0 } else { 0.0 };
        for lag in 1..count.min(MOST) {
            features[0].push(mean(&|a, b| one(b - a == lag)));
        }
        for groups in 2..=(count / 2).min(MOST / 2) {
            features[1].push(mean(&|a, b| one(a * groups / count == b * groups / count)));
            features[1].push(mean(&|a, b| one(a % groups == b % groups)));
        }
        for other in 1..count.min(MAX_PAIRED) {
            features[2].push(near(0, other));
        }
        // As heavy as all of the single ones together.
        let all = mean(&|a, _| one(a == 0)) * (count as f64).sqrt();
        features[2].push(all);
        if !self.groups.is_empty() {
            features[4].push(mean(&|a, b| one(self.groups[a] == self.groups[b])));
        }
        if let Some(sharing) = &self.sharing {
            features[4].push(mean(&|a, b| sharing[a][b] + sharing[b][a]));
        }
        if count <= MAX_PAIRED {
            for a in 0..count {
                features[PAIRS].extend((a + 1..count).map(|b| near(a, b)));
            }
        }
    }
}

/// The levels on which placements of so many threads can differ.
fn levels(site: &Site, threads: usize) -> Vec<Level> {
    let slots = site.slots();
    let machine = site.machine();
    let nodes = site.nodes().len();
    let farthest = (0..nodes * nodes)
        .map(|at| machine.distance(at / nodes, at % nodes))
        .max();
    let farthest = f64::from(farthest.unwrap_or(10)).max(11.0);
    let near = |at: usize| {
        let distance = f64::from(machine.distance(at / nodes, at % nodes));
        (farthest - distance) / (farthest - 10.0)
    };
    let mut levels = Vec::new();
    let with_cores = site
        .nodes()
        .iter()
        .filter(|cores| !cores.is_empty())
        .count();
    if with_cores > 1 {
        levels.push(Level {
            domains: slots.iter().map(|slot| slot.node).collect(),
            count: nodes,
            near: (0..nodes * nodes).map(near).collect(),
        });
    }
    let caches = site.caches().len();
    if caches > 1 && caches != with_cores {
        levels.push(Level::of(
            slots.iter().map(|slot| slot.cache).collect(),
            caches,
        ));
    }
    let cores = slots.len();
    if threads > cores || levels.is_empty() {
        levels.push(Level::of((0..cores).collect(), cores));
    }
    levels
}

impl Level {
    /// Near is the same domain.
    fn of(domains: Vec<usize>, count: usize) -> Level {
        let near = |at: usize| if at / count == at % count { 1.0 } else { 0.0 };
        Level {
            domains,
            count,
            near: (0..count * count).map(near).collect(),
        }
    }
}
