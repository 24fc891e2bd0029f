//! `atoll afl`: statements of the array functional language over the arrays of a store. It needs no SQL.

mod cells;
mod schedule;
mod statements;

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use afl::{Error, Outcome};
use array::{Model, Run};
use clap::{Args, ValueEnum};
use futures::executor::block_on;

use crate::commands::afl::cells::Format;
use crate::failure::Failure;
use crate::options::resources::Compute;
use crate::store::plain::{self, Open, Plain};
use crate::terminal::out;
use crate::{text, units};

/// `atoll afl`
#[derive(Args, Debug)]
pub struct Afl {
    /// The store
    pub store: PathBuf,
    /// The statements, with a semicolon between two [default: from standard input]
    pub text: Option<String>,
    /// Read the statements from a file
    #[arg(short, long, value_name = "FILE", conflicts_with = "text")]
    pub file: Option<PathBuf>,
    /// Make the store if there is none
    #[arg(long)]
    pub create: bool,
    /// How operators hand on what they make
    #[arg(long, value_enum, default_value_t = How::Pipeline)]
    pub model: How,
    /// Chunks that are worked on at a time, each by an equal part of the threads [default: as many as a query reads, up
    /// to the threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub groups: Option<u32>,
    /// Divide the threads into so many instances, which own the chunks in turn, as SciDB's do
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), conflicts_with = "groups")]
    pub instances: Option<u32>,
    /// Show the operators of each query instead of running it, and which threads would best read which chunks on which
    /// nodes, and why
    #[arg(long)]
    pub explain: bool,
    /// Run each query and show, after what --explain does, its cells, chunks, pages and time instead of its rows
    #[arg(long, conflicts_with = "explain")]
    pub analyze: bool,
    /// How cells are written
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// One JSON object a statement, as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    #[command(flatten)]
    pub compute: Compute,
}

/// The model by which a query is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum How {
    /// Each operator makes the whole of its array before the next begins, as SAVIME does
    Materialise,
    /// Chunk by chunk on demand, as SciDB does
    Pipeline,
}

/// Runs the command.
pub fn run(args: &Afl) -> Result<(), Failure> {
    let all = match (&args.text, &args.file) {
        (Some(text), _) => text.clone(),
        (None, Some(path)) => text::of(path)?,
        (None, None) => text::of_standard_input()?,
    };
    let all = statements::split(&all);
    let mut writes = false;
    for statement in &all {
        writes |= afl::writes(statement).or_else(|error| tell(args, error))?;
    }
    let how = match (args.create, writes) {
        (true, _) => Open::Create(None),
        (_, true) => Open::Write,
        _ => Open::Read,
    };
    let opened = plain::open(&args.store, &args.compute, how, false)?;
    let ran = all
        .iter()
        .try_for_each(|statement| perform(args, &opened, statement));
    if how != Open::Read {
        opened.store.close()?;
    }
    ran
}

/// Runs one statement and writes what it has found.
fn perform(args: &Afl, opened: &Plain, statement: &str) -> Result<(), Failure> {
    let format = if args.json { Format::Json } else { args.format };
    let mut out = out::stdout();
    let query = afl::compile(statement, &opened.store.snapshot());
    match query {
        Ok(plan) => {
            let run = how(args, opened, Some(&plan))?;
            if args.explain || args.analyze {
                writeln!(out, "{plan}")?;
                schedule::write(&plan, opened, &args.compute, &mut out)?;
            }
            if args.analyze {
                analyze(&plan, &run, opened, &mut out)?;
            } else if !args.explain {
                cells::write(&plan, &run, format, &mut out)?;
            }
        }
        // Not a query: it changes something, or lists.
        Err(_) if args.explain => return tell(args, not_explained(statement, opened)),
        Err(_) => {
            let run = how(args, opened, None)?;
            let ran = opened.workers.block_on({
                let (statement, store) = (statement.to_owned(), opened.store.clone());
                async move { afl::execute(&statement, &store, &run).await }
            });
            outcome(ran.or_else(|error| tell(args, error))?, format, &mut out)?;
        }
    }
    Ok(out.flush()?)
}

/// Why a statement cannot be explained.
fn not_explained(statement: &str, opened: &Plain) -> Error {
    match afl::compile(statement, &opened.store.snapshot()) {
        Err(error) => error,
        Ok(_) => unreachable!("it was not compiled before"),
    }
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
    out: &mut impl Write,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let before = opened.store.pool().statistics();
    let (mut cells, mut chunks) = (0, 0);
    let mut stream = block_on(plan.chunks(run))?;
    while let Some(block) = block_on(stream.next()) {
        cells += block?.existing();
        chunks += 1;
        cells::stop()?;
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
fn tell<T>(args: &Afl, error: Error) -> Result<T, Failure> {
    let Some(fault) = error.fault() else {
        return Err(error.into());
    };
    match &args.file {
        Some(path) => eprintln!("atoll: {}: {error}", path.display()),
        None => eprintln!("atoll: {error}"),
    }
    eprintln!("{}", fault.excerpt());
    Err(Failure::Told)
}
