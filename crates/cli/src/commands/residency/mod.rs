//! `atoll where`: where the memory of a process, or of a store, lies.

pub mod options;
mod process;
mod store;
mod table;

use crate::commands::residency::options::Where;
use crate::failure::Failure;

/// Runs the command.
pub fn run(args: &Where) -> Result<(), Failure> {
    match (args.pid, &args.store) {
        (Some(pid), _) => process::run(args, pid),
        (None, Some(path)) => store::run(args, path),
        // The definition of the arguments asks for one of them.
        (None, None) => Ok(()),
    }
}
