//! Tuning against made-up readings: nothing is recommended where there is nothing, and what is better is.

use placement::search::tuner::{CHANCE, Role, Tuner, Verdict};
use placement::search::{Metric, Options, Reading, Search};
use placement::{Error, Placement, Random, Site, Strategy, Threads};
use topology::Machine;

const RUNS: usize = 8;
const PAIRS: usize = 10;

fn site() -> Site {
    Site::new(&Machine::parse("2x4").unwrap())
}

fn tuner(site: &Site, seed: u64) -> Tuner {
    let threads = Threads::in_groups(4, 1).unwrap();
    let options = Options {
        runs: RUNS,
        seed,
        ..Options::default()
    };
    let search = Search::new(site, &threads, options).unwrap();
    let none = Strategy::Os.place(site, &threads).unwrap();
    Tuner::new(search, Metric::time(), none, PAIRS)
}

/// Tunes to the end: `seconds` of each run by its number, role and placement. Returns the roles too.
fn tune(
    site: &Site,
    seed: u64,
    mut seconds: impl FnMut(usize, Role, &Placement) -> f64,
) -> (Tuner, Vec<Role>) {
    let mut tuner = tuner(site, seed);
    let mut roles = Vec::new();
    while let Some((placement, role)) = tuner.ask() {
        assert_eq!(
            tuner.ask().map(|(_, role)| role),
            Some(role),
            "asking twice"
        );
        let reading = Reading {
            time: Some(seconds(roles.len(), role, &placement)),
            ..Reading::default()
        };
        tuner.tell(&reading).unwrap();
        roles.push(role);
    }
    (tuner, roles)
}

/// All threads on one node.
fn together(site: &Site, placement: &Placement) -> bool {
    let nodes = placement.nodes(site);
    nodes[0].is_some() && nodes.iter().all(|node| *node == nodes[0])
}

#[test]
fn where_placements_change_nothing_none_is_recommended() {
    let site = site();
    const SEEDS: u64 = 100;
    let wrong = |noise: f64| {
        let better = (0..SEEDS).filter(|seed| {
            let mut random = Random::new(1000 + *seed);
            let (tuner, _) = tune(&site, *seed, |_, _, _| (noise * random.normal()).exp());
            tuner.verdict() == Verdict::Better
        });
        better.count()
    };
    for noise in [0.02, 0.6] {
        // Twice the chance that the test claims, for the scatter of so few trials.
        let most = (2.0 * CHANCE * SEEDS as f64) as usize;
        let found = wrong(noise);
        assert!(found <= most, "{found} of {SEEDS} with a noise of {noise}");
    }
}

#[test]
fn a_cold_first_run_and_a_machine_that_gets_slower_are_no_gain() {
    let site = site();
    let mut better = 0;
    for seed in 0..40 {
        let mut random = Random::new(seed);
        // The first run reads four times as long; then every run takes 2 % longer than the one before.
        let (tuner, _) = tune(&site, seed, |run, _, _| {
            let cold = if run == 0 { 4.0 } else { 1.0 };
            cold * 1.02_f64.powi(run as i32) * (1.0 + 0.03 * random.normal())
        });
        better += usize::from(tuner.verdict() == Verdict::Better);
        // Told against baselines of their own time, candidates cost about 1 from the first to the last.
        let (_, cost) = tuner.search().best().unwrap();
        assert!((0.8..1.3).contains(&cost), "{cost} with seed {seed}");
    }
    assert!(better <= 3, "{better} of 40");
}

#[test]
fn what_is_better_is_recommended_and_is_what_was_better() {
    let site = site();
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let (tuner, roles) = tune(&site, seed, |_, _, placement| {
            let gain = if together(&site, placement) { 0.7 } else { 1.0 };
            gain * (1.0 + 0.05 * random.normal())
        });
        assert_eq!(tuner.verdict(), Verdict::Better, "seed {seed}");
        let (best, _) = tuner.search().best().unwrap();
        assert!(together(&site, &best), "seed {seed}: {best:?}");
        assert!((0.6..0.8).contains(&tuner.pairs().median()));
        assert_eq!(tuner.pairs().ratios().len(), PAIRS);
        let warm = roles.iter().filter(|role| **role == Role::WarmUp).count();
        assert_eq!((roles[0], warm), (Role::WarmUp, 1));
    }
}

#[test]
fn what_is_worse_is_given_up_soon() {
    let site = site();
    let (tuner, roles) = tune(&site, 1, |_, _, placement| {
        if placement.sets().iter().all(|set| set.len() == 1) {
            1.3
        } else {
            1.0
        }
    });
    assert_eq!(tuner.verdict(), Verdict::NotShown);
    assert_eq!(tuner.pairs().better(), 0);
    assert_eq!(tuner.pairs().ratios().len(), 2, "two of ten may not");
    assert!(matches!(
        roles.last(),
        Some(Role::PairBaseline(1) | Role::PairCandidate(1))
    ));
}

#[test]
fn baselines_come_between_candidates_and_pairs_begin_in_turn() {
    let site = site();
    let (tuner, roles) = tune(
        &site,
        3,
        |_, _, placement| {
            if together(&site, placement) { 0.5 } else { 1.0 }
        },
    );
    let candidates = roles.iter().filter(|role| **role == Role::Candidate);
    assert_eq!(candidates.count(), tuner.search().runs());
    let mut since = 0;
    for role in &roles {
        since = match role {
            Role::Candidate => since + 1,
            _ => 0,
        };
        assert!(since <= 4, "{roles:?}");
    }
    assert_eq!(tuner.spread(), Some((1.0, 1.0)));
    let firsts: Vec<bool> = roles
        .iter()
        .skip_while(|role| !matches!(role, Role::PairBaseline(_)))
        .step_by(2)
        .map(|role| matches!(role, Role::PairBaseline(_)))
        .collect();
    assert_eq!(firsts[..4], [true, false, true, false]);
}

#[test]
fn what_was_not_measured_is_an_error_at_the_first_run() {
    let site = site();
    let threads = Threads::in_groups(4, 1).unwrap();
    let search = Search::new(&site, &threads, Options::default()).unwrap();
    let none = Strategy::Os.place(&site, &threads).unwrap();
    let mut tuner = Tuner::new(search, "energy".parse().unwrap(), none, PAIRS);
    assert_eq!(tuner.ask().map(|(_, role)| role), Some(Role::WarmUp));
    let timed = Reading {
        time: Some(1.0),
        ..Reading::default()
    };
    let error = tuner.tell(&timed).unwrap_err();
    assert!(matches!(error, Error::Metric { .. }), "{error}");
}
