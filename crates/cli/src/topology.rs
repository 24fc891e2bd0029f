//! `atoll topology`

use std::io::Write;

use atoll::Machine;

use crate::args::Topology;
use crate::{Failure, out};

/// Runs the command.
pub fn run(args: &Topology) -> Result<(), Failure> {
    let machine = Machine::parse(&args.machine)?;
    let mut out = out::stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&machine)?)?;
    } else {
        writeln!(out, "{}", machine.render().trim_end())?;
    }
    Ok(out.flush()?)
}
