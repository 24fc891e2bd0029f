//! The operators (row B9), a file each: its kernel over the bytes of a page, and the operator over
//! all pages.

pub(crate) mod alloc;
pub(crate) mod groupby;
pub(crate) mod hashjoin;
pub(crate) mod scan;

use std::fmt;

use self::hashjoin::Join;
use crate::error::Result;
use crate::session::Session;

/// An operator that reads, and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// [`scan`](crate::scan) with this threshold.
    Scan(i32),
    /// [`groupby`](crate::groupby).
    Groupby,
    /// [`hashjoin`](crate::hashjoin).
    Hashjoin,
}

/// The result of an [`Operator`]; shown in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Integers above the threshold.
    Above(u64),
    /// How often each byte value occurs.
    Values(Box<[u64; 256]>),
    /// The join.
    Join(Join),
}

impl Operator {
    /// Runs the operator.
    ///
    /// # Errors
    /// [`Error::Store`](crate::Error::Store) if a page cannot be read.
    pub fn run(self, session: &Session) -> Result<Answer> {
        Ok(match self {
            Operator::Scan(threshold) => Answer::Above(scan::scan(session, threshold)?),
            Operator::Groupby => Answer::Values(Box::new(groupby::groupby(session)?)),
            Operator::Hashjoin => Answer::Join(hashjoin::hashjoin(session)?),
        })
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Above(count) => write!(f, "{count} integers above the threshold"),
            Answer::Values(counts) => {
                let values = counts.iter().filter(|&&count| count > 0).count();
                let bytes: u64 = counts.iter().sum();
                write!(f, "{values} values in {bytes} bytes")
            }
            Answer::Join(join) => write!(
                f,
                "{} keys, {} matches, sum {}",
                join.keys, join.matches, join.sum
            ),
        }
    }
}
