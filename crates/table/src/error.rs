//! What can go wrong in a table, in words for people.

use std::fmt;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the table layer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The store below failed; its message already names path and page.
    Store(store::Error),
    /// The buffer pool failed; its message already names the page.
    Buffer(buffer::Error),
    /// Arrow refused a conversion of user data.
    Arrow(arrow::error::ArrowError),
    /// No table of that name in this snapshot.
    NoTable {
        /// The name asked for.
        name: String,
    },
    /// A table of that name exists already.
    Exists {
        /// The name asked for.
        name: String,
    },
    /// No column of that name in the table.
    NoColumn {
        /// The table.
        table: String,
        /// The column asked for.
        column: String,
    },
    /// The column's type cannot be stored.
    Unsupported {
        /// The column.
        column: String,
        /// Its Arrow type.
        data_type: String,
    },
    /// A column was read as another kind than its own, which is a bug of the caller.
    Kind(String),
    /// Rows do not fit the table's definition.
    Mismatch {
        /// The table.
        table: String,
        /// What differs.
        what: String,
    },
    /// A NULL for a column that is NOT NULL.
    Null {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A value (text, dictionary, tail) longer than the format allows.
    TooLong {
        /// The column.
        column: String,
        /// Length in bytes.
        bytes: u64,
        /// Longest length allowed.
        limit: u64,
    },
    /// A declared key is impossible.
    Key {
        /// The table.
        table: String,
        /// What is wrong with it.
        what: String,
    },
    /// A catalog record or page passed its checksum but does not decode.
    Damaged {
        /// The table.
        table: String,
        /// What does not decode.
        what: String,
    },
    /// A test that a scan was given failed (division by zero, overflow, ...).
    Test(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Store(e) => write!(f, "{e}"),
            Error::Buffer(e) => write!(f, "{e}"),
            Error::Arrow(e) => write!(f, "{e}"),
            Error::NoTable { name } => write!(f, "there is no table '{name}'"),
            Error::Exists { name } => {
                write!(
                    f,
                    "table '{name}' exists already; drop it first or choose another name"
                )
            }
            Error::NoColumn { table, column } => {
                write!(f, "table '{table}' has no column '{column}'")
            }
            Error::Kind(what) => write!(f, "a column cannot be read so: {what}"),
            Error::Unsupported { column, data_type } => write!(
                f,
                "column '{column}' has type {data_type}, which a table cannot store; cast it first"
            ),
            Error::Mismatch { table, what } => write!(f, "rows do not fit table '{table}': {what}"),
            Error::Null { table, column } => write!(
                f,
                "NULL in column '{column}' of table '{table}', which is declared NOT NULL"
            ),
            Error::TooLong {
                column,
                bytes,
                limit,
            } => write!(
                f,
                "a value of {bytes} bytes in column '{column}' is longer than the {limit} allowed"
            ),
            Error::Key { table, what } => write!(f, "key of table '{table}': {what}"),
            Error::Damaged { table, what } => write!(
                f,
                "table '{table}': {what} does not decode although its checksum is right; \
                 the store was written by a faulty program"
            ),
            Error::Test(e) => write!(f, "{e}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Store(e) => Some(e),
            Error::Buffer(e) => Some(e),
            Error::Arrow(e) => Some(e),
            Error::Test(e) => Some(e.as_ref()),
            _ => None,
        }
    }
}

impl From<store::Error> for Error {
    fn from(e: store::Error) -> Self {
        Error::Store(e)
    }
}

impl From<buffer::Error> for Error {
    fn from(e: buffer::Error) -> Self {
        Error::Buffer(e)
    }
}

impl From<arrow::error::ArrowError> for Error {
    fn from(e: arrow::error::ArrowError) -> Self {
        Error::Arrow(e)
    }
}
