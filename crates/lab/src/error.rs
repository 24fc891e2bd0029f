//! The one error type of this crate.

use std::io;
use std::path::PathBuf;

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why an experiment failed. Each message names what failed and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A description of a machine that is not understood.
    #[error(transparent)]
    Machine(#[from] topology::Error),
    /// The emulated machine, or the access counter.
    #[error(transparent)]
    Emulator(#[from] emulator::Error),
    /// The raw pages under test.
    #[error(transparent)]
    Pages(#[from] pages::Error),
    /// The report.
    #[error(transparent)]
    Report(#[from] report::Error),
    /// The output of a command could not be passed on.
    #[error("cannot pass on what the command printed: {source}")]
    Output {
        /// The system's error.
        source: io::Error,
    },
    /// A command of an experiment failed on the emulated machine.
    #[error("'{command}' failed on the emulated machine: {why}")]
    Guest {
        /// The command.
        command: String,
        /// What it said.
        why: String,
    },
    /// The program under test failed.
    #[error("the program under test, {program}: {why}")]
    Drive {
        /// The program.
        program: String,
        /// What happened.
        why: String,
    },
    /// A table of recorded costs that cannot be used.
    #[error(
        "cannot use the costs in {}: {why}; record them with: lab exhaustive --record",
        .path.display()
    )]
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The user ended the experiment.
    #[error("interrupted; no report was written")]
    Interrupted,
    /// Options that contradict each other, or do not fit this machine.
    #[error("{why}")]
    Given {
        /// What is wrong, and what to give instead.
        why: String,
    },
    /// A store that cannot be used.
    #[error("{why}")]
    Store {
        /// Which, and what is wrong with it.
        why: String,
    },
    /// A query that cannot be planned or run.
    #[error("query {query}: {why}")]
    Query {
        /// Its name.
        query: String,
        /// What is wrong with it.
        why: String,
    },
    /// Threads cannot be placed as asked for.
    #[error(transparent)]
    Placement(#[from] placement::Error),
    /// A plan that cannot be carried out, or placements that do not fit it.
    #[error("the plan cannot be carried out: {why}")]
    Job {
        /// What is wrong.
        why: String,
    },
    /// A thread may not run where it is placed.
    #[error(
        "thread {thread} cannot run on cpus {cpus:?}: {source}; name cpus that this process may use \
         (atoll topology)"
    )]
    Pin {
        /// The thread, in the order of creation.
        thread: usize,
        /// The cpus it was to run on.
        cpus: Vec<u32>,
        /// The system's error.
        source: io::Error,
    },
    /// Memory could not be had.
    #[error(transparent)]
    Memory(#[from] memory::Error),
    /// The governor, or what it governs.
    #[error(transparent)]
    Governor(#[from] governor_live::Error),
    /// A file could not be written.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The access counter did not give what it should.
    #[error("the access counter failed: {why}")]
    Count {
        /// What is wrong.
        why: String,
    },
}

impl From<governor::Error> for Error {
    fn from(error: governor::Error) -> Error {
        Error::Governor(error.into())
    }
}
