//! Clients that pause and keep about as many cores busy as a node has.

use std::collections::BTreeSet;

use proptest::prelude::*;

use governor::{Governor, Measure, Policy, Readings, WAITING};

use super::curves::Random;
use super::{all, busy, governor, machine, resident};

/// Time between two decisions.
const PERIOD: f64 = 0.1;

/// A step of the simulation.
const TICK: f64 = 0.005;

/// Seconds.
const LONG: f64 = 60.0;

/// Clients of a database on 4x4 cores: each asks, waits for its answer, and asks again when its time has come, at once
/// where it is late. Cores are shared evenly. Now and then all ask at the same moment.
struct Clients {
    random: Random,
    /// When each asks next, and what is left to do for it.
    each: Vec<(f64, f64)>,
    pace: f64,
    service: f64,
    burst: f64,
    done: u32,
}

impl Clients {
    /// So many, who keep `load` cores busy where there are enough.
    fn new(many: usize, load: f64, seed: u64) -> Clients {
        let mut random = Random::new(seed);
        let service = 0.08;
        let pace = service * many as f64 / load;
        let each = (0..many).map(|_| (random.unit() * pace, 0.0)).collect();
        Clients {
            random,
            each,
            pace,
            service,
            burst: 3.0,
            done: 0,
        }
    }

    /// Runs for one period on so many cores: cpus busy and threads that waited, on average.
    fn run(&mut self, from: f64, cores: usize) -> (f64, f64) {
        let (mut used, mut waited) = (0.0, 0.0);
        let ticks = (PERIOD / TICK).round() as usize;
        for tick in 0..ticks {
            let time = from + tick as f64 * TICK;
            if time >= self.burst {
                self.each.iter_mut().for_each(|one| one.0 = one.0.min(time));
                self.burst += 2.0 + 4.0 * self.random.unit();
            }
            for at in 0..self.each.len() {
                let (next, left) = self.each[at];
                if left <= 0.0 && time >= next {
                    let service = self.service * (0.5 + self.random.unit());
                    let pace = self.pace * (0.5 + self.random.unit());
                    self.each[at] = ((next + pace).max(time), service);
                }
            }
            let active = self.each.iter().filter(|one| one.1 > 0.0).count() as f64;
            let share = (cores as f64 / active.max(1.0)).min(1.0);
            for one in self.each.iter_mut().filter(|one| one.1 > 0.0) {
                one.1 -= share * TICK;
                self.done += u32::from(one.1 <= 0.0);
            }
            used += active * share;
            waited += active * (1.0 - share);
        }
        (used / ticks as f64, waited / ticks as f64)
    }
}

/// What a minute was like.
#[derive(Debug)]
struct Minute {
    done: u32,
    /// How often a node was entered or left, and cores that came or went.
    nodes: usize,
    cores: usize,
    /// Mean number of cores.
    mean: f64,
}

fn minute(policy: Option<Policy>, mut clients: Clients) -> Minute {
    let machine = machine("4x4");
    let cpus = all(&machine);
    let mut governor: Option<Governor> = policy.map(|policy| governor(policy, &machine));
    let mut told = Minute {
        done: 0,
        nodes: 0,
        cores: 0,
        mean: 0.0,
    };
    let (mut used, mut waited) = (0.0, 0.0);
    let checks = (LONG / PERIOD) as usize;
    for check in 0..checks {
        let time = check as f64 * PERIOD;
        let mut cores = cpus.len();
        if let Some(governor) = &mut governor {
            let before = governor.cpus().clone();
            let waiting = Measure::new(waited, "threads", "test");
            let readings: Readings = busy(time, &cpus, used).with(WAITING, waiting);
            let decision = governor
                .step(&resident(readings, &[0.0, 9e9, 0.0, 0.0]))
                .unwrap();
            let nodes = |cpus: &mut dyn Iterator<Item = u32>| -> BTreeSet<u32> {
                cpus.map(|cpu| cpu / 4).collect()
            };
            let after = nodes(&mut decision.cpus.iter().copied());
            let gone = nodes(&mut before.iter());
            told.nodes += after.symmetric_difference(&gone).count();
            told.cores += decision.allocated.len() + decision.released.len();
            cores = decision.cpus.len();
        }
        told.mean += cores as f64 / checks as f64;
        (used, waited) = clients.run(time, cores);
    }
    told.done = clients.done;
    told
}

#[test]
fn near_the_limit_of_a_node_cores_do_not_swing() {
    let hasty = || Policy {
        patience: 1,
        ..Policy::default()
    };
    for load in [1.0, 2.0, 2.8, 3.2, 3.6, 4.0, 4.5, 6.0, 9.0, 12.0] {
        let (mut often, mut seldom) = (0, 0);
        for seed in 0..3 {
            let clients = || Clients::new(32, load, seed);
            let free = minute(None, clients());
            let swinging = minute(Some(hasty()), clients());
            let patient = minute(Some(Policy::default()), clients());
            assert!(
                f64::from(patient.done) >= 0.97 * f64::from(free.done),
                "{load}: {patient:?} instead of {} done",
                free.done
            );
            often += swinging.nodes;
            seldom += patient.nodes;
            if load < 3.0 {
                // A node's four cores can do it.
                assert!(patient.mean < 5.2, "{load}: {patient:?}");
            }
        }
        let times = if load < 3.0 { 4 } else { 1 };
        assert!(
            seldom * times <= often,
            "{load}: {seldom} instead of {often} changes of nodes"
        );
    }
}

/// Its nodes had fewer cores once than it must have now.
#[test]
fn going_back_leaves_the_least() {
    let machine = machine("4x4");
    let policy = Policy {
        min_cores: 6,
        ..Policy::default()
    };
    let mut governor = governor(policy, &machine);
    let few: placement::CpuSet = (0..3).collect();
    for check in 0..100 {
        let cpus = if check < 3 { &few } else { &all(&machine) };
        let decision = governor.step(&busy(f64::from(check), cpus, 1.0)).unwrap();
        let least = if check < 3 { 3 } else { 6 };
        assert_eq!(decision.cpus.len(), least, "{decision}");
    }
}

proptest! {
    /// Whatever is read, and whichever cpus come and go: never fewer than the least, never more than the most.
    #[test]
    fn the_least_and_the_most_hold(
        checks in proptest::collection::vec((0.0f64..20.0, 0.0f64..40.0, 0.0f64..9.0, any::<u16>()), 1..120),
        (min, more) in (1usize..9, 0usize..9),
        calm in 1usize..30,
    ) {
        let machine = machine("4x4");
        let policy = Policy { min_cores: min, max_cores: Some(min + more), ..Policy::default() };
        let mut governor = governor(policy, &machine);
        for (at, (used, waiting, pages, mask)) in checks.iter().enumerate() {
            // For some checks in a row the same cpus, mostly all.
            let mask = if at / calm % 3 == 2 { *mask | 1 } else { u16::MAX };
            let cpus: placement::CpuSet = (0..16).filter(|cpu| mask >> cpu & 1 == 1).collect();
            let waiting = Measure::new(*waiting, "threads", "test");
            let readings = busy(at as f64, &cpus, *used).with(WAITING, waiting);
            let decision = governor.step(&resident(readings, &[1.0, *pages, 3.0, 0.0])).unwrap();
            let cores = decision.cpus.len();
            prop_assert!(cores >= min.min(cpus.len()), "{decision}");
            prop_assert!(cores <= (min + more).min(cpus.len()), "{decision}");
        }
    }
}
