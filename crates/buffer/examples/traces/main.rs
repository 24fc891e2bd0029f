//! Hit rates of the replacement policies and prefetchers on traces of pages.
//!
//! `cargo run -p buffer --release --example traces`
//!
//! The policies and prefetchers are those of the pool; only its frames and words are simulated, so that a trace
//! gives the same figures everywhere. Percent of the pins that found their page; of prefetchers also accuracy
//! (percent of the pages loaded ahead that were used) and coverage (percent of the misses that were avoided).

mod simulate;
mod traces;

use std::io::Write;

use buffer::{Policy, Prefetching, ReadAhead};
use simulate::simulate;
use traces::{streams, traces};

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    policies(&mut out)?;
    writeln!(out)?;
    prefetchers(&mut out)
}

/// Replacement by the size of the pool, without prefetching.
fn policies(out: &mut impl Write) -> std::io::Result<()> {
    write!(out, "{:<30} {:>7}", "trace", "frames")?;
    for policy in Policy::ALL {
        write!(out, " {:>15}", format!("{policy:?}"))?;
    }
    writeln!(out, "   (hits in %, looks for a miss)")?;
    let mut sums = [0.0; Policy::ALL.len()];
    for frames in [500, 1000, 3000] {
        for (name, trace) in traces(frames) {
            write!(out, "{name:<30} {frames:>7}")?;
            for (policy, sum) in Policy::ALL.iter().zip(&mut sums) {
                let off = ReadAhead::new(Prefetching::None, 1);
                let result = simulate(&*policy.start(frames), off, frames, &trace);
                *sum += result.rate() / 24.0;
                write!(out, " {:>8.1} {:>6.1}", result.rate(), result.looks())?;
            }
            writeln!(out)?;
        }
    }
    write!(out, "{:<38}", "mean")?;
    for sum in sums {
        write!(out, " {sum:>8.1}       ")?;
    }
    writeln!(out)
}

/// Replacement times prefetcher, in a pool of 1,000 frames.
fn prefetchers(out: &mut impl Write) -> std::io::Result<()> {
    const FRAMES: u32 = 1000;
    write!(out, "{:<30} {:<12}", "trace", "prefetcher")?;
    for policy in Policy::ALL {
        write!(out, " {:>19}", format!("{policy:?}"))?;
    }
    writeln!(out, "   (hits, accuracy, coverage in %)")?;
    for (name, trace) in traces(FRAMES).into_iter().chain(streams()) {
        for kind in Prefetching::ALL {
            write!(out, "{name:<30} {kind:<12}")?;
            for policy in Policy::ALL {
                let ahead = ReadAhead::new(kind, FRAMES / 8);
                let result = simulate(&*policy.start(FRAMES), ahead, FRAMES, &trace);
                let accuracy = match result.accuracy() {
                    Some(accuracy) => format!("{accuracy:.1}"),
                    None => "-".to_owned(),
                };
                let (rate, coverage) = (result.rate(), result.coverage());
                write!(out, " {rate:>7.1} {accuracy:>5} {coverage:>5.1}")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}
