//! The error type of this crate.

use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of planning or running a query.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading a table failed.
    #[error("{0}")]
    Table(#[from] table::Error),
    /// An external source cannot be read, or does not hold what it promises.
    #[error("{name}: {message}")]
    Source {
        /// The source's name in messages: a file's path.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// Arrow refused a conversion.
    #[error("{0}")]
    Arrow(#[from] arrow::error::ArrowError),
    /// A function that the engine calls for an expression failed.
    #[error("{0}")]
    Call(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A number does not fit its type.
    #[error("{what} does not fit its type")]
    Overflow {
        /// What was computed.
        what: String,
    },
    /// A scalar subquery returned more than one row.
    #[error("more than one row returned by a subquery used as an expression")]
    ManyRows {
        /// The number of rows it returned.
        rows: usize,
    },
    /// An operator needed more memory than the limit leaves.
    #[error("{what} wanted {wanted} bytes, which the memory limit does not leave")]
    Memory {
        /// The operator.
        what: &'static str,
        /// The bytes it needed.
        wanted: u64,
    },
    /// Rows could not be spilled, or spilled rows could not be read.
    #[error(
        "the query does not fit in memory and cannot spill to {}: {source}; make room there or raise the memory limit",
        .place.display()
    )]
    Spill {
        /// The directory or device of the spill file.
        place: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// Spilled rows were read back with a wrong checksum.
    #[error(
        "what was spilled to {} came back damaged: check the disk, then run the query again",
        .place.display()
    )]
    SpillDamaged {
        /// The directory or device of the spill file.
        place: PathBuf,
    },
    /// The query was cancelled.
    #[error("the query was cancelled")]
    Cancelled,
    /// The query needs something that the engine cannot do. Its planner must express it in another way.
    #[error("the engine does not support {0}")]
    Unsupported(String),
    /// The engine contradicts itself: a bug.
    #[error("a bug of the engine: {0}")]
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

/// The error for a result of an earlier stage that is missing.
pub(crate) fn missing() -> Error {
    Error::internal("a stage that did not run")
}
