//! Compares the search with uniform random draws, on modelled costs or on a recorded table.
//!
//!     cargo run --release -p placement --example compare -- [tuned|varied|unseen|TABLE.json] [--tables N] [--seeds N] [--runs N]
//!
//! Prints for each table the median over the seeds of the part of the best gain that was found, then
//! the median over all. A table's gain counts from its baseline, or from the mean of all placements.

#![allow(
    clippy::print_stdout,
    reason = "standard output is what an example is for"
)]

mod worlds;

use std::collections::BTreeMap;
use std::path::Path;

use placement::search::{Options, Search};
use placement::table::Table;
use placement::{Classes, Placement, Random, Site, Threads};
use worlds::World;

/// What the command line asks for.
struct Request {
    what: String,
    tables: u64,
    seeds: u64,
    runs: usize,
}

impl Request {
    fn read() -> Request {
        let mut request = Request {
            what: "unseen".to_owned(),
            tables: 100,
            seeds: 50,
            runs: 25,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut number = || {
                arguments
                    .next()
                    .and_then(|text| text.parse().ok())
                    .expect("a number")
            };
            match argument.as_str() {
                "--tables" => request.tables = number(),
                "--seeds" => request.seeds = number(),
                "--runs" => request.runs = number() as usize,
                _ => request.what = argument,
            }
        }
        request
    }

    fn worlds(&self) -> Vec<World> {
        let tables = 0..self.tables;
        match self.what.as_str() {
            "tuned" => tables.map(worlds::tuned::world).collect(),
            "varied" => tables.map(worlds::varied::world).collect(),
            "unseen" => tables.map(worlds::unseen::world).collect(),
            path => vec![recorded(Path::new(path))],
        }
    }
}

/// The gains of both methods.
#[derive(Default)]
struct Gains {
    /// Of each world and seed.
    searched: Vec<f64>,
    drawn: Vec<f64>,
    /// The medians over the seeds, of the search and of draws, for each world.
    medians: Vec<(f64, f64)>,
    /// Runs of all searches together.
    used: usize,
}

fn main() {
    let request = Request::read();
    let worlds = request.worlds();
    let mut gains = Gains::default();
    for world in &worlds {
        gains.measure(world, request.seeds, request.runs);
    }
    gains.print_total(&request);
    gains.print_kinds(&worlds);
    gains.print_mean();
}

impl Gains {
    /// Runs both methods on a world, once for each seed, and prints its line.
    fn measure(&mut self, world: &World, seeds: u64, runs: usize) {
        let mut found = Vec::new();
        let mut drawn = Vec::new();
        let mut taken = 0;
        for seed in 0..seeds {
            let (gain, count) = search(world, seed, runs);
            found.push(gain);
            taken += count;
            drawn.push(draws(world, seed, runs));
        }
        let (ours, theirs) = (median(&mut found), median(&mut drawn));
        println!(
            "{:<28} {:>6} classes, noise {:.2}: search {:.3} in {:.1} runs, draws {:.3}",
            world.name,
            world.placements.len(),
            world.noise,
            ours,
            taken as f64 / seeds as f64,
            theirs
        );
        self.used += taken;
        self.medians.push((ours, theirs));
        self.searched.extend(found);
        self.drawn.extend(drawn);
    }

    fn print_total(&self, request: &Request) {
        let mut medians: Vec<f64> = self.medians.iter().map(|(ours, _)| *ours).collect();
        let enough = medians.iter().filter(|median| **median >= 0.95).count();
        let better = self.medians.iter().filter(|(ours, theirs)| ours >= theirs);
        let (seeds, runs, better) = (request.seeds, request.runs, better.count());
        println!(
            "{} tables, {seeds} seeds, at most {runs} runs ({:.1} used): median of the tables' medians {:.3}, \
             {enough} of them at 0.95 or more, {better} at least as good as draws",
            self.medians.len(),
            self.used as f64 / self.searched.len() as f64,
            median(&mut medians)
        );
    }

    /// A line for each kind of world and machine.
    fn print_kinds(&self, worlds: &[World]) {
        let mut kinds: BTreeMap<String, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        for (world, (ours, theirs)) in worlds.iter().zip(&self.medians) {
            let mut words = world.name.split(' ');
            let (kind, machine) = (
                words.next().unwrap_or_default(),
                words.next_back().unwrap_or_default(),
            );
            let kind = format!("{kind} {machine}, noise {:.2}", world.noise);
            let of_kind = kinds.entry(kind).or_default();
            of_kind.0.push(*ours);
            of_kind.1.push(*theirs);
        }
        for (kind, (mut ours, mut theirs)) in kinds {
            println!(
                "{kind}: {} tables, median {:.3}, draws {:.3}",
                ours.len(),
                median(&mut ours),
                median(&mut theirs)
            );
        }
    }

    fn print_mean(&mut self) {
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        println!(
            "over all: search mean {:.3}, median {:.3}; draws mean {:.3}, median {:.3}",
            mean(&self.searched),
            median(&mut self.searched),
            mean(&self.drawn),
            median(&mut self.drawn)
        );
    }
}

/// The gain of the placement that a search ends with, and its runs.
fn search(world: &World, seed: u64, runs: usize) -> (f64, usize) {
    let options = Options {
        runs,
        seed,
        ..Options::default()
    };
    let mut random = Random::new(seed ^ 0xabcd);
    let mut search = Search::new(&world.site, &world.threads, options).unwrap();
    while let Some(placement) = search.ask() {
        let cost = world.run(cost(world, &placement), &mut random);
        search.tell(&placement, cost).unwrap();
    }
    let (best, _) = search.best().unwrap();
    (world.gain(cost(world, &best)), search.runs())
}

/// The gain of the best of so many placements drawn by chance.
fn draws(world: &World, seed: u64, runs: usize) -> f64 {
    let mut random = Random::new(seed ^ 0x1234);
    let best = (0..runs).map(|_| {
        let cost = world.costs[random.index(world.costs.len())];
        (world.run(cost, &mut random), cost)
    });
    let best = best.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    world.gain(best.1)
}

fn cost(world: &World, placement: &Placement) -> f64 {
    let at = world.placements.binary_search(placement);
    world.costs[at.expect("the search asks for classes")]
}

/// A world with the costs of a table; placements that were not recorded cost what the mean does.
fn recorded(path: &Path) -> World {
    let table = Table::read(path).unwrap_or_else(|error| panic!("{error}"));
    let costs = table.costs().unwrap_or_else(|error| panic!("{error}"));
    let (site, threads): (Site, Threads) = (costs.site().clone(), costs.threads().clone());
    let mut placements: Vec<Placement> = Classes::new(&site, &threads).unwrap().iter().collect();
    placements.sort();
    let mean = table.placements.iter().map(|entry| entry.cost).sum::<f64>()
        / table.placements.len() as f64;
    let of = |placement: &Placement| costs.of(placement).unwrap_or(mean);
    World {
        name: table.workload.clone(),
        costs: placements.iter().map(of).collect(),
        placements,
        site,
        threads,
        noise: 0.0,
    }
}

fn median(of: &mut [f64]) -> f64 {
    of.sort_by(f64::total_cmp);
    let count = of.len();
    (of[(count - 1) / 2] + of[count / 2]) / 2.0
}
