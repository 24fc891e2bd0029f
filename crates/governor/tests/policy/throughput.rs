//! The throughput sensor (E5).

use governor::{BUSY, Governor, Measure, Policy, Readings, Sensor, THROUGHPUT};

use super::curves::{Curve, Family};
use super::run::run;
use super::{all, governor, machine};

/// Curves of families that nothing was tuned on.
#[test]
fn a_hundred_curves_come_within_a_tenth_of_their_best() {
    let families = Family::unseen();
    for seed in 0..100 {
        let curve = Curve::new(families[seed % families.len()], seed as u64);
        let result = run(&curve, 400, seed as u64);
        assert!(
            result.later >= 0.9,
            "{}: {:.3} of the best, {} cores",
            curve.name,
            result.later,
            result.cores
        );
        assert!(result.whole >= 0.85, "{}: {:.3}", curve.name, result.whole);
    }
}

#[test]
fn the_families_that_it_was_tuned_on() {
    for (at, family) in Family::tuned().into_iter().enumerate() {
        let curve = Curve::new(family, at as u64);
        assert!(run(&curve, 600, 1).later >= 0.9, "{}", curve.name);
    }
}

fn sensing(spec: &str) -> (Governor, placement::CpuSet) {
    let machine = machine(spec);
    let policy = Policy {
        sensor: Sensor::Throughput,
        ..Policy::default()
    };
    (governor(policy, &machine), all(&machine))
}

/// A step with a throughput that depends on the cores.
fn step(
    governor: &mut Governor,
    cpus: &placement::CpuSet,
    time: usize,
    demand: f64,
    throughput: impl Fn(usize) -> f64,
) -> governor::Decision {
    let cores = governor.cpus().len();
    let readings = Readings::new(time as f64, cpus.clone())
        .with(BUSY, Measure::new(demand.min(cores as f64), "cpus", "test"))
        .with(
            THROUGHPUT,
            Measure::new(throughput(cores), "per second", "test"),
        );
    governor.step(&readings).unwrap()
}

/// Two cores with a contended lock: both are busy all the time, and one alone is faster.
#[test]
fn one_core_is_enough_where_two_are_slower() {
    let (mut governor, cpus) = sensing("1x2");
    let slower = |cores: usize| if cores == 2 { 60.0 } else { 100.0 };
    let mut alone = 0;
    for time in 0..400 {
        let decision = step(&mut governor, &cpus, time, 2.0, slower);
        alone += usize::from(time >= 200 && decision.cpus.len() == 1);
        if time == 399 {
            let lonc = decision.lonc.unwrap();
            assert_eq!(lonc.holds, Some(true), "{decision}");
            assert!(lonc.p_alloc.unwrap() > lonc.p_total.unwrap());
        }
    }
    assert!(alone >= 180, "{alone} of 200 checks with one core");
}

#[test]
fn a_release_that_costs_throughput_is_taken_back() {
    let (mut governor, cpus) = sensing("1x8");
    // Throughput needs all cores that are there, though they are hardly busy: it waits for
    // something that has as many parts as there are cores.
    let needs = |cores: usize| 100.0 * cores as f64;
    let mut time = 0;
    let mut go = |governor: &mut Governor, checks: usize, demand: f64| {
        let mut seen = Vec::new();
        for _ in 0..checks {
            seen.push(step(governor, &cpus, time, demand, needs));
            time += 1;
        }
        seen
    };
    go(&mut governor, 120, 20.0);
    assert_eq!(governor.cpus().len(), 8);
    let seen = go(&mut governor, 40, 0.4);
    let back = seen.iter().find(|d| d.why.contains("throughput fell"));
    let back = back.expect("a release was verified");
    assert!(back.cpus.len() > back.cores_before, "{back}");
    let after = seen
        .iter()
        .skip_while(|d| !d.why.contains("throughput fell"));
    let fewest = after.map(|d| d.cpus.len()).min().unwrap();
    assert_eq!(fewest, back.cpus.len(), "and it stays");
}

#[test]
fn another_workload_is_noticed() {
    let (mut governor, cpus) = sensing("1x16");
    let peak = |at: f64| move |cores: usize| 1000.0 / (1.0 + (cores as f64 - at).abs());
    for time in 0..110 {
        step(&mut governor, &cpus, time, 32.0, peak(4.0));
    }
    assert_eq!(governor.cpus().len(), 4);
    let mut last = 0;
    for time in 110..500 {
        last = step(&mut governor, &cpus, time, 32.0, peak(12.0))
            .cpus
            .len();
    }
    assert!((11..=13).contains(&last), "{last}");
}

#[test]
fn without_throughput_the_load_decides_alone() {
    let (mut governor, cpus) = sensing("1x4");
    for time in 0..4 {
        let cores = governor.cpus().len() as f64;
        let readings = Readings::new(f64::from(time), cpus.clone())
            .with(BUSY, Measure::new(cores, "cpus", "test"));
        let decision = governor.step(&readings).unwrap();
        if time > 0 {
            assert!(
                decision.why.contains("the load decides alone"),
                "{decision}"
            );
        }
    }
    assert_eq!(governor.cpus().len(), 4);
}
