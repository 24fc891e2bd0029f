//! `atoll where`: where the memory of a process, or of a store, lies.

pub mod options;
pub mod process;
#[cfg(feature = "sql")]
mod store;
mod table;

use anyhow::anyhow;

use crate::commands::residency::options::Where;
use crate::failure::Failure;

/// Runs the command.
pub fn run(args: &Where) -> Result<(), Failure> {
    #[cfg(feature = "sql")]
    if let Some(path) = &args.store {
        return store::run(args, path);
    }
    match args.pid {
        Some(pid) => process::run(args, pid),
        // The definition of the arguments asks for one of the two.
        None => Err(anyhow!(
            "this program is built without tables; take --pid, or a program with them"
        )
        .into()),
    }
}
