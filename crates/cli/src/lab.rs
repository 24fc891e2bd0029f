//! `atoll lab`

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::args::{Lab, LabWhat};
use crate::{Failure, interrupt, out};

/// Runs the command.
pub fn run(args: &Lab) -> Result<(), Failure> {
    match &args.what {
        LabWhat::Machine(arguments) => machine(arguments),
    }
}

/// `atoll lab machine`: its exit status is that of the command it ran.
fn machine(arguments: &lab::machine::Arguments) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    let _listening = interrupt::during(move || asked.store(true, Ordering::Relaxed));
    match arguments.run(&mut out::stdout(), &mut std::io::stderr(), &stop)? {
        0 => Ok(()),
        status => Err(Failure::Status(u8::try_from(status).unwrap_or(1))),
    }
}
