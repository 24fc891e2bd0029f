//! Runs one statement, and writes what it gives.

use std::io::Write;
use std::time::Instant;

use afl::{Error, Outcome};
use array::{Model, Run};

use crate::commands::afl::cells::{self, Format};
use crate::commands::afl::options::{Afl, How};
use crate::commands::afl::schedule;
use crate::commands::afl::statements::Statement;
use crate::commands::afl::stop::Stop;
use crate::failure::Failure;
use crate::store::plain::Plain;
use crate::terminal::out;
use crate::units;

/// What is shown of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// What it gives.
    Result,
    /// Its operators; it does not run.
    Plan,
    /// Its operators, and how they ran.
    Analysis,
}

impl Show {
    /// What the options say.
    pub fn of(args: &Afl) -> Show {
        match (args.explain, args.analyze) {
            (true, _) => Show::Plan,
            (_, true) => Show::Analysis,
            _ => Show::Result,
        }
    }
}

/// Runs one statement and writes what it has found. What is wrong with it is printed.
pub fn perform(
    args: &Afl,
    opened: &Plain,
    statement: &Statement<'_>,
    show: Show,
) -> Result<(), Failure> {
    let text = statement.text;
    let format = if args.json { Format::Json } else { args.format };
    let mut out = out::stdout();
    let snapshot = opened.store.snapshot();
    if show == Show::Plan {
        let explained = afl::explain(text, &snapshot).or_else(|e| tell(args, statement, e))?;
        writeln!(out, "{explained}")?;
        if let Ok(plan) = afl::compile(text, &snapshot) {
            schedule::write(&plan, opened, &args.compute, &mut out)?;
        }
        return Ok(out.flush()?);
    }
    let stop = Stop::new();
    if afl::is_query(text).or_else(|e| tell(args, statement, e))? {
        let plan = afl::compile(text, &snapshot).or_else(|e| tell(args, statement, e))?;
        let run = how(args, opened, Some(&plan))?;
        if show == Show::Analysis {
            writeln!(out, "{plan}")?;
            schedule::write(&plan, opened, &args.compute, &mut out)?;
            analyze(&plan, &run, opened, &stop, &mut out)?;
        } else {
            cells::write(&plan, &run, format, &stop, &mut out)?;
        }
    } else {
        let run = how(args, opened, None)?;
        let ran = stop.wait(afl::execute(text, &opened.store, &run))?;
        outcome(ran.or_else(|e| tell(args, statement, e))?, format, &mut out)?;
    }
    Ok(out.flush()?)
}

/// How a query is run, or a statement that is none.
fn how(args: &Afl, opened: &Plain, plan: Option<&array::Plan>) -> Result<Run, Failure> {
    let model = match args.model {
        How::Materialise => Model::Materialise,
        How::Pipeline => Model::Pipeline,
    };
    let run = Run::new().model(model);
    let width = opened.workers.width().max(1);
    Ok(match (args.groups, args.instances) {
        (Some(groups), _) => {
            let groups = groups as usize;
            run.on(&opened.workers, groups, (width / groups).max(1))
        }
        (None, Some(count)) => {
            let instances = schedule::instances(opened, count as usize)?;
            let each = instances[0].threads();
            run.on_instances(&instances, each)
        }
        (None, None) => {
            let chunks = match plan {
                Some(plan) => plan
                    .reads(width)?
                    .map_or(u64::MAX, |reads| reads.len() as u64),
                None => u64::MAX,
            };
            run.on_all(&opened.workers, chunks.max(1))
        }
    })
}

/// Runs a query and tells how it went.
fn analyze(
    plan: &array::Plan,
    run: &Run,
    opened: &Plain,
    stop: &Stop,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let before = opened.store.pool().statistics();
    let (mut cells, mut chunks) = (0, 0);
    let mut stream = stop.wait(plan.chunks(run))??;
    while let Some(block) = stop.wait(stream.next())? {
        cells += block?.existing();
        chunks += 1;
    }
    let after = opened.store.pool().statistics();
    writeln!(
        out,
        "{} cells in {} of {} chunks, {} pages read, in {}",
        units::count(cells),
        units::count(chunks),
        units::count(stream.grid().chunks()),
        units::count(after.loads - before.loads),
        units::seconds(begun.elapsed().as_secs_f64()),
    )?;
    Ok(())
}

/// Writes what a statement that is no query has done or found.
fn outcome(outcome: Outcome, format: Format, out: &mut impl Write) -> Result<(), Failure> {
    match outcome {
        Outcome::Done(what) if format == Format::Json => {
            writeln!(out, "{}", serde_json::json!({ "done": what }))?;
        }
        Outcome::Done(what) => writeln!(out, "{what}")?,
        Outcome::List(all) => cells::list(&all, format, out)?,
        Outcome::Schema(schema) => cells::schema(&schema, format, out)?,
        _ => {}
    }
    Ok(())
}

/// Prints an error in the text with its line; others are reported as ever.
pub fn tell<T>(args: &Afl, statement: &Statement<'_>, error: Error) -> Result<T, Failure> {
    let Some(fault) = error.fault() else {
        return Err(error.into());
    };
    let fault = statement.place(fault);
    match &args.file {
        Some(path) => eprintln!("atoll: {}: {fault}", path.display()),
        None => eprintln!("atoll: {fault}"),
    }
    eprintln!("{}", fault.excerpt());
    Err(Failure::Told)
}
