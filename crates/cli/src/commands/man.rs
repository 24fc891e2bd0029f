//! `atoll man`: the manual pages.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use crate::failure::Failure;

/// `atoll man`
#[derive(Args, Debug)]
pub struct Man {
    /// The folder they are written to, such as /usr/local/share/man/man1
    pub folder: PathBuf,
}

/// Writes the pages of the program that `definition` defines.
pub fn run(args: &Man, definition: clap::Command) -> Result<(), Failure> {
    let folder = &args.folder;
    let failed = || format!("cannot write to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(failed)?;
    clap_mangen::generate_to(definition, folder).with_context(failed)?;
    Ok(())
}
