//! The executors beside each other on one store: `cargo run --release -p atoll --example executors -- STORE [RUNS]`.
//!
//! TPC-H Q6 and Q14, hot, in turn in one run; the median of each executor's execution (planning left out) and of
//! the ratios of runs that stood side by side.

use std::error::Error;
use std::io::Write;

use atoll::{Database, Executor, Options, tpch};

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let store = arguments.next().ok_or("which store?")?;
    let runs: usize = arguments.next().map_or(Ok(21), |n| n.parse())?;
    let (block, reuse) = (arguments.next(), arguments.next());
    let executors = [Executor::Fused, Executor::Stream, Executor::Staged];
    let mut databases = Vec::new();
    for executor in executors {
        let mut options = Options::read_only();
        options.executor = executor;
        options.execution.block_rows = block.as_ref().map(|n| n.parse()).transpose()?;
        options.execution.reuse = reuse.as_deref() != Some("off");
        databases.push(Database::open(&store, &options)?);
    }
    let sessions: Vec<_> = databases.iter().map(Database::session).collect();
    let mut out = std::io::stdout().lock();
    for number in [6, 14] {
        let text = tpch::QUERIES[number - 1];
        let mut times = vec![Vec::new(); executors.len()];
        for run in 0..=runs {
            for (session, times) in sessions.iter().zip(&mut times) {
                let answers = session.sql(text)?;
                let statistics = &answers[0].statistics;
                assert_eq!(statistics.ran_on, "algebra");
                if run > 0 {
                    times.push(statistics.seconds - statistics.planning_seconds);
                }
            }
        }
        for (executor, own) in executors.iter().zip(&times) {
            let ratios = times[0].iter().zip(own).map(|(fused, own)| fused / own);
            writeln!(
                out,
                "Q{number} {executor:?}: {:.3} ms, speed {:.3} of fused",
                median(own.clone()) * 1e3,
                median(ratios.collect()),
            )?;
        }
    }
    Ok(())
}
