//! `atoll lab`

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, Subcommand};
use lab::Desk;
use lab::experiment::Experiment;
use report::command_line_of;

use crate::failure::Failure;
use crate::program;
use crate::terminal::{interrupt, out};
use crate::version::COMMIT;

/// `atoll lab`
#[derive(Args, Debug)]
pub struct Lab {
    /// What to do
    #[command(subcommand)]
    pub what: LabWhat,
}

/// The commands of `atoll lab`.
#[derive(Debug, Subcommand)]
pub enum LabWhat {
    /// Run a command on an emulated NUMA machine
    Machine(emulator::Arguments),
    /// Run an experiment: a table, an HTML report, the raw numbers as JSON
    #[command(flatten)]
    Experiment(lab::experiment::Experiment),
}

/// Runs the command.
pub fn run(args: &Lab) -> Result<(), Failure> {
    match &args.what {
        LabWhat::Machine(arguments) => machine(arguments),
        LabWhat::Experiment(experiment) => run_experiment(experiment),
    }
}

/// `atoll lab EXPERIMENT`. This program also runs inside the emulated machines, and is the database under test unless
/// another one is named.
fn run_experiment(experiment: &Experiment) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    let _listening = interrupt::during(move || asked.store(true, Ordering::Relaxed));
    let own = program::file()?;
    let mut desk = Desk {
        lab: vec![own.clone().into(), "lab".into()],
        database: Some(own),
        command: command_line_of(program::words()),
        commit: Some(COMMIT.to_owned()),
        out: &mut out::stdout(),
        err: &mut std::io::stderr(),
        stop: &stop,
    };
    match experiment.run(&mut desk) {
        Err(lab::Error::Interrupted) => Err(Failure::Interrupted),
        result => Ok(result?),
    }
}

/// `atoll lab machine`: its exit status is that of the command it ran.
fn machine(arguments: &emulator::Arguments) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    let _listening = interrupt::during(move || asked.store(true, Ordering::Relaxed));
    match arguments.run(&mut out::stdout(), &mut std::io::stderr(), &stop)? {
        0 => Ok(()),
        status => Err(Failure::Status(u8::try_from(status).unwrap_or(1))),
    }
}
