//! The one error type of this crate.

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a page file or an operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The page store: its files, its pages, its pool.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The file lost a part while it was mapped.
    #[error(transparent)]
    Pool(#[from] buffer::Error),
    /// The threads.
    #[error(transparent)]
    Workers(#[from] workers::Error),
    /// The description of the machine.
    #[error(transparent)]
    Machine(#[from] topology::Error),
    /// A setting outside its range.
    #[error("{value} {what} are not possible: choose {least} to {most}")]
    Setting {
        /// What was set, in the plural.
        what: &'static str,
        /// The value asked for.
        value: usize,
        /// The least value.
        least: usize,
        /// The greatest value.
        most: usize,
    },
    /// The caller wanted to stop.
    #[error("interrupted")]
    Interrupted,
    /// Two runs of an operator over the same pages had different results.
    #[error("two runs over the same pages differ: this is a defect in Atoll, report it")]
    Disagree,
}
