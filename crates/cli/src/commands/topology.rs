//! `atoll topology`

use std::io::Write;

use clap::Args;
use topology::Machine;

use crate::failure::Failure;
use crate::terminal::out;

/// `atoll topology`
#[derive(Args, Debug)]
pub struct Topology {
    /// A shipped machine, FILE.xml, 4x4, or an hwloc synthetic description [default: this machine]
    #[arg(long, value_name = "SPEC", default_value = "live")]
    pub machine: String,
    /// One JSON object instead of a drawing
    #[arg(long)]
    pub json: bool,
}

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
