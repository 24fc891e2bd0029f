//! The errors of this crate. Each message names the table or column that it is about.

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the table layer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store below failed; its message already names path and page.
    #[error("{0}")]
    Store(#[from] store::Error),
    /// The buffer pool failed; its message already names the page.
    #[error("{0}")]
    Buffer(#[from] buffer::Error),
    /// Arrow refused a conversion of user data.
    #[error("{0}")]
    Arrow(#[from] arrow::error::ArrowError),
    /// No table of that name in this snapshot.
    #[error("there is no table '{name}'")]
    NoTable {
        /// The name asked for.
        name: String,
    },
    /// A table of that name exists already.
    #[error("table '{name}' exists already; drop it first or choose another name")]
    Exists {
        /// The name asked for.
        name: String,
    },
    /// An array has the name.
    #[error("'{name}' is an array; drop it or choose another name for the table")]
    Taken {
        /// The name asked for.
        name: String,
    },
    /// No column of that name in the table.
    #[error("table '{table}' has no column '{column}'")]
    NoColumn {
        /// The table.
        table: String,
        /// The column asked for.
        column: String,
    },
    /// The column's type cannot be stored.
    #[error("column '{column}' has type {data_type}, which a table cannot store; cast it first")]
    Unsupported {
        /// The column.
        column: String,
        /// Its Arrow type.
        data_type: String,
    },
    /// A column was read as another kind than its own, which is a bug of the caller.
    #[error("a column cannot be read so: {0}")]
    Kind(String),
    /// Rows do not fit the table's definition.
    #[error("rows do not fit table '{table}': {what}")]
    Mismatch {
        /// The table.
        table: String,
        /// What differs.
        what: String,
    },
    /// A NULL for a column that is NOT NULL.
    #[error("NULL in column '{column}' of table '{table}', which is declared NOT NULL")]
    Null {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A map that has a key twice, or one that is NULL.
    #[error("{0}, and a map has each key once, and none that is NULL")]
    MapKey(String),
    /// A value (text, dictionary, tail) longer than the format allows.
    #[error("a value of {bytes} bytes in column '{column}' is longer than the {limit} allowed")]
    TooLong {
        /// The column.
        column: String,
        /// Length in bytes.
        bytes: u64,
        /// Longest length allowed.
        limit: u64,
    },
    /// A declared key is impossible.
    #[error("key of table '{table}': {what}")]
    Key {
        /// The table.
        table: String,
        /// What is wrong with it.
        what: String,
    },
    /// A row has a key that another row has.
    #[error(
        "duplicate key value violates unique constraint \"{key}\": Key ({columns})=({values}) already exists."
    )]
    Duplicate {
        /// The table.
        table: String,
        /// The name of the key.
        key: String,
        /// Names of its columns.
        columns: String,
        /// The values.
        values: String,
    },
    /// A catalog record or page passed its checksum but does not decode.
    #[error(
        "table '{table}': {what} does not decode although its checksum is right; the store was \
         written by a faulty program"
    )]
    Damaged {
        /// The table.
        table: String,
        /// What does not decode.
        what: String,
    },
    /// A text that is no label of an enum.
    #[error("invalid input value for enum {name}: \"{text}\"")]
    NoLabel {
        /// The enum, as people call it.
        name: String,
        /// The text.
        text: String,
    },
    /// An infinite value for a column of decimals.
    #[error(
        "numeric field overflow: A field with precision {precision}, scale {scale} cannot hold an infinite value."
    )]
    Infinite {
        /// The digits of the column.
        precision: u8,
        /// Those behind the point.
        scale: i8,
    },
    /// A decimal that is no number where all decimals must be numbers.
    #[error(
        "not supported: column \"{column}\" holds {value}, which decimals of Arrow and of files have not: cast it to double precision or text"
    )]
    NotFinite {
        /// The column.
        column: String,
        /// What it holds.
        value: &'static str,
    },
    /// A test that a scan was given failed (division by zero, overflow, ...).
    #[error("{0}")]
    Test(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// The code that PostgreSQL has for an error of this kind: five digits and letters, as of the SQL standard.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Error::Store(error) => error.sqlstate(),
            Error::NoTable { .. } => "42P01",
            Error::Exists { .. } | Error::Taken { .. } => "42P07",
            Error::NoColumn { .. } => "42703",
            Error::Unsupported { .. } => "0A000",
            Error::Mismatch { .. } => "42804",
            Error::Null { .. } => "23502",
            Error::TooLong { .. } => "22001",
            Error::MapKey(_) => "22023",
            Error::Key { .. } => "23503",
            Error::Duplicate { .. } => "23505",
            Error::Damaged { .. } => "XX001",
            Error::NoLabel { .. } => "22P02",
            Error::Infinite { .. } => "22003",
            Error::NotFinite { .. } => "0A000",
            Error::Buffer(_) | Error::Arrow(_) | Error::Kind(_) | Error::Test(_) => "XX000",
        }
    }
}
