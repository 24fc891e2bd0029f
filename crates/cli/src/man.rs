//! `atoll man`: the manual pages.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use crate::{Failure, examples};

/// `atoll man`
#[derive(Args, Debug)]
pub struct Man {
    /// The folder they are written to, such as /usr/local/share/man/man1
    pub folder: PathBuf,
}

/// Runs the command.
pub fn run(args: &Man) -> Result<(), Failure> {
    let folder = &args.folder;
    let failed = || format!("cannot write to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(failed)?;
    clap_mangen::generate_to(examples::command(), folder).with_context(failed)?;
    Ok(())
}
