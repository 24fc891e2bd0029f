//! The one error type of this crate.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::variables::KERNEL_VARIABLE;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with an emulated machine. Each message names what failed and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A description of a machine that is not understood.
    Machine(topology::Error),
    /// A machine that cannot be emulated.
    Shape {
        /// Its name, or how it was described.
        machine: String,
        /// What is wrong with it.
        why: String,
    },
    /// Programs that the emulated machine needs are not installed.
    Missing {
        /// The programs.
        programs: Vec<&'static str>,
        /// The Debian packages they are in.
        packages: Vec<&'static str>,
    },
    /// The kernel package could not be had.
    Download {
        /// What was asked for, and what the package manager said.
        why: String,
    },
    /// A file of the kernel package is not what it should be.
    Kernel {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A part of the guest could not be compiled.
    Compile {
        /// The part.
        what: &'static str,
        /// What the compiler said.
        why: String,
    },
    /// A file of the lab could not be read or written.
    File {
        /// What was being done.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The emulator could not be started, or ended without having run the command.
    Emulator {
        /// What happened, with the last lines it wrote.
        why: String,
    },
    /// The command cannot be passed on, such as one without words.
    Command {
        /// What is wrong with it.
        why: String,
    },
    /// What the command printed could not be passed on.
    Output {
        /// What the system said.
        source: io::Error,
    },
    /// The access counter did not give what it should.
    Count {
        /// What is wrong.
        why: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Machine(error) => error.fmt(f),
            Error::Shape { machine, why } => write!(f, "cannot emulate '{machine}': {why}"),
            Error::Missing { programs, packages } => write!(
                f,
                "the emulated machine needs {}; type: sudo apt-get install -y \
                 --no-install-recommends {}",
                programs.join(", "),
                packages.join(" ")
            ),
            Error::Download { why } => write!(
                f,
                "cannot get Debian's kernel package: {why}; check the network and the package \
                 sources (sudo apt-get update), or name a linux-image .deb file in {KERNEL_VARIABLE}"
            ),
            Error::Kernel { path, why } => {
                write!(f, "cannot use the kernel file {}: {why}", path.display())
            }
            Error::Compile { what, why } => write!(
                f,
                "cannot compile {what} of the emulated machine (is libc6-dev installed?): {why}"
            ),
            Error::File { what, path, source } => {
                write!(f, "cannot {what} {}: {source}", path.display())
            }
            Error::Emulator { why } => write!(f, "the emulated machine failed: {why}"),
            Error::Command { why } => write!(f, "cannot run the command: {why}"),
            Error::Output { source } => {
                write!(f, "cannot pass on what the command printed: {source}")
            }
            Error::Count { why } => write!(f, "the access counter failed: {why}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::File { source, .. } | Error::Output { source } => Some(source),
            _ => None,
        }
    }
}

impl From<topology::Error> for Error {
    fn from(error: topology::Error) -> Error {
        Error::Machine(error)
    }
}
