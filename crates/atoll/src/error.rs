//! Everything that can go wrong, in one type.

use std::fmt;
use std::path::PathBuf;

/// Result of the functions of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something failed. Displays as one line that says what, where, and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A statement failed: not SQL, an unknown name, a value out of range, not enough memory, ...
    Sql(sql::Error),
    /// A LAQ program failed: [`laq::Error::fault`] tells the place in its text.
    Laq(laq::Error),
    /// The store failed: not there, damaged, busy, full, ...
    Store(store::Error),
    /// The table layer refused: a type, a NULL, a name.
    Table(table::Error),
    /// A file to import cannot be read, or does not fit the table.
    Input {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1, where there is one.
        line: Option<u64>,
        /// What is wrong with it.
        reason: String,
    },
    /// An import or a load cannot be done as asked.
    Import(String),
    /// Options that contradict each other or the machine.
    Options(String),
    /// The machine description cannot be read.
    Topology(topology::Error),
    /// What memory there is cannot be found out.
    Memory(memory::Error),
    /// The workers cannot be started.
    Workers(fiber::Error),
    /// Arrow refused a conversion.
    Arrow(arrow::error::ArrowError),
    /// The caller asked for the work to stop. What was under way is undone.
    Interrupted,
    /// A blocking function was called from within an asynchronous task.
    Blocking,
}

impl Error {
    /// Whether a database was asked for where there is a [`PageStore`](crate::PageStore).
    pub fn is_raw_pages(&self) -> bool {
        matches!(self.of_store(), Some(store::Error::RawPages { .. }))
    }

    /// Whether another process writes to the database: try again when it has ended.
    pub fn is_busy(&self) -> bool {
        matches!(self.of_store(), Some(store::Error::Busy { .. }))
    }

    /// Whether another process has changed the database since it was opened: open it again.
    pub fn is_changed(&self) -> bool {
        matches!(self.of_store(), Some(store::Error::Changed { .. }))
    }

    /// The failure of the store that this is, through whichever layer it came.
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Sql(e) => e.fmt(f),
            Error::Laq(e) => e.fmt(f),
            Error::Store(e) => e.fmt(f),
            Error::Table(e) => e.fmt(f),
            Error::Input { path, line: Some(line), reason } => write!(f, "{}:{line}: {reason}", path.display()),
            Error::Input { path, line: None, reason } => write!(f, "{}: {reason}", path.display()),
            Error::Import(message) | Error::Options(message) => f.write_str(message),
            Error::Topology(e) => e.fmt(f),
            Error::Memory(e) => e.fmt(f),
            Error::Workers(e) => e.fmt(f),
            Error::Arrow(e) => e.fmt(f),
            Error::Interrupted => f.write_str("interrupted; what was under way is undone"),
            Error::Blocking => f.write_str(
                "this function blocks and was called from an asynchronous task; call it from a thread of its own (tokio::task::spawn_blocking)",
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Sql(e) => Some(e),
            Error::Laq(e) => Some(e),
            Error::Store(e) => Some(e),
            Error::Table(e) => Some(e),
            Error::Topology(e) => Some(e),
            Error::Memory(e) => Some(e),
            Error::Workers(e) => Some(e),
            Error::Arrow(e) => Some(e),
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

impl From<store::Error> for Error {
    fn from(e: store::Error) -> Error {
        Error::Store(e)
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

impl From<topology::Error> for Error {
    fn from(e: topology::Error) -> Error {
        Error::Topology(e)
    }
}

impl From<memory::Error> for Error {
    fn from(e: memory::Error) -> Error {
        Error::Memory(e)
    }
}

impl From<fiber::Error> for Error {
    fn from(e: fiber::Error) -> Error {
        Error::Workers(e)
    }
}

impl From<arrow::error::ArrowError> for Error {
    fn from(e: arrow::error::ArrowError) -> Error {
        Error::Arrow(e)
    }
}
