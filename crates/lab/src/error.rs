//! The one error type of this crate.

use std::path::PathBuf;
use std::{fmt, io};

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong in the lab. Each message names what failed and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A description of a machine that is not understood.
    Machine(topology::Error),
    /// The emulated machine, or the access counter.
    Emulator(emulator::Error),
    /// The report.
    Report(report::Error),
    /// What the command printed could not be passed on.
    Output {
        /// What the system said.
        source: io::Error,
    },
    /// A command of an experiment failed on the emulated machine.
    Guest {
        /// The command.
        command: String,
        /// What it said.
        why: String,
    },
    /// The program under test did not do its part.
    Drive {
        /// The program.
        program: String,
        /// What happened.
        why: String,
    },
    /// A table of recorded costs that cannot be used.
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The user ended the experiment.
    Interrupted,
    /// Options that do not go together, or not with this machine.
    Given {
        /// What is wrong, and what to give instead.
        why: String,
    },
    /// A store that cannot be used.
    Store {
        /// Which, and what is wrong with it.
        why: String,
    },
    /// A query that cannot be planned or run.
    Query {
        /// What it is called.
        query: String,
        /// What is wrong with it.
        why: String,
    },
    /// Threads cannot be placed as asked for.
    Placement(placement::Error),
    /// A plan that cannot be carried out, or placements that do not fit it.
    Job {
        /// What is wrong.
        why: String,
    },
    /// A thread may not run where it is placed.
    Pin {
        /// The thread, in the order of creation.
        thread: usize,
        /// The cpus it was to run on.
        cpus: Vec<u32>,
        /// What the system said.
        source: io::Error,
    },
    /// Memory could not be had.
    Memory(memory::Error),
    /// The governor, or what it governs.
    Governor(governor_live::Error),
    /// A file could not be written.
    Write {
        /// The file.
        path: PathBuf,
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
            Error::Governor(error) => error.fmt(f),
            Error::Emulator(error) => error.fmt(f),
            Error::Report(error) => error.fmt(f),
            Error::Output { source } => {
                write!(f, "cannot pass on what the command printed: {source}")
            }
            Error::Guest { command, why } => {
                write!(f, "'{command}' failed on the emulated machine: {why}")
            }
            Error::Drive { program, why } => write!(f, "the program under test, {program}: {why}"),
            Error::Table { path, why } => write!(
                f,
                "cannot use the costs in {}: {why}; record them with: lab exhaustive --record",
                path.display()
            ),
            Error::Given { why } | Error::Store { why } => why.fmt(f),
            Error::Query { query, why } => write!(f, "query {query}: {why}"),
            Error::Interrupted => write!(f, "interrupted; no report was written"),
            Error::Placement(error) => error.fmt(f),
            Error::Job { why } => write!(f, "the plan cannot be carried out: {why}"),
            Error::Pin {
                thread,
                cpus,
                source,
            } => write!(
                f,
                "thread {thread} cannot run on cpus {cpus:?}: {source}; name cpus that this \
                 process may use (atoll topology)"
            ),
            Error::Memory(error) => error.fmt(f),
            Error::Write { path, source } => write!(f, "cannot write {}: {source}", path.display()),
            Error::Count { why } => write!(f, "the access counter failed: {why}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Write { source, .. } | Error::Output { source } => Some(source),
            Error::Emulator(error) => error.source(),
            Error::Report(error) => error.source(),
            Error::Pin { source, .. } => Some(source),
            Error::Memory(error) => error.source(),
            Error::Placement(error) => error.source(),
            _ => None,
        }
    }
}

impl From<topology::Error> for Error {
    fn from(error: topology::Error) -> Error {
        Error::Machine(error)
    }
}

impl From<governor_live::Error> for Error {
    fn from(error: governor_live::Error) -> Error {
        Error::Governor(error)
    }
}

impl From<governor::Error> for Error {
    fn from(error: governor::Error) -> Error {
        Error::Governor(error.into())
    }
}

impl From<memory::Error> for Error {
    fn from(error: memory::Error) -> Error {
        Error::Memory(error)
    }
}

impl From<placement::Error> for Error {
    fn from(error: placement::Error) -> Error {
        Error::Placement(error)
    }
}

impl From<emulator::Error> for Error {
    fn from(error: emulator::Error) -> Error {
        Error::Emulator(error)
    }
}

impl From<report::Error> for Error {
    fn from(error: report::Error) -> Error {
        Error::Report(error)
    }
}
