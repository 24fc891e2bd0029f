//! `atoll laq`: a program of linear algebra from the command line, a file or standard input.

use std::io::Read;

use anyhow::Context;
use atoll::Database;

use crate::args::Laq;
use crate::output::Whole;
use crate::sql::{Runner, options};
use crate::{Failure, one_line};

/// Runs the command.
pub fn run(args: &Laq) -> Result<(), Failure> {
    let text = program(args)?;
    let database = Database::open(&args.store, &options(&args.results.resources, true))?;
    let mut runner = Runner::new(&database, &args.results, None)?;
    let ran = runner.perform(|session| {
        let answer = match (args.explain, args.analyze) {
            (true, _) => session.explain_laq(&text),
            (_, true) => session.analyze_laq(&text),
            _ => session.laq(&text),
        };
        Ok(Box::new(Whole::new(answer?)))
    });
    let told = ran.or_else(|failure| tell(args, &mut runner, failure));
    drop(runner);
    let closed = database.close();
    told?;
    Ok(closed?)
}

fn program(args: &Laq) -> anyhow::Result<String> {
    match (&args.program, &args.file) {
        (Some(text), _) => Ok(text.clone()),
        (None, Some(path)) => std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}; check the path", path.display())),
        (None, None) => {
            let mut text = String::new();
            std::io::stdin()
                .lock()
                .read_to_string(&mut text)
                .context("cannot read standard input; it must be UTF-8 text")?;
            Ok(text)
        }
    }
}

/// Tells of a failure: of one in the text with the line it is in.
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
