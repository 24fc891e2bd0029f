//! `atoll laq`: a program of linear algebra from the command line, a file or standard input.

use std::io::Read;
use std::time::Duration;

use anyhow::Context;

use crate::args::Laq;
use crate::opened::Opened;
use crate::output::Whole;
use crate::sql::Runner;
use crate::{Failure, one_line, store};

/// Runs the command.
pub fn run(args: &Laq) -> Result<(), Failure> {
    let text = program(args)?;
    let (resources, execution) = (&args.results.resources, &args.results.execution);
    let options = store::executing(resources, execution, true)?;
    let database = store::open(&args.store, &options)?;
    let opened = Opened::new(database, args.store.clone(), options, Duration::ZERO);
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

fn program(args: &Laq) -> anyhow::Result<String> {
    match (&args.program, &args.file) {
        (Some(text), _) => Ok(text.clone()),
        (None, Some(path)) => crate::text_of(path),
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
