//! How near the throughput sensor comes to the best static number of cores, on simulated curves.
//!
//!     cargo run --release -p governor --example curves -- [tuned|unseen] [CURVES]

use std::io::Write;

#[path = "../tests/curves/mod.rs"]
mod curves;
#[path = "../tests/curves/run.rs"]
mod run;

use curves::{Curve, Family};

const CHECKS: usize = 1500;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let tuned = arguments.first().is_some_and(|first| first == "tuned");
    let many = arguments.get(1).and_then(|n| n.parse().ok()).unwrap_or(100);
    let families = if tuned {
        Family::tuned().to_vec()
    } else {
        Family::unseen().to_vec()
    };
    let mut out = std::io::stdout().lock();
    let mut shares = Vec::new();
    for at in 0..many {
        let curve = Curve::new(families[at % families.len()], at as u64);
        let result = run::run(&curve, CHECKS, at as u64);
        if result.later < 0.92 {
            writeln!(
                out,
                "{:30} second half {:.3}, all {:.3}, {} cores at the end, noise {:.3}",
                curve.name, result.later, result.whole, result.cores, curve.noise
            )?;
        }
        shares.push((result.later, result.whole));
    }
    let least = |of: fn(&(f64, f64)) -> f64| shares.iter().map(of).fold(1.0, f64::min);
    let within = shares.iter().filter(|(later, _)| *later >= 0.9).count();
    let mean = shares.iter().map(|(later, _)| later).sum::<f64>() / shares.len() as f64;
    writeln!(
        out,
        "{within} of {many} within 10 % of the best; second half of {CHECKS} checks: mean {mean:.3}, least {:.3}; all checks: least {:.3}",
        least(|s| s.0),
        least(|s| s.1)
    )
}
