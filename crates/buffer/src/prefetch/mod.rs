//! Prefetchers: which pages will be asked for next (rows B6 and B13).
//!
//! A prefetcher watches the pages that one caller reads, in their order, and names others to load
//! meanwhile. Each caller has one of its own ([`ReadAhead`](crate::ReadAhead)), so what several read at once is not
//! mixed up, and no two threads share its state. It only guesses: the pool loads what it names where
//! a frame is free or cold, and counts how many of these pages were used.

mod correlation;
mod next;
mod none;
mod prefetcher;
mod stream;
mod stride;

use std::fmt;
use std::str::FromStr;

pub use correlation::Correlation;
pub use next::Next;
pub use none::Nothing;
pub use prefetcher::{Outcome, Prefetcher};
pub use stream::Streams;
pub use stride::Strides;

/// The prefetchers there are. [`Display`](fmt::Display) gives their names, [`FromStr`] takes them.
///
/// ```
/// use buffer::Prefetching;
///
/// assert_eq!("stream".parse(), Ok(Prefetching::Stream));
/// assert_eq!(Prefetching::Correlation.to_string(), "correlation");
/// assert!("oracle".parse::<Prefetching>().unwrap_err().to_string().contains("stride"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Prefetching {
    /// `none`: nothing is loaded before it is asked for. The default: see decision 59.
    #[default]
    None,
    /// `next`: the pages after the one that was read (row B6).
    Next,
    /// `stride`: pages at a constant distance from each other.
    Stride,
    /// `stream`: pages in order, in a window that grows while the reader waits, as Linux reads files.
    Stream,
    /// `correlation`: what followed a page before.
    Correlation,
}

/// A name that no prefetcher has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no prefetcher {0:?}: choose none, next, stride, stream or correlation")]
pub struct UnknownPrefetcher(String);

impl Prefetching {
    /// All of them.
    pub const ALL: [Prefetching; 5] = [
        Prefetching::None,
        Prefetching::Next,
        Prefetching::Stride,
        Prefetching::Stream,
        Prefetching::Correlation,
    ];

    /// A prefetcher at work for one caller, which asks for at most `most` pages at once, at least 1.
    pub fn start(self, most: u32) -> Box<dyn Prefetcher> {
        match self {
            Prefetching::None => Box::new(Nothing),
            Prefetching::Next => Box::new(Next::new(most)),
            Prefetching::Stride => Box::new(Strides::new(most)),
            Prefetching::Stream => Box::new(Streams::new(most)),
            Prefetching::Correlation => Box::new(Correlation::new(most)),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Prefetching::None => "none",
            Prefetching::Next => "next",
            Prefetching::Stride => "stride",
            Prefetching::Stream => "stream",
            Prefetching::Correlation => "correlation",
        }
    }
}

impl fmt::Display for Prefetching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Prefetching {
    type Err = UnknownPrefetcher;

    fn from_str(name: &str) -> Result<Prefetching, UnknownPrefetcher> {
        let mut all = Prefetching::ALL.into_iter();
        all.find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownPrefetcher(name.to_owned()))
    }
}

#[cfg(test)]
mod tests;
