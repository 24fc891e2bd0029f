//! How soon a good placement is found among placements of known cost: by the search (T11), and by random draws.

use std::collections::HashMap;

use placement::search::{self, Search};
use placement::{Classes, CpuSet, Placement, Random, Site, Threads};
use report::{Axis, Line, Lines, Point, Sample, Unit};
use serde_json::{Value, json};
use topology::Machine;

use crate::error::Result;
use crate::experiment::exhaustive::costs::Costs;

/// Number of runs that are followed, T11's budget of the search.
pub(crate) const RUNS: usize = 25;

/// The share of the gain that the best of the first 1, 2, ... runs reaches: medians and quartiles over the seeds. The
/// gain is the difference in cost between the median placement and the best one.
#[derive(Debug)]
pub(crate) struct Found {
    workload: String,
    random: Vec<Point>,
    /// `None` if the cost of some placement is unknown, as the search may ask for any.
    search: Option<Vec<Point>>,
}

impl Found {
    /// Follows this many searches and as many series of random draws.
    ///
    /// # Errors
    ///
    /// Those of `placement`, for costs of placements that do not exist on the machine.
    pub(crate) fn new(costs: &Costs, machine: &Machine, seeds: u64) -> Result<Found> {
        let sorted = costs.sorted();
        let (best, base) = (sorted[0], Sample::from(sorted).median());
        let gain = |cost: f64| {
            if base > best {
                ((base - cost) / (base - best)).max(0.0)
            } else {
                1.0
            }
        };
        let curve = |found: Vec<f64>| -> Vec<f64> { so_far(found).map(gain).collect() };
        let random = (0..seeds).map(|seed| curve(draws(costs, seed)));
        let known = Known::new(costs, machine)?;
        let search = match known {
            Some(known) => {
                let each = (0..seeds).map(|seed| Ok(curve(known.search(seed)?)));
                Some(band(&each.collect::<Result<Vec<_>>>()?))
            }
            None => None,
        };
        Ok(Found {
            workload: costs.workload.clone(),
            random: band(&random.collect::<Vec<_>>()),
            search,
        })
    }

    /// Whether a search could be followed.
    pub(crate) fn searched(&self) -> bool {
        self.search.is_some()
    }

    /// The curves.
    pub(crate) fn plot(&self) -> Lines {
        let title = format!("{}: gain found", self.workload);
        let y = Axis::new("share of the gain", Unit::Share).from_zero();
        let mut lines = Lines::new(title, Axis::new("runs", Unit::Count), y);
        if let Some(search) = &self.search {
            lines = lines.line(Line::new("search", search.iter().copied()));
        }
        lines
            .line(Line::new("random draws", self.random.iter().copied()))
            .mark("best of all", 1.0)
    }

    /// The numbers, by run.
    pub(crate) fn json(&self) -> Value {
        let list = |points: &Vec<Point>| -> Value {
            points
                .iter()
                .map(|at| json!({"runs": at.x, "median": at.y, "low": at.low, "high": at.high}))
                .collect()
        };
        json!({"random": list(&self.random), "search": self.search.as_ref().map(list)})
    }
}

/// The costs of all classes of placements of a machine.
struct Known {
    site: Site,
    threads: Threads,
    costs: HashMap<Placement, f64>,
}

impl Known {
    /// `None` if a class is missing.
    fn new(costs: &Costs, machine: &Machine) -> Result<Option<Known>> {
        let site = Site::new(machine);
        let threads = Threads::in_groups(costs.threads, 1)?;
        let classes = Classes::new(&site, &threads)?;
        let mut known = HashMap::new();
        for one in &costs.placements {
            let sets = one.cpus.iter().map(|cpu| CpuSet::from(vec![*cpu]));
            let placement = Placement::explicit(&site, sets.collect())?;
            if let Some(class) = classes.canonical(&site, &placement) {
                known.insert(class, one.cost);
            }
        }
        let all = classes.count() == Some(known.len() as u128);
        Ok(all.then_some(Known {
            site,
            threads,
            costs: known,
        }))
    }

    /// The costs of the runs of one search, in order.
    fn search(&self, seed: u64) -> Result<Vec<f64>> {
        let options = search::Options {
            runs: RUNS,
            seed,
            ..search::Options::default()
        };
        let mut search = Search::new(&self.site, &self.threads, options)?;
        let mut found = Vec::with_capacity(RUNS);
        while let Some(placement) = search.ask() {
            // It asks for one of each class, and all of them are known.
            let Some(&cost) = self.costs.get(&placement) else {
                break;
            };
            search.tell(&placement, cost)?;
            found.push(cost);
        }
        Ok(found)
    }
}

/// The costs of placements drawn at random.
fn draws(costs: &Costs, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    let draw = |_| costs.placements[random.index(costs.placements.len())].cost;
    (0..RUNS).map(draw).collect()
}

/// The least of the first 1, 2, ... of these; one that ended early keeps what it has.
fn so_far(found: Vec<f64>) -> impl Iterator<Item = f64> {
    let later = std::iter::repeat(f64::INFINITY);
    let runs = found.into_iter().chain(later).take(RUNS);
    runs.scan(f64::INFINITY, |best, cost| {
        *best = best.min(cost);
        Some(*best)
    })
}

/// Median and quartiles over all curves.
fn band(curves: &[Vec<f64>]) -> Vec<Point> {
    let at = |run: usize| {
        let values: Sample = curves.iter().map(|curve| curve[run]).collect();
        let (low, high) = values.quartiles();
        Point {
            x: (run + 1) as f64,
            y: values.median(),
            low,
            high,
        }
    };
    (0..RUNS).map(at).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn recorded() -> (Costs, Machine) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/placements");
        let costs = Costs::read(&folder.join("xeon-2630-12-join.json")).unwrap();
        let machine = Machine::parse(&costs.machine).unwrap();
        (costs, machine)
    }

    #[test]
    fn curves_rise_and_the_search_ends_above_chance() {
        let (costs, machine) = recorded();
        let found = Found::new(&costs, &machine, 3).unwrap();
        let search = found.search.as_ref().unwrap();
        for curve in [search, &found.random] {
            assert_eq!(curve.len(), RUNS);
            assert!(curve.windows(2).all(|pair| pair[0].y <= pair[1].y));
            assert!(curve.iter().all(|at| at.low <= at.y && at.y <= at.high));
            assert!(curve.iter().all(|at| (0.0..=1.0).contains(&at.y)));
        }
        assert!(search[RUNS - 1].y > found.random[RUNS - 1].y);
        let json = found.json();
        assert_eq!(json["search"].as_array().map(Vec::len), Some(RUNS));
        assert_eq!(json["random"][24]["runs"], 25.0);
    }

    #[test]
    fn where_costs_are_missing_only_draws_are_followed() {
        let (mut costs, machine) = recorded();
        costs.placements.pop();
        let found = Found::new(&costs, &machine, 2).unwrap();
        assert!(found.search.is_none() && found.json()["search"].is_null());
        costs.placements[0].cpus[0] = 99;
        let error = Found::new(&costs, &machine, 2).unwrap_err().to_string();
        assert!(error.contains("99"), "{error}");
    }
}
