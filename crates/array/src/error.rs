//! The errors of this crate. Each message names the array, dimension, attribute or place that it is about.

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error about arrays.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store below failed; its message already names path and page.
    #[error("{0}")]
    Store(#[from] std::sync::Arc<store::Error>),
    /// The buffer pool failed; its message already names the page.
    #[error("{0}")]
    Buffer(#[from] std::sync::Arc<buffer::Error>),
    /// A worker failed.
    #[error("{0}")]
    Workers(#[from] std::sync::Arc<workers::Error>),
    /// No array of that name in this snapshot.
    #[error("there is no array '{name}'")]
    NoArray {
        /// The name asked for.
        name: String,
    },
    /// An array of that name exists already.
    #[error("array '{name}' exists already; delete it or choose another name")]
    Exists {
        /// The name asked for.
        name: String,
    },
    /// Something else has the name.
    #[error("'{name}' is a {what}; drop it or choose another name for the array")]
    Taken {
        /// The name asked for.
        name: String,
        /// What it names, in one word.
        what: &'static str,
    },
    /// No version of that name of an array.
    #[error("array '{array}' has no version '{version}'; there are {known}")]
    NoVersion {
        /// The array.
        array: String,
        /// The version asked for.
        version: String,
        /// Those there are.
        known: String,
    },
    /// Not a name for an array, a dimension or an attribute.
    #[error(
        "'{name}' cannot be the name of {what}: take 1 to 255 bytes without control characters"
    )]
    Name {
        /// What it was to name.
        what: &'static str,
        /// The name asked for.
        name: String,
    },
    /// A schema that makes no sense.
    #[error("{what}")]
    Schema {
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// A text that is no number with at most 18 digits after the point, or too large.
    #[error("'{text}' is no coordinate: give a number with at most 18 digits")]
    Decimal {
        /// The text.
        text: String,
    },
    /// A dimension or attribute that there is not.
    #[error("{what}: there is no {kind} '{name}'; there are {known}")]
    Unknown {
        /// Which operator or call asked for it.
        what: String,
        /// Dimension or attribute.
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// Those there are.
        known: String,
    },
    /// A coordinate outside of a dimension, or one that is not among its coordinates.
    #[error("{what}: {coordinate} is not in dimension '{dimension}', which has {range}")]
    OutOfRange {
        /// Which operator or call asked for it.
        what: String,
        /// The dimension.
        dimension: String,
        /// The coordinate asked for.
        coordinate: String,
        /// The coordinates that there are.
        range: String,
    },
    /// An operator that was given what it cannot work on.
    #[error("{operator}: {what}")]
    Operator {
        /// The operator.
        operator: &'static str,
        /// What is wrong, and what it takes.
        what: String,
    },
    /// Types that do not go together.
    #[error("{what}")]
    Type {
        /// The expression, the types, and what to do.
        what: String,
    },
    /// A result that its type cannot hold, or a division of whole numbers by zero.
    #[error("{what}")]
    Arithmetic {
        /// The operation, the type, and what to do.
        what: String,
    },
    /// Cells that do not fit the array that they were to be written to.
    #[error("array '{array}': {what}")]
    Write {
        /// The array.
        array: String,
        /// What does not fit.
        what: String,
    },
    /// What is asked for has more cells than memory can hold.
    #[error("{what} has too many cells to hold in memory: {cells}; read it chunk by chunk")]
    TooLarge {
        /// What it is.
        what: String,
        /// How many cells, in words.
        cells: String,
    },
    /// A record or page passed its checksum but does not decode.
    #[error(
        "array '{array}': {what} does not decode although its checksum is right; the store was \
         written by a faulty program"
    )]
    Damaged {
        /// The array.
        array: String,
        /// What does not decode.
        what: String,
    },
    /// The caller asked to stop; nothing was changed.
    #[error("interrupted")]
    Interrupted,
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Error {
        Error::Store(std::sync::Arc::new(error))
    }
}

impl From<buffer::Error> for Error {
    fn from(error: buffer::Error) -> Error {
        Error::Buffer(std::sync::Arc::new(error))
    }
}

impl From<workers::Error> for Error {
    fn from(error: workers::Error) -> Error {
        Error::Workers(std::sync::Arc::new(error))
    }
}

/// Names in a message: quoted, with commas.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("'{name}'")).collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}
