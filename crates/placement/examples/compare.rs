//! Compares the search with uniform random draws, on modelled costs or on a recorded table.
//!
//!     cargo run --release -p placement --example compare -- [tuned|varied|unseen|TABLE.json] [--tables N] [--seeds N] [--runs N]
//!
//! Prints for each table the median over the seeds of the part of the best gain that was found, then
//! the median over all. A table's gain counts from its baseline, or from the mean of all placements.

// Standard output is what an example is for.
#![allow(clippy::print_stdout)]

mod worlds;

use std::collections::BTreeMap;
use std::path::Path;

use placement::search::{Options, Search};
use placement::table::Table;
use placement::{Classes, Placement, Random, Site, Threads};
use worlds::World;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (mut what, mut tables, mut seeds, mut runs) = ("unseen".to_owned(), 100, 50, 25);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            arguments
                .next()
                .and_then(|text| text.parse().ok())
                .expect("a number")
        };
        match argument.as_str() {
            "--tables" => tables = number(),
            "--seeds" => seeds = number(),
            "--runs" => runs = number() as usize,
            _ => what = argument,
        }
    }
    let worlds: Vec<World> = match what.as_str() {
        "tuned" => (0..tables).map(worlds::tuned::world).collect(),
        "varied" => (0..tables).map(worlds::varied::world).collect(),
        "unseen" => (0..tables).map(worlds::unseen::world).collect(),
        path => vec![recorded(Path::new(path))],
    };
    let (mut all, mut all_draws) = (Vec::new(), Vec::new());
    let (mut medians, mut better, mut used) = (Vec::new(), 0, 0);
    let mut pairs = Vec::new();
    for world in &worlds {
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
        used += taken;
        better += usize::from(ours >= theirs);
        medians.push(ours);
        pairs.push((ours, theirs));
        all.extend(found);
        all_draws.extend(drawn);
    }
    let enough = medians.iter().filter(|median| **median >= 0.95).count();
    println!(
        "{} tables, {seeds} seeds, at most {runs} runs ({:.1} used): median of the tables' medians {:.3}, \
         {enough} of them at 0.95 or more, {better} at least as good as draws",
        worlds.len(),
        used as f64 / all.len() as f64,
        median(&mut medians)
    );
    let mut kinds: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (world, (ours, theirs)) in worlds.iter().zip(&pairs) {
        let mut words = world.name.split(' ');
        let (kind, machine) = (
            words.next().unwrap_or_default(),
            words.next_back().unwrap_or_default(),
        );
        let kind = format!("{kind} {machine}, noise {:.2}", world.noise);
        kinds.entry(kind).or_default().extend([*ours, *theirs]);
    }
    for (kind, gains) in kinds {
        let mut ours: Vec<f64> = gains.iter().copied().step_by(2).collect();
        let mut theirs: Vec<f64> = gains.iter().copied().skip(1).step_by(2).collect();
        println!(
            "{kind}: {} tables, median {:.3}, draws {:.3}",
            ours.len(),
            median(&mut ours),
            median(&mut theirs)
        );
    }
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    println!(
        "over all: search mean {:.3}, median {:.3}; draws mean {:.3}, median {:.3}",
        mean(&all),
        median(&mut all),
        mean(&all_draws),
        median(&mut all_draws)
    );
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
