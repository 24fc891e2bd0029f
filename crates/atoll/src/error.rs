//! The one error type of this crate.

use std::path::PathBuf;

/// Result of the functions of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something failed. Displays as one line that says what, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A statement failed: not SQL, an unknown name, a value out of range, not enough memory, ...
    #[error("{0}")]
    Sql(#[source] sql::Error),
    /// A LAQ program failed: [`laq::Error::fault`] tells the place in its text.
    #[error("{0}")]
    Laq(#[source] laq::Error),
    /// The store failed: not there, damaged, busy, full, ...
    #[error("{0}")]
    Store(#[from] store::Error),
    /// The table layer refused something: a type, a NULL, a name.
    #[error("{0}")]
    Table(#[source] table::Error),
    /// A file to import cannot be read, or does not fit the table.
    #[error("{}{}: {reason}", .path.display(), at(*.line))]
    Input {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1; `None` if the format has none.
        line: Option<u64>,
        /// What is wrong with it.
        reason: String,
    },
    /// An import or a load cannot be done as asked.
    #[error("{0}")]
    Import(String),
    /// Options that contradict each other or the machine.
    #[error("{0}")]
    Options(String),
    /// The machine description cannot be read.
    #[error("{0}")]
    Topology(#[from] topology::Error),
    /// The available memory cannot be determined.
    #[error("{0}")]
    Memory(#[from] memory::Error),
    /// The workers cannot be started.
    #[error("{0}")]
    Workers(#[from] workers::Error),
    /// Arrow refused a conversion.
    #[error("{0}")]
    Arrow(#[from] arrow::error::ArrowError),
    /// The caller asked for the work to stop. What was under way is undone.
    #[error("interrupted; what was under way is undone")]
    Interrupted,
    /// A blocking function was called from within an asynchronous task.
    #[error(
        "this function blocks and was called from an asynchronous task; call it from a thread of its own (tokio::task::spawn_blocking)"
    )]
    Blocking,
}

/// `:12`, or nothing if no line is known.
fn at(line: Option<u64>) -> String {
    line.map_or_else(String::new, |line| format!(":{line}"))
}

impl Error {
    /// Whether the file to be opened as a database is a [`PageStore`](crate::PageStore).
    pub fn is_raw_pages(&self) -> bool {
        matches!(self.of_store(), Some(store::Error::RawPages { .. }))
    }

    /// Whether another process writes to the database at present: try again when it has ended.
    pub fn is_busy(&self) -> bool {
        matches!(self.of_store(), Some(store::Error::Busy { .. }))
    }

    /// Whether another process has changed the database since it was opened: open it again.
    pub fn is_changed(&self) -> bool {
        matches!(self.of_store(), Some(store::Error::Changed { .. }))
    }

    /// The store's error that is the cause, whichever layer it came through.
    fn of_store(&self) -> Option<&store::Error> {
        match self {
            Error::Store(error) | Error::Table(table::Error::Store(error)) => Some(error),
            Error::Sql(sql::Error::Store(error)) => Some(error),
            Error::Sql(sql::Error::Table(error)) => match &**error {
                table::Error::Store(error) => Some(error),
                _ => None,
            },
            _ => None,
        }
    }
}

impl From<ingest::Error> for Error {
    fn from(error: ingest::Error) -> Error {
        match error {
            ingest::Error::File { path, line, reason } => Error::Input { path, line, reason },
            ingest::Error::Stopped => Error::Interrupted,
            other => Error::Import(other.to_string()),
        }
    }
}

impl From<sql::Error> for Error {
    fn from(e: sql::Error) -> Error {
        match e {
            sql::Error::Cancelled => Error::Interrupted,
            e => Error::Sql(e),
        }
    }
}

impl From<laq::Error> for Error {
    fn from(e: laq::Error) -> Error {
        match e {
            laq::Error::Table(e) => e.into(),
            e => Error::Laq(e),
        }
    }
}

impl From<table::Error> for Error {
    fn from(e: table::Error) -> Error {
        match e {
            table::Error::Store(e) => Error::Store(e),
            e => Error::Table(e),
        }
    }
}
