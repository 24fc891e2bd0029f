//! Which threads would best read which chunks of a query, and instances of threads.

use std::io::Write;
use std::sync::Arc;

use anyhow::anyhow;
use array::Plan;
use placement::Site;
use placement::arrays::{Chunk, Goal, choices, schedule};
use workers::Workers;

use crate::failure::Failure;
use crate::options::resources::Compute;
use crate::store::plain::Plain;

/// The most chunks that are scheduled one by one.
const MOST: usize = 100_000;

/// Writes the reasons of the scheduler for a query, a line each, and how time and energy could be traded; nothing if it reads no
/// stored array.
///
/// # Errors
/// What is wrong with the query; if nothing can be written.
pub fn write(
    plan: &Plan,
    opened: &Plain,
    compute: &Compute,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let Some(reads) = plan.reads(MOST)? else {
        writeln!(out, "threads: whole chunks, as it reads more than {MOST}")?;
        return Ok(());
    };
    if reads.is_empty() {
        return Ok(());
    }
    let (machine, _) = compute.machines()?;
    let nodes = machine.nodes().len();
    let chunk = |read: &array::Read| Chunk {
        home: read.home % nodes,
        bytes: read.bytes,
        slabs: read.slabs,
    };
    let chunks: Vec<Chunk> = reads.iter().map(chunk).collect();
    let threads = opened.workers.width().max(1);
    let site = Site::new(&machine);
    let schedule = schedule(&site, threads, &chunks, Goal::Shortest)?;
    for why in schedule.why() {
        writeln!(out, "threads: {why}")?;
    }
    let rates = match machine.rates() {
        Some(_) => machine.name(),
        None => "a typical server's parts",
    };
    for choice in choices(&site, threads, &chunks)? {
        let goal = match choice.goal {
            Goal::Shortest => "as quick as can be",
            Goal::Local => "as local as can be",
        };
        writeln!(
            out,
            "threads: {}, {goal}, take {} and {} by a model of {rates}",
            choice.threads,
            scaled(choice.cost.seconds, "s"),
            scaled(choice.cost.joules(), "J")
        )?;
    }
    Ok(())
}

/// A small value with the prefix of its unit that leaves one to three digits before the point: `1.250 µs`.
fn scaled(value: f64, unit: &str) -> String {
    let prefixes = [(1.0, ""), (1e-3, "m"), (1e-6, "µ")];
    let found = prefixes.into_iter().find(|(least, _)| value >= *least);
    let (least, prefix) = found.unwrap_or((1e-9, "n"));
    format!("{:.3} {prefix}{unit}", value / least)
}

/// Instances of the threads, each with an equal part of their places.
///
/// # Errors
/// If there are more instances than threads; if the system does not give the threads.
pub fn instances(opened: &Plain, count: usize) -> Result<Vec<Arc<Workers>>, Failure> {
    let layout = opened.workers.layout();
    if count > layout.threads() {
        let threads = layout.threads();
        return Err(anyhow!(
            "{count} instances need as many threads, and there are {threads}; give fewer --instances or more --threads"
        )
        .into());
    }
    let all = layout.parts(count).into_iter().map(Workers::new);
    Ok(all.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_have_their_digits() {
        assert_eq!(scaled(2.5, "s"), "2.500 s");
        assert_eq!(scaled(0.0125, "J"), "12.500 mJ");
        assert_eq!(scaled(1.25e-6, "s"), "1.250 µs");
        assert_eq!(scaled(4e-10, "s"), "0.400 ns");
        assert_eq!(scaled(0.0, "s"), "0.000 ns");
    }
}
