//! What can go wrong in a query, in words for people.

use std::fmt;
use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a running or a planned query.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Reading a table failed.
    Table(table::Error),
    /// What rows are read from cannot be read, or is not what it says it is.
    Source {
        /// Its name, for people: a file's path.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// Arrow refused a conversion.
    Arrow(arrow::error::ArrowError),
    /// A function that the engine calls for an expression failed.
    Call(Box<dyn std::error::Error + Send + Sync>),
    /// A number does not fit its type.
    Overflow {
        /// What was computed.
        what: String,
    },
    /// A subquery that must give one value gave more.
    ManyRows {
        /// How many rows it gave.
        rows: usize,
    },
    /// Operators wanted more memory than the limit leaves.
    Memory {
        /// What wanted it.
        what: &'static str,
        /// Bytes it wanted.
        wanted: u64,
    },
    /// What did not fit in memory could not be written to a file, or read again.
    Spill {
        /// Where the file is.
        place: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// What did not fit in memory came back from its file with other bytes.
    SpillDamaged {
        /// Where the file is.
        place: PathBuf,
    },
    /// The query was given up.
    Cancelled,
    /// A plan asks for something that the engine cannot do; whoever made the plan must do it otherwise.
    Unsupported(String),
    /// The engine contradicts itself.
    Internal(String),
}

impl Error {
    pub(crate) fn internal(what: impl Into<String>) -> Error {
        Error::Internal(what.into())
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Error {
        Error::Unsupported(what.into())
    }
}

/// What a later stage reads of an earlier one is not there.
pub(crate) fn missing() -> Error {
    Error::internal("a stage that did not run")
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Table(e) => e.fmt(f),
            Error::Source { name, message } => write!(f, "{name}: {message}"),
            Error::Arrow(e) => e.fmt(f),
            Error::Call(e) => e.fmt(f),
            Error::Overflow { what } => write!(f, "{what} does not fit its type"),
            Error::ManyRows { rows } => {
                write!(
                    f,
                    "scalar subquery returned more than one row: it gave {rows}"
                )
            }
            Error::Memory { what, wanted } => {
                write!(
                    f,
                    "{what} wanted {wanted} bytes, which the memory limit does not leave"
                )
            }
            Error::Spill { place, source } => {
                write!(
                    f,
                    "what does not fit in memory cannot be kept in a file in {}: {source}; make room there or raise the memory limit",
                    place.display()
                )
            }
            Error::SpillDamaged { place } => write!(
                f,
                "what did not fit in memory came back damaged from its file in {}: check the disk, then run the query again",
                place.display()
            ),
            Error::Cancelled => write!(f, "the query was cancelled"),
            Error::Unsupported(what) => write!(f, "the engine does not support {what}"),
            Error::Internal(what) => write!(f, "a bug of the engine: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Table(e) => Some(e),
            Error::Arrow(e) => Some(e),
            Error::Call(e) => Some(e.as_ref()),
            Error::Spill { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<table::Error> for Error {
    fn from(e: table::Error) -> Error {
        Error::Table(e)
    }
}

impl From<arrow::error::ArrowError> for Error {
    fn from(e: arrow::error::ArrowError) -> Error {
        Error::Arrow(e)
    }
}
