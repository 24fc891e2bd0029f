//! The progress of a long load, which its caller can watch and stop.

use std::ops::ControlFlow;

/// The progress of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Position {
    /// What is being loaded: a table's name.
    pub what: String,
    /// Rows stored so far.
    pub rows: u64,
    /// Rows in all, if that is known beforehand.
    pub total_rows: Option<u64>,
    /// Bytes of the source consumed so far.
    pub bytes: u64,
    /// Bytes of the source in all, if that is known beforehand.
    pub total_bytes: Option<u64>,
}

impl Position {
    /// A load of `what` at its start, with nothing known about its end.
    ///
    /// ```
    /// let start = atoll::Position::start("lineitem");
    /// assert_eq!((start.rows, start.fraction()), (0, None));
    /// ```
    pub fn start(what: &str) -> Position {
        Position {
            what: what.to_owned(),
            rows: 0,
            total_rows: None,
            bytes: 0,
            total_bytes: None,
        }
    }

    /// The share that is done, in 0..=1: of the rows if their number is known, else of the bytes; `None` if neither is.
    pub fn fraction(&self) -> Option<f64> {
        let (done, total) = match (self.total_rows, self.total_bytes) {
            (Some(total), _) => (self.rows, total),
            (None, Some(total)) => (self.bytes, total),
            (None, None) => return None,
        };
        Some(if total == 0 {
            1.0
        } else {
            (done as f64 / total as f64).min(1.0)
        })
    }
}

/// Watches a load. Called about ten times a second from the thread that asked for the load, never
/// from a worker.
pub trait Progress {
    /// Reports that the load has come to `position`. [`ControlFlow::Break`] stops the load: nothing of it is kept, and
    /// it returns [`Error::Interrupted`](crate::Error::Interrupted).
    fn update(&self, position: &Position) -> ControlFlow<()>;
}

/// Ignores the progress and never stops a load.
impl Progress for () {
    fn update(&self, _: &Position) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
