//! `atoll laq`: a program of linear algebra from the command line, a file or standard input.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::failure::{Failure, one_line};
use crate::options::execution::Planning;
use crate::options::results::ResultOptions;
use crate::output::results::Whole;
use crate::statement::runner::Runner;
use crate::store::current::CurrentStore;
use crate::store::database;
use crate::text;

/// `atoll laq`
#[derive(Args, Debug)]
pub struct Laq {
    /// The store, which is opened for reading: programs cannot write
    pub store: PathBuf,
    /// The program [default: from standard input]
    pub program: Option<String>,
    /// Read the program from a file
    #[arg(short, long, value_name = "FILE", conflicts_with = "program")]
    pub file: Option<PathBuf>,
    /// Show the program instead of running it: its matrices with their shapes, its operators, its pipelines
    #[arg(long)]
    pub explain: bool,
    /// Run the program and show, after what --explain does, how it went instead of its rows
    #[arg(long, conflicts_with = "explain")]
    pub analyze: bool,
    /// Taken for the sake of scripts that run `atoll sql` too
    #[arg(long, hide = true)]
    pub read_only: bool,
    #[command(flatten)]
    pub results: ResultOptions,
}

/// Runs the command.
pub fn run(args: &Laq) -> Result<(), Failure> {
    let text = program(args)?;
    if args.results.execution.planning != Planning::default() {
        eprintln!("atoll: --planning is for queries in SQL; leave it out");
        return Err(Failure::Status(2));
    }
    let options = args.results.store(true)?;
    let database = database::open(&args.store, &options)?;
    let opened = CurrentStore::new(database, args.store.clone(), options, Duration::ZERO);
    let mut runner = Runner::new(opened, &args.results)?;
    let ran = runner.perform(|session| {
        let answer = match (args.explain, args.analyze) {
            (true, _) => session.explain_laq(&text),
            (_, true) => session.analyze_laq(&text),
            _ => session.laq(&text),
        };
        Ok(Box::new(Whole::new(answer?)))
    });
    let told = ran.or_else(|failure| tell(args, &mut runner, failure));
    let told = told.and_then(|()| runner.finish());
    told.and(runner.close())
}

/// Prints an error; an error in the program's text with its line.
fn tell(args: &Laq, runner: &mut Runner, failure: Failure) -> Result<(), Failure> {
    let Failure::Error(error) = failure else {
        return Err(failure);
    };
    let mut line = one_line(&error);
    if let Some(path) = &args.file {
        line = format!("{}: {line}", path.display());
    }
    if runner.sink.write_error(&line)? {
        return Err(Failure::Told);
    }
    let Some(atoll::Error::Laq(laq)) = error.downcast_ref::<atoll::Error>() else {
        return Err(Failure::Error(error));
    };
    eprintln!("atoll: {line}");
    if let Some(fault) = laq.fault() {
        eprintln!("{}", fault.excerpt());
    }
    Err(Failure::Told)
}

fn program(args: &Laq) -> anyhow::Result<String> {
    match (&args.program, &args.file) {
        (Some(text), _) => Ok(text.clone()),
        (None, Some(path)) => text::of(path),
        (None, None) => text::of_standard_input(),
    }
}
