//! A governor on a curve.

use governor::{BUSY, Governor, Measure, Policy, Readings, Sensor, THROUGHPUT};
use placement::CpuSet;
use topology::Machine;

use super::curves::{Curve, Random};

/// What came of it.
pub struct Result {
    /// Mean throughput over all checks, as a share of the best static number of cores'.
    pub whole: f64,
    /// The same over the second half.
    pub later: f64,
    /// The cores at the end.
    pub cores: usize,
}

pub fn run(curve: &Curve, checks: usize, seed: u64) -> Result {
    let machine = Machine::parse(&format!("1x{}", curve.cores())).unwrap();
    let policy = Policy {
        sensor: Sensor::Throughput,
        ..Policy::default()
    };
    let net = governor::elastic_net().unwrap();
    let mut governor = Governor::new(policy, &machine, &net).unwrap();
    let all: CpuSet = (0..curve.cores() as u32).collect();
    let mut random = Random::new(seed + 17);
    let mut gained = Vec::new();
    let mut cores = 0;
    for check in 0..checks {
        let mut readings = Readings::new(check as f64 * 0.1, all.clone());
        if cores > 0 {
            let noisy = curve.at(cores) * (1.0 + curve.noise * random.normal());
            gained.push(curve.at(cores) / curve.best());
            readings.set(BUSY, Measure::new(curve.busy(cores), "cpus", "curve"));
            readings.set(THROUGHPUT, Measure::new(noisy, "per second", "curve"));
        }
        cores = governor.step(&readings).unwrap().cpus.len();
    }
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    Result {
        whole: mean(&gained),
        later: mean(&gained[gained.len() / 2..]),
        cores,
    }
}
