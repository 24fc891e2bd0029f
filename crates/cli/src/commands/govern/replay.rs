//! `atoll govern replay`: what another policy would have decided.

use std::fs::File;
use std::io::{BufReader, Write};

use anyhow::Context;
use governor::{Decision, Trace, core_seconds};
use topology::Machine;

use crate::commands::govern::options::Replay;
use crate::failure::Failure;
use crate::terminal::out;

/// Runs the command.
pub fn run(args: &Replay) -> Result<(), Failure> {
    let name = args.trace.display().to_string();
    let file = File::open(&args.trace).with_context(|| format!("cannot read {name}"))?;
    let trace = Trace::read(BufReader::new(file)).with_context(|| name.clone())?;
    if trace.decisions.is_empty() {
        return Err(
            anyhow::anyhow!("{name} holds no decision; atoll govern --trace writes some").into(),
        );
    }
    let recorded = trace.head.as_ref().map(|head| head.policy.clone());
    let policy = args.policy.policy(recorded)?;
    let machine = match (&args.machine, &trace.head) {
        (Some(spec), _) => Machine::parse(spec)?,
        (None, Some(head)) => Machine::parse(&head.machine)
            .with_context(|| format!("{name} is of another machine; give --machine"))?,
        (None, None) => Machine::live()?,
    };
    let decisions = governor::replay(&trace, policy, &machine, &args.policy.net()?)?;
    let mut out = out::stdout();
    let mut first = true;
    for decision in &decisions {
        let changed = !decision.allocated.is_empty() || !decision.released.is_empty();
        if args.json {
            writeln!(out, "{}", serde_json::to_string(decision)?)?;
        } else if args.all || first || changed {
            writeln!(out, "{decision}")?;
        }
        first = false;
    }
    out.flush()?;
    let end = trace.decisions.last().map_or(0.0, |last| last.time);
    let same = decisions
        .iter()
        .zip(&trace.decisions)
        .filter(|(now, then)| now.cpus == then.cpus)
        .count();
    let seconds = |of: &[Decision]| core_seconds(of, end);
    eprintln!(
        "atoll: {} decisions, {same} with the cpus of the trace; {:.1} core-seconds instead of {:.1}",
        decisions.len(),
        seconds(&decisions),
        seconds(&trace.decisions),
    );
    Ok(())
}
