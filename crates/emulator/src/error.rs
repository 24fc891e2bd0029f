//! The one error type of this crate.

use std::io;
use std::path::PathBuf;

use crate::variables::KERNEL_VARIABLE;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with an emulated machine. Each message names what failed and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A description of a machine that is not understood.
    #[error(transparent)]
    Machine(#[from] topology::Error),
    /// A machine that cannot be emulated.
    #[error("cannot emulate '{machine}': {why}")]
    Shape {
        /// Its name, or how it was described.
        machine: String,
        /// What is wrong with it.
        why: String,
    },
    /// Programs that the emulated machine needs are not installed.
    #[error(
        "the emulated machine needs {}; type: sudo apt-get install -y \
         --no-install-recommends {}",
        .programs.join(", "),
        .packages.join(" ")
    )]
    Missing {
        /// The programs.
        programs: Vec<&'static str>,
        /// The Debian packages they are in.
        packages: Vec<&'static str>,
    },
    /// The kernel package could not be had.
    #[error(
        "cannot get Debian's kernel package: {why}; check the network and the package sources \
         (sudo apt-get update), or name a linux-image .deb file in {}",
        KERNEL_VARIABLE
    )]
    Download {
        /// What was asked for, and what the package manager said.
        why: String,
    },
    /// A file of the kernel package is not what it should be.
    #[error("cannot use the kernel file {path}: {why}")]
    Kernel {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A part of the guest could not be compiled.
    #[error("cannot compile {what} of the emulated machine (is libc6-dev installed?): {why}")]
    Compile {
        /// The part.
        what: &'static str,
        /// What the compiler said.
        why: String,
    },
    /// A file of the lab could not be read or written.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// What was being done.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The emulator could not be started, or ended without having run the command.
    #[error("the emulated machine failed: {why}")]
    Emulator {
        /// What happened, with the last lines it wrote.
        why: String,
    },
    /// The command cannot be passed on, such as one without words.
    #[error("cannot run the command: {why}")]
    Command {
        /// What is wrong with it.
        why: String,
    },
    /// What the command printed could not be passed on.
    #[error("cannot pass on what the command printed: {source}")]
    Output {
        /// What the system said.
        source: io::Error,
    },
    /// The access counter did not give what it should.
    #[error("the access counter failed: {why}")]
    Count {
        /// What is wrong.
        why: String,
    },
}
